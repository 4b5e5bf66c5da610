"""Preview a rule change: a reconcile of the members concerned that writes nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from gateways import Gateways
from gateways.transport import fair_turns
from models import now
from services.core.json_view import json_view
from services.engine import read_and_confirm
from services.engine.cases import Case
from services.engine.decide import Action, Decision, GrantFacts
from services.engine.previews import identifying
from services.engine.previews.plan import PreviewPlan
from services.engine.reconcile_outcome import CaseOutcome

GAIN, KEEP, LOSE, UNKNOWN = "gain", "keep", "lose", "unknown"
OUTCOMES = (LOSE, UNKNOWN, GAIN, KEEP)
"""The outcomes in the order in which an admin should read them."""

LONGEST_SECONDS = 45.0
"""Time limit of a preview; the answer leaves out members not read by then, and says so."""
AT_ONCE = 2
"""The most concurrent previews of one person in one process, because each may ask the chains about thousands of
members. The time that a preview waits counts towards its own time limit."""
_turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()


@json_view
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
            yield found.without_names() if _reveals(found, plan) else found
    finally:
        turn.release()


def _reveals(found: Impact, plan: PreviewPlan) -> bool:
    """Return whether the names would reveal which wallet is whose: so few people meet the rules, or so few do not."""
    if not plan.is_identifying:
        return False
    meeting = len({member.discord_id for member in found.members if member.outcome in {GAIN, KEEP}})
    return identifying.are_few(meeting, found.looked - meeting, by_absence=plan.by_absence)


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
            return _outcome_unchanged(decision, case.grant_of(decision.role_id), has_role)


def _outcome_unchanged(decision: Decision, grant: GrantFacts | None, has_role: bool) -> str | None:
    is_right = bool(decision.rule_ids)
    if decision.doubtful and not is_right:
        return UNKNOWN
    if grant is not None and grant.state == "taking":
        return LOSE
    if grant is not None and grant.state == "giving" and is_right:
        return KEEP if has_role else GAIN
    return KEEP if has_role else None
