"""Preview a rule change: a reconcile of the members concerned that writes nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import text
from sqlmodel import col, select

from gateways import Gateways
from gateways.transport import fair_turns
from locales import _
from models import Rule, ServerMove, now
from models.db.database import release
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import Conflict, MoveNotFound
from services.core.json_view import json_view
from services.core.queue import Claim
from services.engine import cases, preview_log, read_and_confirm
from services.engine.cases import Case
from services.engine.decide import Action, Decision, GrantFacts
from services.engine.reconcile_outcome import CaseOutcome, ServerChain
from services.engine.snapshot import terms_of
from services.guilds import members_intent, permissions
from services.guilds.gateway import known_people
from services.holdings import delegations
from services.holdings.fetch import HoldingsQuestion
from services.rules import contract_check, limits
from services.rules.draft import RuleDraft, check, with_lists, without_lists
from services.rules.expression import lists_in, parse, requirements
from services.rules.replacements import contract_migrations, new_role
from services.rules.replacements.condition_successors import MigrationOrder
from services.rules.replacements.new_role import RoleOrder
from services.rules.rule_rows import apply, copy_of, new_row
from services.rules.rules import in_shadow, own, proposed_together
from services.rules.single_source import SingleSource, single_sources
from services.rules.terms import RuleTerms
from services.rules.types import given_lists, stored_lists
from services.rules.types.address_list_text import ReadList
from services.rules.types.given_lists import GivenLists
from services.rules.types.registry import RULE_TYPES

GAIN, KEEP, LOSE, UNKNOWN = "gain", "keep", "lose", "unknown"
OUTCOMES = (LOSE, UNKNOWN, GAIN, KEEP)
"""The outcomes in the order in which an admin should read them."""

BATCH = 500
LONGEST_SECONDS = 45.0
"""Time limit of a preview; the answer leaves out members not read by then, and says so."""
LISTED_WITHIN, LISTED_EVERY = 10.0, 0.5
"""Seconds for which a preview waits until the bot has read a role's holders, and seconds between two checks."""
AT_ONCE = 2
"""The most concurrent previews of one person in one process, because each may ask the chains about thousands of
members. The time that a preview waits counts towards its own time limit."""
_turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()


@json_view
@dataclass(frozen=True, slots=True)
class MemberImpact:
    """The outcome for one role of one member: `gain`, `keep`, `lose` or `unknown`."""

    discord_id: str
    name: str
    role_id: str
    role_name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Impact:
    """The members who would gain, keep or lose a role or whose outcome is unknown, and their numbers.

    `looked` of the `concerned` members were read, those with the role first. Members who neither have the role nor
    would get it are left out. `unnamed` counts, by outcome, the members who are not named because so few could meet the
    conditions that names would reveal which wallet is whose.
    """

    members: tuple[MemberImpact, ...] = ()
    looked: int = 0
    concerned: int = 0
    unnamed: Mapping[str, int] = field(default_factory=dict[str, int])

    def count(self, outcome: str) -> int:
        """Return how many members have this outcome, named or not."""
        named = sum(1 for member in self.members if member.outcome == outcome)
        return named + self.unnamed.get(outcome, 0)

    def without_names(self) -> "Impact":
        """Return the same impact with numbers instead of names."""
        return replace(self, members=(), unnamed={outcome: self.count(outcome) for outcome in OUTCOMES})


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


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change: a new rule (`draft`), or `changes` to the rule `rule_id`, or its deletion.

    `tiers` are further new rules of the same server, which are made together with `draft`.

    `activates` are shadow rules of the server `server_id` to activate together. `ends_move` proposes the end of that
    server's move, `migrates` a migration to another contract, and `replaces` another role in place of one.
    `ends_migration` is the id of a migration to end.
    """

    draft: RuleDraft | None = None
    tiers: tuple[RuleDraft, ...] = ()
    rule_id: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deletes: bool = False
    server_id: int = 0
    activates: tuple[int, ...] = ()
    ends_move: bool = False
    migrates: MigrationOrder | None = None
    ends_migration: int = 0
    replaces: RoleOrder | None = None


async def plan(db: AsyncSession, outside: Gateways, actor: Actor, proposal: Proposal) -> PreviewPlan:
    """Return the members to read for a proposal, and what to ask about them.

    A rule that stays in shadow is previewed as if it decided. Raises the errors of the change itself (FieldRefused,
    ServerNotFound, RuleNotFound, Conflict, ProviderUnavailable for Discord), and TooMany as `preview_log.note` does.
    """
    if proposal.tiers or proposal.activates or proposal.migrates or proposal.ends_migration or proposal.replaces:
        return await _plan_of_several(db, outside, actor, proposal)
    if proposal.ends_move:
        return await _plan_of_end(db, outside, actor, proposal.server_id)
    if proposal.draft is not None:
        lists = GivenLists()
        draft = without_lists(proposal.draft, lists)
        check(draft)
        found = await permissions.require_admin(db, outside, actor, draft.server_id)
        read = await lists.read()
        rule = before = new_row(with_lists(draft, lists), found, actor.discord_id)
        await limits.check(db, rule.server_id, parse(rule.expression))
        await contract_check.complete_for_preview(db, outside, rule)
        rule.state = "active"
    else:
        before, found = await own(db, outside, actor, proposal.rule_id)
        rule = copy_of(before)
        changes, read = await given_lists.read_out(proposal.changes)
        if proposal.deletes:
            rule.deleted_at = now()
        else:
            apply(rule, changes, found)
            if rule.expression != before.expression:
                await limits.check(db, rule.server_id, parse(rule.expression), rule_id=proposal.rule_id)
                await contract_check.complete_for_preview(db, outside, rule)
        if before.state == rule.state == "shadow":
            rule.state = "active"
    if not proposal.deletes:
        await stored_lists.check(db, rule.server_id, lists_in(parse(rule.expression)), beside=read.keys())
    roles = {one.role_id: one.role_name for one in (before, rule)}
    others = await db.exec(select(Rule).where(Rule.server_id == rule.server_id, col(Rule.id) != proposal.rule_id))
    terms = [terms_of(one) for one in (*others.all(), rule) if one.role_id in roles]
    alone = () if proposal.deletes else single_sources(parse(rule.expression))
    singling = not proposal.deletes and preview_log.is_identifying(parse(before.expression), parse(rule.expression))
    await preview_log.note(db, actor, rule, deletes=proposal.deletes, singling=singling)
    planned = await _plan(db, outside, rule.server_id, terms, roles, read)
    return replace(
        planned, asked_by=actor.user_id, server_id=rule.server_id, single_sources=alone, is_identifying=singling
    )


async def _plan_of_several(db: AsyncSession, outside: Gateways, actor: Actor, proposal: Proposal) -> PreviewPlan:
    """Return the plan for several rules that change together."""
    server_id = proposal.draft.server_id if proposal.draft is not None else proposal.server_id
    pairs = await _several(db, outside, actor, proposal)
    alone = dict[SingleSource, None]()
    singling = False
    for before, rule in pairs:
        tree = parse(rule.expression)
        await stored_lists.check(db, server_id, lists_in(tree))
        is_singling = preview_log.is_identifying(parse(before.expression), tree)
        await preview_log.note(db, actor, rule, deletes=False, singling=is_singling)
        singling = singling or is_singling
        alone.update(dict.fromkeys(single_sources(tree)))
    proposed = [rule for _, rule in pairs]
    roles = {rule.role_id: rule.role_name for pair in pairs for rule in pair}
    ids = [rule.id for rule in proposed]
    others = await db.exec(select(Rule).where(Rule.server_id == server_id, col(Rule.id).not_in(ids)))
    terms = [terms_of(one) for one in (*others.all(), *proposed) if one.role_id in roles]
    planned = await _plan(db, outside, server_id, terms, roles, {})
    return replace(
        planned, asked_by=actor.user_id, server_id=server_id, single_sources=tuple(alone), is_identifying=singling
    )


async def _several(db: AsyncSession, outside: Gateways, actor: Actor, proposal: Proposal) -> list[tuple[Rule, Rule]]:
    """Return the rules that change together, as they are and as they would be.

    A rule to activate that is no longer in shadow is left out.
    """
    server_id = proposal.server_id
    if proposal.draft is not None:
        return await proposed_together(db, outside, actor, (proposal.draft, *proposal.tiers))
    if proposal.migrates is not None:
        return await contract_migrations.proposed(db, outside, actor, server_id, proposal.migrates)
    if proposal.ends_migration:
        return await contract_migrations.proposed_end(db, outside, actor, server_id, proposal.ends_migration)
    if proposal.replaces is not None:
        return await new_role.proposed(db, outside, actor, server_id, proposal.replaces)
    found = await permissions.require_admin(db, outside, actor, server_id)
    pairs = [(one, copy_of(one)) for one in (await db.exec(in_shadow(server_id, proposal.activates))).all()]
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
    singling = preview_log.is_identifying(*(parse(rule.expression) for rule in deciding))
    roles = {rule.role_id: rule.role_name for rule in rules}
    planned = await _plan(db, outside, server_id, [terms_of(rule) for rule in rules], roles, {})
    for batch, _questions in planned.batches:
        for case in batch:
            case.moving = replace(case.moving, begun=True, ended=True)
    return replace(planned, asked_by=actor.user_id, server_id=server_id, is_identifying=singling)


def turn_of(user_id: int) -> asyncio.Semaphore:
    """Return the semaphore that limits a person's concurrent previews."""
    return _turns.setdefault(user_id, asyncio.Semaphore(AT_ONCE))


async def impacts(outside: Gateways, plan: PreviewPlan) -> AsyncIterator[Impact]:
    """Yield the result so far after reading each batch; nothing is written.

    Ends early when the time limit is reached.
    """
    yield Impact(concerned=plan.concerned)
    deadline = asyncio.get_running_loop().time() + LONGEST_SECONDS
    turn = turn_of(plan.asked_by)
    try:
        async with asyncio.timeout_at(deadline):
            await turn.acquire()
    except TimeoutError:
        return
    try:
        async for found in _impacts(outside, plan, deadline):
            few = found.count(GAIN) + found.count(KEEP) < preview_log.FEWEST_NAMED
            yield found.without_names() if plan.is_identifying and few else found
    finally:
        turn.release()


async def _impacts(outside: Gateways, plan: PreviewPlan, deadline: float) -> AsyncIterator[Impact]:
    impact = Impact(concerned=plan.concerned)
    for batch, wanted in plan.batches:
        try:
            async with asyncio.timeout_at(deadline):
                with fair_turns.on_behalf_of(f"server:{plan.server_id}"):
                    done = await read_and_confirm.decide_cases(outside, batch, wanted, now())
        except TimeoutError:
            return
        found = [member for item in done.outcomes for member in _outcomes(item, plan)]
        members = sorted(
            (*impact.members, *found),
            key=lambda one: (OUTCOMES.index(one.outcome), one.name.casefold(), one.discord_id),
        )
        impact = Impact(tuple(members), impact.looked + len(batch), plan.concerned)
        yield impact


async def whole(outside: Gateways, plan: PreviewPlan) -> Impact:
    """Return the final result of the preview."""
    impact = Impact(concerned=plan.concerned)
    async for impact in impacts(outside, plan):  # noqa: B007 - the last one is the whole
        pass
    return impact


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
    people, concerned = await _concerned(db, server_id, sorted(roles), _most(terms), decides=_reads(terms))
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


def _reads(terms: Sequence[RuleTerms]) -> bool:
    return any(rule.decides for rule in terms)


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
        text(
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
            """
        ),
        {"server": server_id, "roles": list(roles), "most": most, "decides": decides},
    )
    rows = result.all()
    return [(str(discord_id), str(name)) for discord_id, name, _ in rows], int(rows[0][2]) if rows else 0


def _outcomes(item: CaseOutcome, plan: PreviewPlan) -> list[MemberImpact]:
    who = item.case.claim.discord_id
    name = plan.names.get(who, who)
    if item.gone:
        return []
    if item.fault is not None:
        return [MemberImpact(who, name, role_id, plan.roles[role_id], UNKNOWN) for role_id in sorted(plan.roles)]
    found: list[MemberImpact] = []
    for decision in item.decisions:
        if decision.role_id in plan.roles and (outcome := _outcome(item.case, decision)) is not None:
            found.append(MemberImpact(who, name, decision.role_id, plan.roles[decision.role_id], outcome))
    return found


def _outcome(case: Case, decision: Decision) -> str | None:
    """Return the outcome of a decision for the member; None if the role does not concern them."""
    has_role = decision.role_id in case.roles
    if not case.bot_invited:
        return KEEP if has_role else None
    match decision.action:
        case Action.GIVE:
            return GAIN
        case Action.RETURN | Action.KEEP:
            return KEEP if has_role else GAIN
        case Action.ADOPT | Action.WAIT:
            # Without `due_at` nothing is taken: the role is right, or an open move keeps it.
            return KEEP if decision.due_at is None else LOSE
        case Action.TAKE:
            return LOSE
        case Action.FORGET | Action.LOST:
            return KEEP if has_role else None
        case Action.NONE | Action.CALL_OFF:
            return _outcome_without_move(decision, _grant(case, decision.role_id), has_role)


def _outcome_without_move(decision: Decision, grant: GrantFacts | None, has_role: bool) -> str | None:
    is_right = bool(decision.rule_ids)
    if decision.doubtful and not is_right:
        return UNKNOWN
    if grant is not None and grant.state == "taking":
        return LOSE
    if grant is not None and grant.state == "giving" and is_right:
        return KEEP if has_role else GAIN
    return KEEP if has_role else None


def _grant(case: Case, role_id: str) -> GrantFacts | None:
    return next((grant for grant in case.grants if grant.role_id == role_id), None)
