"""Decide which roles a member should have: pure functions of answers, grants and live roles, without any I/O.

The product's promise is kept here: a role is taken only when all rules for it say no, and unknown changes nothing.
docs/architecture/how-a-role-moves.md lists every condition. Here are 3 to 10 for taking a role and G5 to G8 for giving
one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from gateways.discord.types import GuildMember
from services.core.answer import Answer
from services.rules.rule_terms import RuleTerms


@dataclass(frozen=True, slots=True)
class GrantFacts:
    """The ledger's facts about one role of one member."""

    role_id: str
    state: str
    rule_ids: tuple[int, ...] = ()
    no_since: datetime | None = None
    lost_at: datetime | None = None
    """When we recorded that somebody else took a role that we gave."""
    gift: bool = False
    """An admin lets the member keep it until a rule says yes again."""
    held_back: bool = False
    """The breaker stopped its removal."""
    protected: bool = False
    """An admin protects the member or the role: it is not taken whatever the rules say."""
    created_at: datetime | None = field(default=None, compare=False)
    """When the grant was created; no decision depends on it."""
    first_no: str = ""
    """JSON of the answers that would take the role and still need confirmation; a yes clears it."""
    had_before: bool = False
    """Somebody else had given the role before it became ours."""
    forgotten: bool = False
    """The member asked to be forgotten, so no move keeps it for them."""
    never_given: bool = False
    """Its removal was called off before it was given: if the member lacks the role, nobody took it, and it may come."""
    readings: str = field(default="", compare=False)
    """JSON of the readings by which it was given or kept within the last two hours. No decision depends on them; the
    confirmation of a loss does."""


@dataclass(frozen=True, slots=True)
class MoveTerms:
    """A server's open move as it concerns one member: once the move begins, its roles are handed over to us.

    Until an admin approves its end, nobody loses a role of it that somebody else gave them, and members without a
    wallet lose none of its roles.
    """

    roles: frozenset[str] = frozenset()
    begun: bool = False
    ended: bool = False
    has_wallet: bool = False

    def hands_over(self, role_id: str) -> bool:
        """Return whether our rules also decide about holders to whom somebody else gave the role."""
        return self.begun and role_id in self.roles

    def keeps(self, grant: GrantFacts) -> bool:
        """Return whether the move keeps the role, whatever the rules say."""
        if self.ended or grant.forgotten or grant.role_id not in self.roles:
            return False
        return grant.had_before or (grant.state != "giving" and not self.has_wallet)


class Action(Enum):
    """What should happen to one role of one member."""

    NONE = "none"
    GIVE = "give"
    KEEP = "keep"
    """The member keeps the role; the reasons in the ledger are updated."""
    RETURN = "return"
    """Read the member, and give the role again if it is gone: a removal that may have begun is no longer right, or an
    admin made a new rule for a role that somebody else took."""
    ADOPT = "adopt"
    """Somebody else gave the role, and an admin handed it over: it becomes a grant of ours, earned or not."""
    TAKE = "take"
    CALL_OFF = "call_off"
    """Cancel a removal that is not sent yet, because an answer has become unknown since it was decided. The grant keeps
    what is known, so the role is taken as soon as every rule surely says no."""
    WAIT = "wait"
    """Every rule says no, and the grace time is running."""
    FORGET = "forget"
    """Delete the grant: it no longer describes a role that we gave and the member has."""
    LOST = "lost"
    """Somebody else took a role that we gave."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One action and its reasons: the rules that grant the role, or the time since which all rules say no."""

    role_id: str
    action: Action
    rule_ids: tuple[int, ...] = ()
    no_since: datetime | None = None
    due_at: datetime | None = None
    doubtful: bool = False
    """The answer of at least one rule for this role is unknown."""
    replaced: bool = False
    """The role is taken once the member has the role that its rule gives now."""


NEW_ROLE_PAUSE = timedelta(minutes=2)
"""How long the removal of a role waits for the role that its rule gives now, unless that is given earlier."""
TRUCE_ENDS_WITHIN = timedelta(minutes=1)
"""How long a role whose truce is over may wait until that is recorded, before it is decided again."""
NO_TRUCES: Mapping[str, datetime] = {}
NO_MOVE = MoveTerms()
NO_ROLES: frozenset[str] = frozenset()
WRITES = frozenset({Action.GIVE, Action.RETURN, Action.ADOPT, Action.TAKE})
"""The actions that change a role in Discord, or may lead to a change."""


def decide(
    rules: Sequence[RuleTerms],
    answers: Mapping[int, Answer],
    grants: Sequence[GrantFacts],
    live_roles: frozenset[str],
    now: datetime,
    truces: Mapping[str, datetime] = NO_TRUCES,
    moving: MoveTerms = NO_MOVE,
    late_gifts: frozenset[str] = NO_ROLES,
) -> list[Decision]:
    """Return one decision for each role that a rule or the ledger names, in the order of the role ids.

    `answers` maps the id of every deciding rule to its answer; a missing one is unknown. `truces` maps each role
    that is neither given nor taken to the time until which that holds. `moving` is the server's open move.
    `late_gifts` are roles that may be ours although no grant says so.
    """
    ledger = {grant.role_id: grant for grant in grants}
    # One that is earned is given once more: the writer finds it there, and so the ledger learns that it is ours.
    live_roles -= late_gifts - ledger.keys()
    by_role, by_id = dict[str, list[RuleTerms]](), dict[int, RuleTerms]()
    for rule in rules:
        by_role.setdefault(rule.role_id, []).append(rule)
        by_id[rule.id] = rule
    return [
        _unless_left_alone(
            _decide_role(
                role_id,
                by_role.get(role_id, ()),
                _former(by_id, ledger.get(role_id)),
                answers,
                ledger.get(role_id),
                role_id in live_roles,
                now,
                moving,
                comes_first=_comes_first(by_id, answers, ledger, live_roles, truces, role_id),
            ),
            ledger.get(role_id),
            truces.get(role_id),
            now,
        )
        for role_id in sorted(by_role.keys() | ledger.keys())
    ]


def _unless_left_alone(decision: Decision, grant: GrantFacts | None, until: datetime | None, now: datetime) -> Decision:
    """Return the decision, or one to do nothing until `until` if it would change a role that is left alone."""
    cancels = grant is not None and grant.state == "taking"
    if until is None or decision.action not in WRITES or cancels:
        return decision
    # The job that ends a truce queues the member. Until it has, another reconcile would decide the same.
    due_at = until if until > now else now + TRUCE_ENDS_WITHIN
    return Decision(decision.role_id, Action.NONE, due_at=due_at, doubtful=decision.doubtful)


def _former(rules: Mapping[int, RuleTerms], grant: GrantFacts | None) -> list[RuleTerms]:
    """Return the rules that gave the role and now grant another one: they no longer count for it."""
    if grant is None:
        return []
    gave = (rules[rule_id] for rule_id in sorted(set(grant.rule_ids) & rules.keys()))
    return [rule for rule in gave if rule.role_id != grant.role_id]


def _comes_first(
    rules: Mapping[int, RuleTerms],
    answers: Mapping[int, Answer],
    ledger: Mapping[str, GrantFacts],
    live_roles: frozenset[str],
    truces: Mapping[str, datetime],
    role_id: str,
) -> bool:
    """Return whether a rule that gave the role gives another one now that the member may still get.

    A role that somebody else took from the member, or that is left alone, does not count.
    """
    return any(
        rule.decides
        and answers.get(rule.id) is not Answer.NO
        and rule.role_id not in live_roles
        and rule.role_id not in truces
        and ((other := ledger.get(rule.role_id)) is None or other.state == "giving")
        for rule in _former(rules, ledger.get(role_id))
    )


def _decide_role(
    role_id: str,
    rules: Sequence[RuleTerms],
    former: Sequence[RuleTerms],
    answers: Mapping[int, Answer],
    grant: GrantFacts | None,
    has_role: bool,
    now: datetime,
    moving: MoveTerms,
    *,
    comes_first: bool,
) -> Decision:
    deciding = {rule.id: answers.get(rule.id, Answer.UNKNOWN) for rule in rules if rule.decides}
    doubtful = Answer.UNKNOWN in deciding.values()
    resting = {rule.id for rule in (*rules, *former) if rule.rests}
    if Answer.YES in deciding.values():
        reasons = _reasons(deciding, resting, grant)
        yes = [rule for rule in rules if deciding.get(rule.id) is Answer.YES]
        handed_over = _hands_over(rules, moving) and grant is None and has_role
        action = Action.ADOPT if handed_over else _when_earned(grant, has_role, yes)
        return Decision(role_id, action, reasons, doubtful=doubtful)
    if grant is None and has_role and not doubtful and _hands_over(rules, moving):
        # No rule says yes, so the grant begins with `no_since`. The next reconcile treats it like any other grant.
        return _adopted(role_id, rules, now, moving)
    if doubtful and grant is not None and grant.state == "taking" and (has_role or grant.never_given):
        # One that was never given can arrive before the writer reads the member.
        return Decision(role_id, Action.CALL_OFF, doubtful=True)
    if doubtful or grant is None or resting & set(grant.rule_ids):
        return Decision(role_id, Action.NONE, doubtful=doubtful)
    decision = _when_unearned(role_id, (*rules, *former), grant, has_role, now, moving)
    if decision.action is Action.TAKE and comes_first:
        # The new role is given first and this one decided again afterwards, so the member is never without a role.
        return Decision(role_id, Action.WAIT, no_since=decision.no_since, due_at=now + NEW_ROLE_PAUSE, replaced=True)
    return decision


def left_behind(grant: GrantFacts, live: GuildMember, now: datetime) -> bool:
    """Return whether a missing role ended with an earlier membership, because the member joined after we gave it.

    Compares two ages, each measured by one clock: the membership's by Discord's, the grant's by the database's.
    """
    if grant.state not in {"held", "lost"} or grant.role_id in live.roles:
        return False
    if grant.created_at is None or live.joined_at is None or live.read_at is None:
        return False
    return live.read_at - live.joined_at < now - grant.created_at


def changes_nothing(decision: Decision, grants: Sequence[GrantFacts]) -> bool:
    """Return whether everything about the role is known, and neither the role nor its grant has to change."""
    if decision.doubtful or decision.action not in {Action.NONE, Action.KEEP}:
        return False
    grant = next((grant for grant in grants if grant.role_id == decision.role_id), None)
    return decision.action is Action.NONE or (grant is not None and not keeps_differently(decision, grant))


def keeps_differently(decision: Decision, grant: GrantFacts) -> bool:
    """Return whether the grant of a role that stays needs new reasons, or a mark such as `no_since` cleared."""
    marked = bool(grant.no_since or grant.first_no) or grant.gift or grant.held_back or grant.never_given
    return marked or grant.rule_ids != decision.rule_ids


def _reasons(deciding: Mapping[int, Answer], resting: set[int], grant: GrantFacts | None) -> tuple[int, ...]:
    """Return the rules that grant the role: those that say yes, and those that gave it and have not said no since.

    A paused rule that gave the role continues to grant it after the others say no.
    """
    gave = set(grant.rule_ids) if grant is not None else set[int]()
    kept = {rule_id for rule_id in gave if rule_id in resting or deciding.get(rule_id) is Answer.UNKNOWN}
    return tuple(sorted(kept | {rule_id for rule_id, answer in deciding.items() if answer is Answer.YES}))


def _when_earned(grant: GrantFacts | None, has_role: bool, yes: Sequence[RuleTerms]) -> Action:
    if grant is None:
        # Somebody else gave the role: it is right, and we do not own it.
        return Action.NONE if has_role else Action.GIVE
    match grant.state:
        case "giving":
            # What an admin gives back is a gift only until a rule says yes.
            return Action.KEEP if grant.no_since is not None or grant.gift else Action.NONE
        case "taking":
            return Action.RETURN
        case "lost":
            if has_role:
                return Action.FORGET
            return Action.RETURN if any(_asks_again(rule, grant) for rule in yes) else Action.NONE
        case _:
            if has_role:
                return Action.KEEP
            return Action.RETURN if grant.never_given else Action.LOST


def _hands_over(rules: Sequence[RuleTerms], moving: MoveTerms) -> bool:
    return any(rule.takes_over or moving.hands_over(rule.role_id) for rule in rules if rule.decides)


def _adopted(role_id: str, rules: Sequence[RuleTerms], now: datetime, moving: MoveTerms) -> Decision:
    deciding = [rule for rule in rules if rule.decides]
    grace = timedelta(hours=max(rule.grace_hours for rule in deciding))
    until = None if moving.hands_over(role_id) and not moving.ended else now + grace
    return Decision(role_id, Action.ADOPT, tuple(rule.id for rule in deciding), no_since=now, due_at=until)


def _asks_again(rule: RuleTerms, grant: GrantFacts) -> bool:
    """Return whether an admin made this rule after the role was lost, and thereby asks for the role again."""
    return rule.created_at is not None and grant.lost_at is not None and rule.created_at > grant.lost_at


def _when_unearned(
    role_id: str, rules: Sequence[RuleTerms], grant: GrantFacts, has_role: bool, now: datetime, moving: MoveTerms
) -> Decision:
    kept = moving.keeps(grant)
    if (grant.protected or kept) and has_role and grant.state != "lost":
        # Cancel a removal that may be in progress.
        if grant.state == "taking":
            return Decision(role_id, Action.RETURN, grant.rule_ids)
        if grant.protected or grant.gift or grant.no_since is not None:
            return Decision(role_id, Action.NONE)
        # No grace time begins, but the move's screen counts members who hold nothing.
        return Decision(role_id, Action.WAIT, no_since=now)
    if grant.state == "taking":
        return Decision(role_id, Action.NONE)
    may_come = grant.state == "giving" or grant.never_given
    if grant.state == "lost" or (grant.state == "held" and not has_role and not may_come):
        return Decision(role_id, Action.FORGET)
    if grant.gift:
        return Decision(role_id, Action.NONE)
    if may_come and not has_role:
        # It is not given any more. A grace time is for a role that the member has.
        return Decision(role_id, Action.TAKE, no_since=now)
    reasons = [rule for rule in rules if rule.id in grant.rule_ids] or [rule for rule in rules if rule.decides]
    grace = timedelta(hours=max((rule.grace_hours for rule in reasons), default=0))
    since = grant.no_since or now
    if now < since + grace:
        return Decision(role_id, Action.WAIT, no_since=since, due_at=since + grace)
    return Decision(role_id, Action.TAKE, no_since=since)
