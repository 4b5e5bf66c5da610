"""Fetch holdings, decide, and confirm each loss: holdings are read a second time, and the member again from Discord."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.chains.node_providers import digest, origin, source_name
from gateways.chains.token_sheet import TokenHints
from gateways.transport.errors import ProviderError
from locales import N_
from models.db.session import AsyncSession
from services.collections import stored_traits, trait_sources
from services.core.answer import Answer
from services.engine import retry_later, trait_reads
from services.engine.batch_decisions import BatchDecisions
from services.engine.cases import Case
from services.engine.decide import Action, Decision, decide, left_behind
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome, ServerChain, decides_loss, read_all
from services.holdings import confirmation, delegations, evaluate, fetch, stored_balances, token_hints
from services.holdings.confirmation import Confirmation, Earlier, Means
from services.holdings.delegations import DelegateKey
from services.holdings.evaluate import Answers, Reading, verdict_by
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import ANY, Wants, addresses_on, with_vaults
from services.holdings.token_hints import Trails
from services.holdings.wallet_shares import Vault
from services.rules.expression import Requirement, requirements
from services.runtime import time_budget
from services.runtime.loop_steps import in_steps

MOST_KNOWN = 20_000
"""The most tokens whose traits are loaded from our table for one chain and server before their holders are known."""
MOST_IN_A_STEP = 2_000
"""The most conditions times wallets of one member that are decided without a thread."""
MEETING_SECONDS = 10.0
"""Time limit for reading members from Discord in one reconcile; the others are queued again soon."""


async def questions(db: AsyncSession, cases: Sequence[Case]) -> dict[ServerChain, HoldingsQuestion]:
    """Return the question to each chain for each server; its answer must not be older than the blocks seen before."""
    asked: dict[ServerChain, HoldingsQuestion] = {}
    newest = {case.claim.server_id: case.seen for case in cases}
    vaults = _vaults(cases)
    places = await _places(cases)
    followed = {place: _followed(wants) for place, (wants, _) in places.items()}
    one_by_one = {
        place: [*followed[place], *(call.contract for call in wants.calls)] for place, (wants, _) in places.items()
    }
    counted = {place: contracts for place, contracts in one_by_one.items() if contracts}
    tallies = await db.together(
        *(stored_balances.newest_tally(place[1], contracts, places[place][1]) for place, contracts in counted.items())
    )
    tallied = {place: block for place, ((block,),) in zip(counted, tallies, strict=True)}
    async for (server_id, chain), (wants, owners) in in_steps(places.items()):
        not_before = max(newest[server_id].get(chain, 0), tallied.get((server_id, chain), 0))
        hints = await token_hints.load(db, chain, followed[server_id, chain], owners)
        hints = with_claimed(hints, wants, vaults.get((server_id, chain), ()))
        tokens = [
            (chain, contract, token_id)
            for contract in sorted(wants.with_traits)
            for trail in hints.get(contract, {}).values()
            for token_id in sorted(trail.ids)
        ]
        known = await stored_traits.known(db, tokens[:MOST_KNOWN])
        asked[server_id, chain] = HoldingsQuestion(chain, wants, owners, not_before, hints, known, server_id)
    return asked


def _followed(wants: Wants) -> list[str]:
    """Return the contracts whose tokens are read one by one, and "any" if any collection counts."""
    return [*sorted({contract for contract, _ in wants.tokens}), *([ANY] if wants.anything else [])]


def _vaults(cases: Iterable[Case]) -> dict[ServerChain, list[Vault]]:
    """Return, by server and chain, the vaults that a member may count, whole or in part."""
    found: dict[ServerChain, list[Vault]] = {}
    for case in cases:
        for vault in case.delegated.vaults:
            found.setdefault((case.claim.server_id, vault.chain), []).append(vault)
    return found


def with_claimed(hints: Trails, wants: Wants, vaults: Sequence[Vault]) -> Trails:
    """Return the hints plus the single tokens that vaults have delegated, because the vaults may hold these."""
    if not vaults:
        return hints
    more = {contract: dict(trails) for contract, trails in hints.items()}
    for vault in vaults:
        for contract in wants.with_traits:
            if ids := vault.cut(contract).ids:
                trails = more.setdefault(contract, {})
                trails[vault.address] = trails.get(vault.address, TokenHints()).with_ids(ids)
    return more


async def _places(cases: Sequence[Case]) -> dict[ServerChain, tuple[Wants, tuple[str, ...]]]:
    owners: dict[ServerChain, set[str]] = {}
    wanted: dict[ServerChain, Wants] = {}
    async for case in in_steps(cases):
        if not case.bot_invited or case.left:
            continue
        for chain, wants in case.wants.items():
            if addresses := addresses_on(chain, case.wallets):
                place = case.claim.server_id, chain
                vaults = tuple(case.delegated.on(chain))
                owners.setdefault(place, set()).update(addresses, (vault.address for vault in vaults))
                wanted[place] = with_vaults(wanted.get(place, wants), _delegated_leaves(case, chain), vaults)
    return {place: (wanted[place], tuple(sorted(owners[place]))) async for place in in_steps(sorted(owners))}


def _delegated_leaves(case: Case, chain: str) -> list[Requirement]:
    return [
        leaf
        for rule in case.rules
        if rule.decides and rule.delegated
        for leaf in requirements(rule.expression)
        if leaf.chain == chain
    ]


async def decide_cases(
    outside: Gateways,
    cases: Sequence[Case],
    wanted: Mapping[ServerChain, HoldingsQuestion],
    now: datetime,
    *,
    answered: tuple[Mapping[ServerChain, Answers], float] | None = None,
) -> BatchOutcome:
    """Read the chains once, decide, and confirm from other sources each answer that would cost somebody a role.

    `now` is the database's time. `answered` has the chains' earlier answers and when (monotonic) they were requested.
    """
    began = time.monotonic()
    if answered is None:
        answered = dict(zip(wanted, await fetch.ask_all(outside, list(wanted.values())), strict=True)), began
    answers, began = answered
    done = BatchOutcome(asked=[(wanted[place], answers[place]) for place in wanted], began=began)
    await trait_reads.read(outside, done, cases, answers)
    decisions = BatchDecisions(answers)
    leaves: dict[int, int] = {}
    done.outcomes = [await _decided(case, answers, now, leaves, decisions) async for case in in_steps(cases)]
    async for item in in_steps(done.outcomes):
        retry_later.after_lag(item, now)
        if not item.calm:
            retry_later.for_next_turn(item)
    await _refresh_from_discord(
        outside, [one async for one in in_steps(done.outcomes) if not one.calm and _needs_live_member(one)], now, began
    )
    with time_budget.again():
        await _confirm(outside, done, wanted, answers, now)
    async for item in in_steps(done.outcomes):
        if not item.case.known:
            item.decisions = [_once_stored(one, now) for one in item.decisions]
    return done


def _once_stored(decision: Decision, now: datetime) -> Decision:
    """Return the decision about a member who is not stored; a loss is decided again once they are.

    A change of a rule or a wallet queues the members whom we have stored, so it could not invalidate this reconcile.
    """
    if decision.action is not Action.TAKE:
        return decision
    return Decision(decision.role_id, Action.NONE, due_at=now, doubtful=decision.doubtful)


async def _decided(
    case: Case,
    answers: Mapping[ServerChain, Answers],
    now: datetime,
    leaves: dict[int, int],
    decisions: BatchDecisions | None = None,
) -> CaseOutcome:
    """Decide one case, in a thread if that takes long. `leaves` caches the number of conditions of each server."""
    server_id = case.claim.server_id
    if server_id not in leaves:
        leaves[server_id] = sum(1 for rule in case.rules if rule.decides for _ in requirements(rule.expression))
    if leaves[server_id] * (len(case.wallets) + len(case.delegated.vaults)) > MOST_IN_A_STEP:
        return await asyncio.to_thread(_decide, case, answers, now)
    return _decide(case, answers, now, decisions)


def _decide(
    case: Case, answers: Mapping[ServerChain, Answers], now: datetime, decisions: BatchDecisions | None = None
) -> CaseOutcome:
    """Decide one case; with `decisions`, equal cases are decided once."""
    known = decisions.decisions(case, lambda: _conclude(case, read_all(case, answers), now)) if decisions else None
    if known is not None:
        decided, calm = known
        return CaseOutcome(case, decided, answers, calm=calm and case.known)
    found = read_all(case, answers)
    return CaseOutcome(case, _conclude(case, found, now), answers, found)


def _conclude(case: Case, found: Mapping[int, list[Reading]], now: datetime) -> list[Decision]:
    said: dict[int, Answer] = {}
    for rule in case.rules:
        if rule.decides:
            answers = (reading.answer for reading in found[rule.id])
            said[rule.id] = verdict_by(rule.expression, case.wallets, answers)
    return decide(case.rules, said, case.grants, case.roles, now, case.truces, case.moving, case.late_gifts)


def _needs_live_member(item: CaseOutcome) -> bool:
    """Return whether Discord must be asked: the member is unknown, or the ledger and their stored roles differ."""
    if not item.case.bot_invited or item.case.left:
        return False
    unknown = not item.case.known and bool(item.decisions)
    return unknown or any(decision.action in {Action.LOST, Action.FORGET} for decision in item.decisions)


async def _refresh_from_discord(outside: Gateways, items: Sequence[CaseOutcome], now: datetime, began: float) -> None:
    """Read these members from Discord and decide again; the time was `now` at `began` (monotonic)."""
    try:
        async with asyncio.timeout(MEETING_SECONDS):
            await asyncio.gather(*(_refresh_one(outside, item, now, began) for item in items))
    except TimeoutError:
        for item in items:
            if item.live is None and not item.gone and item.fault is None:
                item.fault, item.decisions = N_("Discord: the member was not read in time"), []


async def _refresh_one(outside: Gateways, item: CaseOutcome, now: datetime, began: float) -> None:
    try:
        item.live = await outside.discord.membership(item.case.guild_id, item.case.claim.discord_id)
    except ProviderError as fault:
        item.fault = str(fault)
        item.decisions = []
        return
    if item.live is None:
        item.gone = True
        item.decisions = []
    else:
        item.case.roles = item.live.roles
        moment = now + timedelta(seconds=time.monotonic() - began)
        item.left_behind = tuple(grant for grant in item.case.grants if left_behind(grant, item.live, moment))
        item.case.grants = tuple(grant for grant in item.case.grants if grant not in item.left_behind)
        item.decisions = _conclude(item.case, item.readings, now)


def _confirmable(item: CaseOutcome) -> list[Decision]:
    begun = {grant.role_id for grant in item.case.grants if grant.no_since is not None}
    return [
        decision
        for decision in item.decisions
        if decision.action is Action.TAKE or (decision.action is Action.WAIT and decision.role_id not in begun)
    ]


async def _confirm(
    outside: Gateways,
    done: BatchOutcome,
    wanted: Mapping[ServerChain, HoldingsQuestion],
    answers: Mapping[ServerChain, Answers],
    now: datetime,
) -> None:
    losing = [item async for item in in_steps(done.outcomes) if not item.calm and _confirmable(item)]
    if not losing:
        return
    seconds, waits = await _second_answers(outside, done, losing, wanted, answers, now)
    means = cache(partial(means_of, outside))
    for number, item in enumerate(losing):
        _confirm_losses(means, item, [of_reader[number] for of_reader in seconds], now)
        delegated = (waits.get(pair) for pair in item.case.delegated.known)
        item.again_in = max((item.again_in, *delegated), key=lambda wait: wait or 0.0)
        item.decisions = _conclude(item.case, item.readings, now)


async def _second_answers(
    outside: Gateways,
    done: BatchOutcome,
    losing: Sequence[CaseOutcome],
    wanted: Mapping[ServerChain, HoldingsQuestion],
    answers: Mapping[ServerChain, Answers],
    now: datetime,
) -> tuple[list[list[CaseOutcome]], dict[DelegateKey, float]]:
    """Read again what these members hold, node after node where an answer is partial.

    Return what each further reader says about each member; and, for delegations that only need more time, the seconds
    to wait.
    """
    owners_at = {place: owners for place, (_, owners) in (await _places([item.case for item in losing])).items()}
    asked = {place: replace(wanted[place], owners=owners) for place, owners in owners_at.items() if place in wanted}
    (doubts, waits), said = await asyncio.gather(
        _delegations_again(outside, done, losing),
        fetch.ask_all_again(outside, [(question, (answers[place],)) for place, question in asked.items()]),
    )
    readers: list[Mapping[ServerChain, Answers]] = [answers]
    seconds: list[list[CaseOutcome]] = []
    leaves: dict[int, int] = {}
    while True:
        told = dict(zip(asked, said, strict=True))
        done.asked.extend((question, told[place]) for place, question in asked.items())
        confirmed = {**(readers[-1] if seconds else {}), **told}
        await trait_reads.read_again(outside, done, [item.case for item in losing], confirmed, answers)
        readers.append(confirmed)
        seconds.append([await _decided(doubting(item.case, doubts), confirmed, now, leaves) for item in losing])
        # A partial answer can be neither yes nor no, so the next node is asked.
        in_part = _answered_in_part(losing, seconds, confirmed)
        asked = {
            place: question
            for place, question in asked.items()
            if place in in_part and len(readers) <= outside.chains.endpoints(question.chain)
        }
        if not asked:
            return seconds, waits
        said = await fetch.ask_all_again(
            outside, [(question, [one[place] for one in readers]) for place, question in asked.items()]
        )


def _answered_in_part(
    losing: Sequence[CaseOutcome], seconds: Sequence[Sequence[CaseOutcome]], confirmed: Mapping[ServerChain, Answers]
) -> set[ServerChain]:
    """Return the places where a node's incomplete answer leaves the loss of a role unknown."""
    found = set[ServerChain]()
    for number, item in enumerate(losing):
        roles = {decision.role_id for decision in _confirmable(item)}
        rules = [rule for rule in item.case.rules if any(decides_loss(item.case, rule, role_id) for role_id in roles)]
        for rule in rules:
            for at, first in enumerate(item.readings.get(rule.id, ())):
                place = item.case.claim.server_id, first.requirement.chain
                said = [of_reader[number].readings[rule.id][at] for of_reader in seconds]
                is_open = first.answer is not Answer.UNKNOWN and all(map(confirmation.is_partial, said))
                if is_open and place in confirmed and evaluate.in_part(first.requirement, confirmed[place]):
                    found.add(place)
    return found


def _confirm_losses(
    means: Callable[[str], Means], item: CaseOutcome, seconds: Sequence[CaseOutcome], now: datetime
) -> None:
    """Confirm the readings by which a role would be taken; those for the member's other roles stay unchanged.

    `means` returns a chain's sources.
    """
    losing = {decision.role_id for decision in _confirmable(item)}
    before = {grant.role_id: confirmation.parsed(grant.first_no) for grant in item.case.grants}
    earned = {role_id: _earned_by(item.case, role_id) for role_id in losing}
    found, waits = dict(item.readings), dict[str, list[float]]()
    first_no = dict[str, dict[str, Earlier]]()
    for rule in item.case.rules:
        roles = [role_id for role_id in sorted(losing) if decides_loss(item.case, rule, role_id)]
        if not roles or rule.id not in found:
            continue
        first, earlier = found[rule.id], dict[str, Earlier]()
        for role_id in roles:
            earlier.update(before.get(role_id, {}))
        second, both = list[Reading](), list[Confirmation]()
        for one, *told in zip(first, *(looked.readings[rule.id] for looked in seconds), strict=True):
            question, sources = confirmation.question_of(one), means(one.requirement.chain)
            if (kept := earlier.get(question)) is not None:
                kept = earlier[question] = sources.named_now(kept)
            said = [sources.by_provider(answer) for answer in told]
            opposed = confirmation.opposed_at(one, (reading for role_id in roles for reading in earned[role_id]))
            second.append(confirmation.second_of(one, said, kept, sources, now, opposed))
            both.append(confirmation.confirm(one, second[-1], kept, sources, now, opposed))
        first = [means(one.requirement.chain).by_provider(one) for one in first]
        found[rule.id] = [one.reading for one in both]
        for role_id in roles:
            waits.setdefault(role_id, []).extend(one.wait for one in both if one.wait is not None)
            marks = confirmation.marked(first, second, earlier, now)
            first_no.setdefault(role_id, {}).update(confirmation.noted(first, second, earlier, now, means) | marks)
    item.found, item.first_no = found, first_no
    item.again_in = min((max(seconds) for seconds in waits.values() if seconds), default=None)


def _earned_by(case: Case, role_id: str) -> list[dict[str, Any]]:
    """Return the stored readings by which a role that the member has was lately given or kept."""
    grant = case.grant_of(role_id)
    if grant is None or not grant.readings or not (grant.state == "held" or role_id in case.roles):
        return []
    found: list[dict[str, Any]] = json.loads(grant.readings)
    return found


def means_of(outside: Gateways, chain: str) -> Means:
    """Return which sources the configuration gives a chain; one if `chain` is empty, for our own tables."""
    if not chain:
        return Means(1, 1)
    title, first = CHAINS[chain].title, [origin(chain, place) for place in range(outside.chains.endpoints(chain))]
    same = {source_name(title, at): source_name(title, place) for at, place in enumerate(first) if at != place}
    providers = {source_name(title, place): digest(chain, place) for place in sorted(set(first))}
    return Means(len(set(first)), trait_sources.sources_on(outside, chain), same, providers)


async def _delegations_again(
    outside: Gateways, done: BatchOutcome, losing: Sequence[CaseOutcome]
) -> tuple[dict[DelegateKey, str], dict[DelegateKey, float]]:
    """Read again the delegations to members who are about to lose a role, and those that come before them.

    Return the delegates whose delegations changed, with the reason; and, for those that only need more time, the
    seconds to wait.
    """
    known = {pair: before for item in losing for pair, before in item.case.delegated.known.items()}
    again = await delegations.read_again(outside, known)
    doubts = delegations.disagreements(known, again)
    done.delegations.extend(
        one
        for one in again
        if not isinstance(one.sheet, str) and any((one.chain, delegate) in doubts for delegate in one.delegates)
    )
    return doubts, {(one.chain, who): one.wait for one in again for who in one.delegates if one.wait is not None}


def doubting(case: Case, doubts: Mapping[DelegateKey, str]) -> Case:
    """Return the case with the doubts from a second read of its delegations."""
    mine = {chain: reason for (chain, delegate), reason in doubts.items() if (chain, delegate) in case.delegated.known}
    if not mine:
        return case
    return replace(case, delegated=replace(case.delegated, doubts={**case.delegated.doubts, **mine}))
