"""Try an address: evaluate a rule as if a member had only this one wallet. Nothing is stored.

It uses nothing that is known about members (tokens seen before, members' claims on vaults), because the answer would
reveal which wallets they have proved.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gateways import Gateways
from gateways.transport import fair_turns
from locales import N_
from models import now
from models.db.database import release
from models.db.session import AsyncSession
from services.collections import collections
from services.collections.standards import ContractKey
from services.core import queue
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.errors import ProviderUnavailable
from services.core.json_view import json_view
from services.core.queue import Claim
from services.engine import read_and_confirm, trait_reads
from services.engine.cases import NO_ROLES, Case
from services.engine.previews import preview
from services.engine.previews.proposals import NewRule, OneRule
from services.engine.reconcile_outcome import BatchOutcome, ServerChain, read_all
from services.guilds import permissions
from services.holdings import confirmation, delegated_vaults, delegations, fetch, stored_balances
from services.holdings.delegations import WantedDelegations
from services.holdings.evaluate import Answers, Reading, verdict_by
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import EVM, by_chain, family_of, is_about, with_vaults
from services.holdings.requirement_view import RequirementView, view_of_reading
from services.holdings.wallet_shares import Delegated
from services.rules import contract_check
from services.rules.contract_check import RuleContracts
from services.rules.draft import check, expression_of, parsed, with_lists, without_lists
from services.rules.expression import Expression, lists_in, requirements
from services.rules.rule_rows import apply, copy_of
from services.rules.rule_terms import RuleTerms
from services.rules.rules import own
from services.rules.types import stored_address_lists, submitted_address_lists
from services.rules.types.address_list_text import ReadList
from services.rules.types.own_tables import OwnTables
from services.rules.types.submitted_address_lists import GivenLists
from services.rules.wording import Names
from services.wallets import names

LONGEST_SECONDS = 45.0
NO_TIME = N_("it was not read in time")
NO_SECOND_NODE = N_("no second node confirms it right now")
OF_ANOTHER_KIND = N_("the address is not one of this chain")
_RULE = 0
"""The id of the tried rule, which need not be stored."""


@json_view
class Trial:
    """A rule's answer for an address (`yes`, `no` or `unknown`), and each requirement with its evidence.

    `address` is the one that was tried, `name` the name that led to it, if any.
    """

    outcome: str
    requirements: tuple[RequirementView, ...]
    address: str
    name: str | None


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """A rule and an address, with the questions to the chains about them."""

    case: Case
    wanted: Mapping[ServerChain, HoldingsQuestion]
    words: Names
    refused: Mapping[ContractKey, str]
    """By contract, why no rule can name it; its answers mean nothing."""
    address: str
    name: str | None
    asked_by: int


async def plan(db: AsyncSession, outside: Gateways, actor: Actor, proposal: OneRule, given: str) -> TrialPlan:
    """Return the questions about a wallet, given by its address or name, under a new, a changed or a stored rule.

    A new rule needs no name and no role. Raises FieldRefused, ServerNotFound, RuleNotFound, Conflict,
    ProviderUnavailable.
    """
    server_id, tree, delegated, lists = await asked_rule(db, outside, actor, proposal)
    await stored_address_lists.check(db, server_id, lists_in(tree), beside=lists.keys())
    await release(db)
    family, address, name = await names.wallet_of(outside, given)
    words, facts = await _contracts(db, outside, tree)
    tree = contract_check.completed(tree, facts.decimals)
    terms = RuleTerms(_RULE, "", tree, "active", delegated=delegated)
    standards = {**facts.known, **facts.found}
    wants = {chain: one for chain, one in by_chain(requirements(tree), standards).items() if family_of(chain) == family}
    rows, listed = await db.together(
        stored_balances.followed_heads(sorted(wants)),
        stored_address_lists.question([(server_id, one.list) for one in lists_in(tree)], [address]),
    )
    heads: dict[str, int] = dict(rows)
    on_lists = stored_address_lists.answered(listed).get(server_id, {})
    on_lists |= {digest: one.among({address}) for digest, one in lists.items()}
    await release(db)
    case = Case(
        claim=Claim(server_id, "", 0, 0, queue.WAITING), guild_id="", bot_invited=True, known=True, left=False,
        roles=NO_ROLES, rules=(terms,), wallets=((family, address),), grants=(), wants=wants, seen=heads,
        followed=frozenset(heads), tables=OwnTables(on_lists, now()),
    )  # fmt: skip
    if family == EVM:
        case.delegated = await _vaults(outside, terms, address, heads, standards)
    wanted = {(server_id, chain): _question(case, chain, address) for chain in wants}
    return TrialPlan(case, wanted, {**facts.named, **words}, facts.refused, address, name, actor.user_id)


class TriedRule(NamedTuple):
    """A rule to try: its server, its conditions, whether delegated vaults count, and its lists that are not stored."""

    server_id: int
    tree: Expression
    delegated: bool
    lists: Mapping[str, ReadList]


async def asked_rule(db: AsyncSession, outside: Gateways, actor: Actor, proposal: OneRule) -> TriedRule:
    """Return the rule to try: a new one, which needs no name and no role, or a stored or changed one.

    Raises FieldRefused, ServerNotFound, RuleNotFound, Conflict, ProviderUnavailable.
    """
    if isinstance(proposal, NewRule):
        lists = GivenLists()
        draft = without_lists(proposal.draft, lists)
        draft = check(replace(draft, rule_name=draft.rule_name.strip() or "?", role_id=draft.role_id.strip() or "?"))
        await permissions.require_admin_to_read(db, outside, actor, draft.server_id)
        read = await lists.read()
        draft = with_lists(draft, lists)
        return TriedRule(draft.server_id, expression_of(draft), draft.delegated, read)
    stored, found = await own(db, outside, actor, proposal.rule_id)
    rule = copy_of(stored)
    changes, read = await submitted_address_lists.read_out(proposal.changes)
    if changes:
        apply(rule, changes, found)
    return TriedRule(rule.server_id, parsed(rule.expression), rule.delegated, read)


async def _contracts(db: AsyncSession, outside: Gateways, tree: Expression) -> tuple[Names, RuleContracts]:
    """Return the stored names of a rule's contracts, and what is known about them; nothing while a node is down."""
    words = await collections.names(db, [(leaf.chain, leaf.contract) for leaf in requirements(tree)])
    try:
        return words, await contract_check.read(db, outside, tree)
    except ProviderUnavailable:
        return words, RuleContracts({}, {}, {}, {})


async def _vaults(
    outside: Gateways, terms: RuleTerms, address: str, heads: Mapping[str, int], standards: Mapping[ContractKey, str]
) -> Delegated:
    chains = sorted(delegations.chains_of([terms]))
    wanted = {chain: WantedDelegations((address,), heads.get(chain, 0)) for chain in chains}
    return delegated_vaults.uncontested(address, await delegations.read(outside, wanted), standards)


def _question(case: Case, chain: str, address: str) -> HoldingsQuestion:
    (terms,), vaults = case.rules, tuple(case.delegated.on(chain))
    leaves = [leaf for leaf in requirements(terms.expression) if leaf.chain == chain]
    wants = with_vaults(case.wants[chain], leaves, vaults)
    owners = tuple(sorted({address, *(vault.address for vault in vaults)}))
    return HoldingsQuestion(
        chain, wants, owners, case.seen.get(chain, 0), read_and_confirm.with_claimed({}, wants, vaults),
        server_id=case.claim.server_id,
    )  # fmt: skip


async def run(outside: Gateways, plan: TrialPlan) -> Trial:
    """Read the chains and return the answer; a no is confirmed as it would be before a role is taken."""
    case = plan.case
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            async with preview.turn_of(plan.asked_by):
                with fair_turns.on_behalf_of(f"server:{case.claim.server_id}"):
                    readings = [_doubted(plan, one) for one in await _readings(outside, plan)]
    except TimeoutError:
        leaves = requirements(case.rules[0].expression)
        readings = [Reading(leaf, Answer.UNKNOWN, None, reason=NO_TIME) for leaf in leaves]
    return Trial(
        outcome=_outcome(case, readings).value,
        requirements=tuple(view_of_reading(_explained(case, one), plan.words) for one in dict.fromkeys(readings)),
        address=plan.address,
        name=plan.name,
    )


async def _readings(outside: Gateways, plan: TrialPlan) -> list[Reading]:
    case = plan.case
    said = await fetch.ask_all(outside, list(plan.wanted.values()))
    answers = dict(zip(plan.wanted, said, strict=True))
    done = BatchOutcome(asked=[(plan.wanted[place], answers[place]) for place in plan.wanted])
    await trait_reads.read(outside, done, [case], answers)
    first = read_all(case, answers)[_RULE]
    if _outcome(case, first) is not Answer.NO or not plan.wanted:
        return first
    return await _confirmed(outside, plan, done, answers, first)


async def _confirmed(
    outside: Gateways,
    plan: TrialPlan,
    done: BatchOutcome,
    answers: Mapping[ServerChain, Answers],
    first: Sequence[Reading],
) -> list[Reading]:
    """Return the readings of a rule that says no, confirmed by other sources; a contradicted reading is unknown."""
    several = {pair: one for pair, one in plan.case.delegated.known.items() if outside.chains.endpoints(pair[0]) > 1}
    questions = [(question, (answers[place],)) for place, question in plan.wanted.items()]
    again, said = await asyncio.gather(
        delegations.read_again(outside, several), fetch.ask_all_again(outside, questions)
    )
    confirmed = dict(zip(plan.wanted, said, strict=True))
    case = read_and_confirm.doubting(plan.case, delegations.disagreements(several, again))
    await trait_reads.read_again(outside, done, [case], confirmed, answers)
    second = read_all(case, confirmed)[_RULE]
    return [_agreed(outside, one, other) for one, other in zip(first, second, strict=True)]


def _agreed(outside: Gateways, first: Reading, second: Reading) -> Reading:
    """Return the confirmed reading.

    If no other source exists and only time could confirm it, the first reading counts, because a trial takes no role.
    """
    if first.requirement.kind.chainless:
        return first
    means = read_and_confirm.means_of(outside, first.requirement.chain)
    found = confirmation.confirm(first, second, None, means, now())
    if found.wait is None or first.answer is not second.answer:
        return found.reading
    if means.by_provider(first).source == means.by_provider(second).source and means.nodes > 1:
        return replace(found.reading, reason=NO_SECOND_NODE)
    return first


def _doubted(plan: TrialPlan, reading: Reading) -> Reading:
    """Return the reading, or unknown if no rule can name its contract."""
    place = reading.requirement.chain, reading.requirement.contract
    if reading.answer is Answer.YES or place not in plan.refused:
        return reading
    return Reading(reading.requirement, Answer.UNKNOWN, None, reason=plan.refused[place])


def _outcome(case: Case, readings: Sequence[Reading]) -> Answer:
    return verdict_by(case.rules[0].expression, case.wallets, (reading.answer for reading in readings))


def _explained(case: Case, reading: Reading) -> Reading:
    """Return the reading; a no for an address that is not one of the requirement's chain gets that as its reason."""
    about = any(is_about(reading.requirement, scope) for scope, _ in case.wallets)
    elsewhere = reading.answer is Answer.NO and not about
    return replace(reading, reason=OF_ANOTHER_KIND) if elsewhere else reading
