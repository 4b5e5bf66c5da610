"""The plan of a preview: the rules as proposed, and the members to read once the holders of their roles are listed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Rule, ServerMove, now
from models.db.database import release
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import Conflict, MoveNotFound
from services.core.queue import Claim
from services.engine import cases, read_and_confirm
from services.engine.cases import Case
from services.engine.previews import identifying, preview_log
from services.engine.previews.proposals import (
    Activation,
    MigrationEnd,
    MoveEnd,
    NewContract,
    NewRole,
    NewRule,
    NewTiers,
    Proposal,
    RuleChange,
    RuleDeletion,
    RuleProposal,
)
from services.engine.reconcile_outcome import ServerChain
from services.engine.snapshot import terms_of
from services.guilds import members_intent, permissions
from services.guilds.gateway import known_people
from services.holdings import delegations
from services.holdings.fetch import HoldingsQuestion
from services.rules import contract_check, limits
from services.rules.draft import RuleDraft
from services.rules.expression import lists_in, parse, parse_stored, requirements
from services.rules.replacements import contract_migrations, new_role
from services.rules.rule_rows import apply, copy_of
from services.rules.rule_terms import RuleTerms
from services.rules.rules import in_shadow, own, proposed_together
from services.rules.single_source import SingleSource, single_sources
from services.rules.types import stored_address_lists, submitted_address_lists
from services.rules.types.address_list_text import ReadList
from services.rules.types.registry import RULE_TYPES

BATCH = 500
LISTED_WITHIN, LISTED_EVERY = 10.0, 0.5
"""Seconds for which a preview waits until the bot has read a role's holders, and seconds between two checks."""


@dataclass(frozen=True, slots=True)
class PreviewPlan:
    """The members whom a change can concern, in batches with the questions about them, from one snapshot."""

    roles: Mapping[str, str]
    """The roles in question: id → name."""
    batches: tuple[tuple[Sequence[Case], Mapping[ServerChain, HoldingsQuestion]], ...]
    names: Mapping[str, str]
    concerned: int
    asked_by: int = 0
    """The id of the user who asked for it."""
    server_id: int = 0
    single_sources: tuple[SingleSource, ...] = ()
    """The parts of the proposed rule that depend on a single source; empty if it is deleted."""
    is_identifying: bool = False
    """Whether so few wallets may meet the conditions that names would reveal which wallet is whose."""
    by_absence: bool = False
    """Whether so few may fail to meet them that the names of all others would reveal it."""


@dataclass(frozen=True, slots=True)
class ProposedRules:
    """A server's rules that a proposal makes or changes, each as it is and as it would be; a new one is twice the same.

    `lists` are the lists of addresses that came with the proposal and are not stored: digest → list.
    """

    server_id: int
    pairs: Sequence[tuple[Rule, Rule]]
    lists: Mapping[str, ReadList] = field(default_factory=dict[str, ReadList])


async def plan(db: AsyncSession, outside: Gateways, actor: Actor, proposal: Proposal) -> PreviewPlan:
    """Return the members to read for a proposal, and what to ask about them.

    A rule that stays in shadow is previewed as if it decided. Raises the errors of the change itself (FieldRefused,
    ServerNotFound, RuleNotFound, MoveNotFound, Conflict, ProviderUnavailable for Discord), and TooMany as
    `preview_log.note` does.
    """
    if isinstance(proposal, MoveEnd):
        return await _plan_of_end(db, outside, actor, proposal.server_id)
    proposed = await _proposed(db, outside, actor, proposal)
    alone, singling, by_absence = dict[SingleSource, None](), False, False
    for before, rule in proposed.pairs:
        deletes, is_singling = rule.deleted_at is not None, False
        if not deletes:
            former, tree = parse_stored(before.expression), parse_stored(rule.expression)
            await stored_address_lists.check(db, proposed.server_id, lists_in(tree), beside=proposed.lists.keys())
            is_singling = identifying.is_identifying(former, tree)
            by_absence = by_absence or identifying.is_identifying_by_absence(former, tree)
            alone.update(dict.fromkeys(single_sources(tree)))
        await preview_log.note(db, actor, rule, deletes=deletes, singling=is_singling)
        singling = singling or is_singling
    rules = [rule for _before, rule in proposed.pairs]
    roles = {rule.role_id: rule.role_name for pair in proposed.pairs for rule in pair}
    ids = [rule.id for rule in rules if rule.id is not None]
    others = await db.exec(select(Rule).where(Rule.server_id == proposed.server_id, col(Rule.id).not_in(ids)))
    terms = [terms_of(one) for one in (*others.all(), *rules) if one.role_id in roles]
    planned = await _plan(db, outside, proposed.server_id, terms, roles, proposed.lists)
    return replace(
        planned,
        asked_by=actor.user_id, server_id=proposed.server_id, single_sources=tuple(alone), is_identifying=singling,
        by_absence=by_absence,
    )  # fmt: skip


async def _proposed(db: AsyncSession, outside: Gateways, actor: Actor, proposal: RuleProposal) -> ProposedRules:
    """Return the rules of a proposal. Raises as `plan` does."""
    match proposal:
        case NewRule():
            return await _new_rules(db, outside, actor, [proposal.draft])
        case NewTiers(drafts):
            return await _new_rules(db, outside, actor, drafts)
        case RuleChange():
            return await _changed_rule(db, outside, actor, proposal)
        case RuleDeletion(rule_id):
            before, _found = await own(db, outside, actor, rule_id)
            rule = copy_of(before)
            rule.deleted_at = now()
            return ProposedRules(rule.server_id, [(before, _deciding(before, rule))])
        case Activation(server_id):
            pairs = await _activated(db, outside, actor, proposal)
        case NewContract(server_id, order):
            pairs = await contract_migrations.proposed(db, outside, actor, server_id, order)
        case MigrationEnd(server_id, migration_id):
            pairs = await contract_migrations.proposed_end(db, outside, actor, server_id, migration_id)
        case NewRole(server_id, order):
            pairs = await new_role.proposed(db, outside, actor, server_id, order)
        case _:
            assert_never(proposal)
    return ProposedRules(server_id, pairs)


async def _new_rules(db: AsyncSession, outside: Gateways, actor: Actor, drafts: Sequence[RuleDraft]) -> ProposedRules:
    pairs, lists = await proposed_together(db, outside, actor, drafts)
    return ProposedRules(drafts[0].server_id, pairs, lists)


async def _changed_rule(db: AsyncSession, outside: Gateways, actor: Actor, proposal: RuleChange) -> ProposedRules:
    before, found = await own(db, outside, actor, proposal.rule_id)
    rule = copy_of(before)
    changes, read = await submitted_address_lists.read_out(proposal.changes)
    apply(rule, changes, found)
    if rule.expression != before.expression:
        await limits.check(db, rule.server_id, parse(rule.expression), rule_id=proposal.rule_id)
        await contract_check.complete_for_preview(db, outside, rule)
    return ProposedRules(rule.server_id, [(before, _deciding(before, rule))], read)


def _deciding(before: Rule, rule: Rule) -> Rule:
    """Return the rule as if it decided, if it is in shadow and stays there."""
    if before.state == rule.state == "shadow":
        rule.state = "active"
    return rule


async def _activated(
    db: AsyncSession, outside: Gateways, actor: Actor, proposal: Activation
) -> list[tuple[Rule, Rule]]:
    """Return the rules that leave the shadow; a rule that is no longer in shadow is left out."""
    found = await permissions.require_admin(db, outside, actor, proposal.server_id)
    stored = await db.exec(in_shadow(proposal.server_id, proposal.rule_ids))
    pairs = [(one, copy_of(one)) for one in stored.all()]
    for _before, rule in pairs:
        apply(rule, {"state": "active"}, found)
    return pairs


async def _plan_of_end(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> PreviewPlan:
    """Return the plan for the end of the server's open move. Raises MoveNotFound without one."""
    await permissions.require_admin(db, outside, actor, server_id)
    open_move = select(ServerMove).where(ServerMove.server_id == server_id, ServerMove.state == "open")
    move = (await db.exec(open_move)).first()
    if move is None:
        raise MoveNotFound
    stored = await db.exec(select(Rule).where(Rule.server_id == server_id, col(Rule.role_id).in_(move.roles)))
    rules = stored.all()
    deciding = [rule for rule in rules if terms_of(rule).decides]
    trees = [parse_stored(rule.expression) for rule in deciding]
    roles = {rule.role_id: rule.role_name for rule in rules}
    planned = await _plan(db, outside, server_id, [terms_of(rule) for rule in rules], roles, {})
    for batch, _questions in planned.batches:
        for case in batch:
            case.moving = replace(case.moving, begun=True, ended=True)
    return replace(
        planned,
        asked_by=actor.user_id, server_id=server_id, is_identifying=identifying.is_identifying(*trees),
        by_absence=identifying.is_identifying_by_absence(*trees),
    )  # fmt: skip


async def _plan(
    db: AsyncSession,
    outside: Gateways,
    server_id: int,
    terms: Sequence[RuleTerms],
    roles: Mapping[str, str],
    lists: Mapping[str, ReadList],
) -> PreviewPlan:
    if any(rule.takes_over for rule in terms):
        await _list_holders(db, server_id, sorted(roles))
    decides = any(rule.decides for rule in terms)
    people, concerned = await _concerned(db, server_id, sorted(roles), _most(terms), decides=decides)
    everybody = [Claim(server_id, discord_id, 0, 0, 0) for discord_id, _ in people]
    await _read_delegations(db, outside, everybody, terms)
    batches: list[tuple[Sequence[Case], Mapping[ServerChain, HoldingsQuestion]]] = []
    for start in range(0, len(people), BATCH):
        batch = await cases.load(db, everybody[start : start + BATCH], {server_id: terms}, {server_id: lists})
        for case in batch:
            case.grants = tuple(grant for grant in case.grants if grant.role_id in roles)
        batches.append((batch, await read_and_confirm.questions(db, batch)))
    return PreviewPlan(roles, tuple(batches), dict(people), concerned)


async def _list_holders(db: AsyncSession, server_id: int, roles: Sequence[str]) -> None:
    """Have the bot store everybody who has one of these roles, including people who got it by hand and never met us.

    Raises Conflict while the bot is still reading the list. If it may not list members, only known holders count.
    """
    missing = await known_people.unlisted(db, server_id, roles)
    if not missing or not await members_intent.may_list_members(db):
        return
    await known_people.watch(db, server_id, missing)
    await release(db)
    until = asyncio.get_running_loop().time() + LISTED_WITHIN
    while await known_people.unlisted(db, server_id, missing):
        await release(db)
        if asyncio.get_running_loop().time() >= until:
            raise Conflict(_("The bot is still reading who has this role. Preview again in a minute."))
        await asyncio.sleep(LISTED_EVERY)


async def _read_delegations(
    db: AsyncSession, outside: Gateways, claims: Sequence[Claim], terms: Sequence[RuleTerms]
) -> None:
    """Read the delegations to these members and store them: they are facts, whatever the preview shows."""
    stale = await cases.delegations_to_read(db, claims, {claim.server_id: terms for claim in claims})
    await release(db)
    await delegations.remember(db, await delegations.read(outside, stale))


def _most(terms: Sequence[RuleTerms]) -> int:
    """Return how many members to preview; the most expensive type of requirement in the rules sets the limit."""
    types = {leaf.kind for rule in terms if rule.decides for leaf in requirements(rule.expression)}
    return min((one.previewed for one in types), default=max(one.previewed for one in RULE_TYPES.values()))


async def _concerned(
    db: AsyncSession, server_id: int, roles: Sequence[str], most: int, *, decides: bool
) -> tuple[list[tuple[str, str]], int]:
    """Return up to `most` members (id and name) who have one of the roles or could get it, holders first.

    Also return the total. If that exceeds the limit, the members are a fair sample: ordered by a hash, not by age.
    """
    result = await db.execute(
        """
        SELECT discord_id, name, count(*) OVER () FROM (
            SELECT m.discord_id, m.name,
                m.roles && CAST(:roles AS text[]) OR EXISTS (
                    SELECT 1 FROM "grant" g WHERE g.server_id = m.server_id AND g.discord_id = m.discord_id
                    AND g.role_id = ANY(CAST(:roles AS text[]))) AS has_it,
                :decides AND EXISTS (
                    SELECT 1 FROM wallet w JOIN "user" u ON u.id = w.user_id WHERE u.discord_id = m.discord_id
                ) AS proved
            FROM member m WHERE m.server_id = :server AND m.left_at IS NULL AND NOT m.bot) one
        WHERE has_it OR proved ORDER BY has_it DESC, md5(discord_id) LIMIT :most
        """,
        {"server": server_id, "roles": list(roles), "most": most, "decides": decides},
    )
    rows = result.all()
    return [(str(discord_id), str(name)) for discord_id, name, _ in rows], int(rows[0][2]) if rows else 0
