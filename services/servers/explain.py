"""Explain why a member has or lacks each role, from the rules, the ledger and the newest trusted readings."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import select

from gateways import Gateways
from locales import _, day_and_time
from locales.stored_texts import said
from models import Grant, Member, Rule, Server, now
from models.db.session import AsyncSession
from services.collections import collections
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.json_view import json_view
from services.core.queue import Claim
from services.engine import cases
from services.engine.cases import Case
from services.engine.decide import Action, Decision, GrantFacts, MoveTerms, decide
from services.engine.reconcile_outcome import read_own
from services.guilds import members, permissions, rivals
from services.guilds.role_safety import UNKNOWN_ROLE
from services.holdings import last_known
from services.holdings.evaluate import verdict_by
from services.holdings.last_known import Memory
from services.holdings.requirement_view import RequirementView, view_of, view_of_reading
from services.holdings.wallet_shares import Delegated
from services.roles import breaker
from services.rules.expression import Requirement, requirements
from services.rules.wording import Names
from services.servers import activity
from services.servers.member_list import OURS, wallets_of
from settings import settings


@json_view
class RuleWhy:
    """One rule's answer for the member: `yes`, `no` or `unknown`."""

    id: int
    name: str
    state: str
    outcome: str
    requirements: tuple[RequirementView, ...]


@json_view
class RoleWhy:
    """One role: its rules' answers, whether the member has it and from whom, and what happens next."""

    role_id: str
    role_name: str
    rules: tuple[RuleWhy, ...]
    held: bool
    granted_by_us: bool
    next: str
    left_alone_until: datetime | None = None
    """Until when the role is neither given nor taken, because rivals reversed our changes repeatedly."""


@json_view
class MemberWhy:
    """A member and every role that a rule or the ledger names."""

    discord_id: str
    name: str
    roles: tuple[RoleWhy, ...]
    protected: bool
    """Whether an admin protects the member: nothing is taken from them."""


async def why(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, discord_id: str) -> MemberWhy:
    """Explain why a member has or lacks each role, without reading any chain.

    Raises ServerNotFound unless the actor runs the server, MemberNotFound, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    shared = (await wallets_of(db, server_id, [discord_id])).get(discord_id)
    return await _of(db, server_id, discord_id, show_wallets=bool(shared and shared.shared))


async def own(db: AsyncSession, actor: Actor, server_id: int) -> MemberWhy:
    """Explain the actor's own roles, with their own wallets and without rules in shadow. Raises MemberNotFound."""
    return await _of(db, server_id, actor.discord_id, show_wallets=True, show_shadow=False)


async def _of(
    db: AsyncSession, server_id: int, discord_id: str, *, show_wallets: bool, show_shadow: bool = True
) -> MemberWhy:
    member = await members.current_member(db, server_id, discord_id)
    claims = [Claim(server_id, discord_id, 0, 0, 0)]
    (case,) = await cases.load(db, claims)
    rows = await db.exec(select(Rule.id, Rule.name, Rule.role_id, Rule.role_name).where(Rule.server_id == server_id))
    rules = rows.all()
    titles = {rule_id or 0: name for rule_id, name, _, _ in rules}
    role_names = {role_id: role_name for _, _, role_id, role_name in rules}
    left = [grant.role_id for grant in case.grants if grant.role_id not in role_names]
    role_names |= await activity.role_names(db, server_id, left)
    leaves = [leaf for terms in case.rules for leaf in requirements(terms.expression)]
    names = await collections.names(db, [(leaf.chain, leaf.contract) for leaf in leaves])
    places = [*(address for _, address in case.wallets), *(vault.address for vault in case.delegated.vaults)]
    memory = await last_known.load(db, leaves, places)
    told: dict[int, RuleWhy] = {}
    answers: dict[int, Answer] = {}
    for terms in case.rules:
        known = [
            _requirement(leaf, case, case.delegated_by(terms, wanted=wanted), memory, names, shared=show_wallets)
            for leaf, wanted in terms.leaves
        ]
        answers[terms.id] = verdict_by(terms.expression, case.wallets, (Answer(view.outcome) for view in known))
        views = tuple(view for at, view in enumerate(known) if view not in known[:at])
        told[terms.id] = RuleWhy(terms.id, titles.get(terms.id, ""), terms.state, answers[terms.id].value, views)
    grants = await db.exec(select(Grant).where(Grant.server_id == server_id, Grant.discord_id == discord_id))
    ledger = {grant.role_id: grant for grant in grants.all()}
    held_back = {row.role_id for row in await breaker.tripped(db, server_id)}
    takers = await rivals.last_taker(db, server_id, discord_id)
    by_role: dict[str, list[RuleWhy]] = {}
    for terms in case.rules:
        if not terms.deleted and (show_shadow or terms.state != "shadow"):
            by_role.setdefault(terms.role_id, []).append(told[terms.id])
    roles: list[RoleWhy] = []
    for decision in decide(case.rules, answers, case.grants, case.roles, now(), case.truces, case.moving):
        role_id, grant = decision.role_id, ledger.get(decision.role_id)
        about = by_role.get(role_id, [])
        if not about and grant is None:
            continue
        stopped, taker = role_id in held_back, takers.get(role_id)
        following = _next(case, decision, grant, about, member, held_back=stopped, taker=taker)
        roles.append(
            RoleWhy(
                role_id=role_id,
                role_name=role_names.get(role_id) or _(UNKNOWN_ROLE),
                rules=tuple(about),
                held=role_id in case.roles,
                granted_by_us=grant is not None and grant.state in OURS,
                next=following,
                left_alone_until=case.truces.get(role_id),
            )
        )
    server = await db.get_one(Server, server_id, populate_existing=True)
    return MemberWhy(discord_id, member.name, tuple(roles), discord_id in server.protected_members)


def _requirement(
    leaf: Requirement, case: Case, vaults: Delegated | None, memory: Memory, names: Names, *, shared: bool
) -> RequirementView:
    """Return the view of a requirement from its last reading; our own tables are read now."""
    if leaf.kind.chainless:
        return view_of_reading(read_own(leaf, case.wallets, case.tables), names, shared=shared)
    known = last_known.recall(leaf, case.wallets, memory, vaults)
    return view_of(leaf, known, names, shared=shared)


def _next(
    case: Case,
    decision: Decision,
    grant: Grant | None,
    rules: Sequence[RuleWhy],
    member: Member,
    *,
    held_back: bool,
    taker: tuple[str, datetime] | None,
) -> str:
    """Return what happens to the role next, in a sentence; `taker` is who last took it from the member, and when."""
    facts, has_role = case.grant_of(decision.role_id), decision.role_id in case.roles
    protected = facts is not None and facts.protected
    if (until := case.truces.get(decision.role_id)) is not None:
        return _left_alone(until)
    if has_role and not protected and _waits_for_the_end(decision, facts, case.moving):
        return _("Stays until an admin approves the end of the move from another bot.")
    if decision.action is Action.NONE and grant is not None and grant.state == "lost":
        return _lost(taker)
    if has_role and protected and decision.action is Action.NONE and not decision.doubtful:
        return _("Stays whatever the rules say, because an admin protects it.")
    match decision.action:
        case Action.GIVE | Action.RETURN if member.pending:
            return _("Given once the server's membership screening is finished.")
        case Action.GIVE | Action.RETURN:
            return _("Given at the next check, within moments.")
        case Action.KEEP if grant is None or grant.state != "giving":
            return _("Stays while a rule says yes.")
        case Action.ADOPT if decision.no_since is None:
            return _("Follows the rules from the next check on: a rule that takes it over says yes.")
        case Action.ADOPT if decision.due_at == decision.no_since:
            return _("Taken over at the next check, and taken then: no rule says yes.")
        case Action.LOST:
            return _lost(taker)
        case Action.WAIT if decision.replaced:
            return _("Taken once the role that its rule gives now is given.")
        case Action.WAIT | Action.ADOPT:
            # Translators: {time} is a date and a time.
            sentence = _("Taken on {time} unless a rule says yes before.")
            return sentence.format(time=day_and_time(decision.due_at)) if decision.due_at else ""
        case Action.TAKE if held_back:
            return _("Stays until an admin approves the removals that were held back.")
        case Action.TAKE:
            return _("Taken at the next check, if a second reading agrees.")
        case Action.FORGET:
            return _("There is no role from {product} left to take.").format(product=settings().product_name)
        case Action.NONE | Action.KEEP | Action.CALL_OFF:
            return _unchanged(decision, grant, rules, member)


def _waits_for_the_end(decision: Decision, facts: GrantFacts | None, moving: MoveTerms) -> bool:
    """Return whether only an open move keeps the role."""
    match decision.action:
        case Action.WAIT | Action.ADOPT:
            return decision.no_since is not None and decision.due_at is None
        case Action.NONE:
            return facts is not None and moving.keeps(facts) and not decision.doubtful
        case _:
            return False


def _unchanged(decision: Decision, grant: Grant | None, rules: Sequence[RuleWhy], member: Member) -> str:
    if grant is not None and grant.state == "giving":
        screened = _("Given once the server's membership screening is finished.")
        return screened if member.pending else _("Being given now.") + _trouble(grant)
    if grant is not None and grant.state == "taking":
        return _("Being taken now.") + _trouble(grant)
    if grant is None and decision.role_id in member.roles:
        return _("Stays as it is, because somebody else gave it.")
    if decision.doubtful:
        return _("Nothing changes until what is unknown has been read.")
    if grant is not None and grant.gift_since is not None:
        return _("Stays, because an admin decided so; once a rule says yes again, rules decide again.")
    states = {rule.state for rule in rules}
    if states == {"shadow"}:
        return _("Nothing changes while its rules are in shadow.")
    if "active" not in states:
        return _("Nothing changes while its rules are paused.")
    return (
        _("Stays while a rule that gave it is paused.")
        if grant is not None
        else _("Not given, because no rule says yes.")
    )


def _lost(taker: tuple[str, datetime] | None) -> str:
    if taker is None:
        return _("Somebody else took it; it is not given again automatically.")
    name, at = taker
    # Translators: {name} is another bot or a person, {time} a date and a time.
    told = _("{name} took it on {time}; it is not given again automatically.")
    return told.format(name=name, time=day_and_time(at))


def _left_alone(until: datetime) -> str:
    told = _(
        "Others reversed it twice within an hour, so it is neither given nor taken until {time}. Then the rules decide "
        "again; an admin can let them earlier."
    )
    return told.format(time=day_and_time(until))


def _trouble(grant: Grant) -> str:
    if not grant.last_error:
        return ""
    # Translators: {reason} is what Discord answered, in English.
    return " " + _("The last try failed: {reason}").format(reason=said(grant.last_error))
