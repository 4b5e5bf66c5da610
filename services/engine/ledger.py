"""Write decisions to the ledger in bulk, and drop removals that a newer sighting overtook, five times in a row at most.

Role changes are committed before Discord is asked, so a crash loses none.
"""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import Table, bindparam, delete, func, or_, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import SQLModel, col

from gateways.chains.catalogue import CHAINS
from models import Grant, GrantKey, Notice
from models.db.session import AsyncSession
from services.collections import stored_traits
from services.core import audit, queue
from services.engine import grace_warnings
from services.engine.cases import Case
from services.engine.decide import Action, Decision, GrantFacts, keeps_differently
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome
from services.guilds import rivals
from services.guilds.members import came_back, mark_missing, record_left, seen_many
from services.guilds.rivals import Reversal
from services.holdings import confirmation, fetch, last_known
from services.roles import breaker, in_doubt, removal_batches
from services.roles.outbox import INTENT_CHANNEL
from services.runtime.loop_steps import in_steps

ROWS_A_STATEMENT = 1_000
OVERTAKEN = frozenset({Action.GIVE, Action.KEEP, Action.RETURN, Action.CALL_OFF, Action.WAIT})
"""Actions that are right at the block of their evidence, whatever happened later; the next reconcile sees the rest."""
MOST_OVERTAKEN = 5
"""How many reconciles in a row that would take a role may be overtaken by sightings. The next one takes the role, if it
ends before a newer block can be settled. Otherwise anybody could delay a removal forever by naming the wallet in a log
every second. Each reconcile covered everything seen before it began."""
_DUE_NOW: dict[str, Any] = {name: func.now() for name in ("intended_at", "next_at", "updated_at")}
"""The moments of a change that the writer is to send: the database's time, by which it and the lease are ordered."""


class RoleDecision(NamedTuple):
    """A decision about one role of one member, and the outcome of the member's case."""

    item: CaseOutcome
    decision: Decision

    @property
    def line(self) -> GrantKey:
        """The key of the role's line in the ledger."""
        return GrantKey(*self.item.case.who, self.decision.role_id)

    @property
    def grant(self) -> GrantFacts | None:
        """The line as it was loaded; None if there was none."""
        return self.item.case.grant_of(self.decision.role_id)

    @property
    def state(self) -> str:
        """The line's state as it was loaded; empty if there was none."""
        return self.grant.state if self.grant else ""

    @property
    def is_being_given(self) -> bool:
        """Whether the role is to be given, or may still come although its gift was called off."""
        grant = self.grant
        if grant is None:
            return False
        return grant.state == "giving" or (grant.never_given and self.decision.role_id not in self.item.case.roles)

    @property
    def evidence(self) -> dict[str, Any]:
        """The readings behind the decision, as one JSON document."""
        return {"readings": self.item.evidence_documents(self.decision)}

    @property
    def reasons(self) -> dict[str, Any]:
        """Why the member has the role or gets it, as columns of the line."""
        return {"rule_ids": list(self.decision.rule_ids), "evidence": self.evidence}

    @property
    def request_id(self) -> str | None:
        """The request that queued the member."""
        return self.item.case.claim.request_id


async def remember(db: AsyncSession, done: BatchOutcome) -> None:
    """Store what was read, except delegations; unknown or older readings overwrite nothing."""
    await fetch.remember(db, done.asked)
    await stored_traits.remember(db, done.traits)
    await last_known.remember(db, [reading for item in done.outcomes for reading in item.readings_made()])


async def write_decisions(
    db: AsyncSession, worker: str, done: BatchOutcome, ours: Collection[str], seen: Collection[str] = ()
) -> int:
    """Write the decisions of a batch and complete its claims; return the number of queued role changes.

    A case whose key is not in `ours` is skipped: its member was marked again and stays queued. If its key is in `seen`,
    only sightings marked the member, so decisions that need no newer answer are written (see OVERTAKEN). Members who
    are gone are not written here, but by `write_departures`.
    """
    await remember(db, done)
    await _forget_removed(db, [item.case async for item in in_steps(done.outcomes) if item.case.claim.key not in ours])
    denied = await _drop_overtaken(done, seen)
    looked = [
        item
        async for item in in_steps(done.outcomes)
        if not item.calm and (item.case.claim.key in ours or item.case.claim.key in seen)
    ]
    await seen_many(db, [(item.case.claim.server_id, item.live) for item in looked if item.live is not None])
    await _lock(db, looked)
    left_behind = {item.case.who: [grant.role_id for grant in item.left_behind] for item in looked if item.left_behind}
    await came_back(db, left_behind)
    active = [item for item in looked if item.case.bot_invited and not item.case.left]
    by_action: dict[Action, list[RoleDecision]] = {action: [] for action in Action}
    async for one in in_steps(RoleDecision(item, decision) for item in active for decision in item.decisions):
        by_action[one.decision.action].append(one)
    written = await _give(db, by_action[Action.GIVE])
    # If our own late removal took the role, it is given again if a rule says yes: the removal was cancelled before
    # Discord answered.
    absent = [one.line for one in (*by_action[Action.LOST], *by_action[Action.FORGET])]
    late = await in_doubt.removals(db, absent)
    again = [one for one in by_action[Action.LOST] if one.line in late]
    written += await _return(db, [*by_action[Action.RETURN], *again])
    written += await _take(db, by_action[Action.TAKE])
    await _call_off(db, by_action[Action.CALL_OFF])
    await _adopt(db, by_action[Action.ADOPT])
    await _keep(db, by_action[Action.KEEP])
    await _wait(db, by_action[Action.WAIT])
    await _note_first(db, active)
    await _forget(db, by_action[Action.FORGET], late)
    await _lost(db, [one for one in by_action[Action.LOST] if one.line not in late])
    mine = [item async for item in in_steps(done.outcomes) if item.case.claim.key in ours]
    await _finish(db, worker, mine, done, denied)
    if written:
        db.later("SELECT pg_notify(:channel, '')", {"channel": INTENT_CHANNEL})
    return written


async def write_departures(db: AsyncSession, worker: str, server_id: int, gone: Sequence[CaseOutcome]) -> None:
    """Record that these members of a server left, mark those whose count depends on them, and complete the claims.

    Skips those whose claims are no longer ours, except by sightings. Call it in a transaction of its own.
    """
    # The claims are marked too, although they end here: the rows of the queue can only be locked in the order of their
    # keys if one statement does it.
    people = [item.case.claim.discord_id for item in gone]
    await mark_missing(db, server_id, people, also=people)
    claims = [replace(item.case.claim, version=item.case.claim.version + 1) for item in gone]
    (((ours, merely_seen),),) = await db.together(queue.still_ours(worker, claims))
    left = [item.case.who for item in gone if item.case.claim.key in {*ours, *merely_seen}]
    if left:
        await record_left(db, left)
    queue.complete(db, worker, claims)


async def _lock(db: AsyncSession, looked: Iterable[CaseOutcome]) -> None:
    """Lock the members' grants before any of them changes, in the order of `queue.in_order_of_key`."""
    lines = sorted([
        GrantKey(*item.case.who, grant.role_id)
        async for item in in_steps(looked)
        for grant in (*item.case.grants, *item.left_behind)
    ])  # fmt: skip
    if lines:
        servers, people, roles = map(list, zip(*lines, strict=True))
        await db.execute(_LOCK, {"servers": servers, "people": people, "roles": roles})


_LOCK = """
    SELECT 1 FROM "grant"
    JOIN unnest(CAST(:servers AS integer[]), CAST(:people AS text[]), CAST(:roles AS text[]))
        AS g (server_id, discord_id, role_id) USING (server_id, discord_id, role_id)
    ORDER BY server_id, discord_id, role_id FOR UPDATE OF "grant"
"""


async def _drop_overtaken(done: BatchOutcome, seen: Collection[str]) -> set[str]:
    """Drop the decisions that a sighting overtook; return the keys of the cases that would have taken a role."""
    denied: set[str] = set()
    async for item in in_steps(one for one in done.outcomes if one.case.claim.key in seen):
        if any(one.action is Action.TAKE for one in item.decisions):
            denied.add(item.case.claim.key)
        if item.case.claim.overtaken < MOST_OVERTAKEN or not _still_unsettled(item, done):
            item.decisions = [one for one in item.decisions if one.action in OVERTAKEN]
    return denied


async def _forget_removed(db: AsyncSession, overtaken: Sequence[Case]) -> None:
    """Delete what was read about these members' wallets where they were removed meanwhile, perhaps with all data."""
    if wallets := sorted({address for case in overtaken for _, address in case.wallets}):
        await last_known.forget_removed(db, wallets)


def _still_unsettled(item: CaseOutcome, done: BatchOutcome) -> bool:
    """Return whether no block after the start of the reconcile can be settled yet on any of the member's chains.

    Until one can, later transfers cost no role to a member who has held since the last settled block.
    """
    settling = [CHAINS[chain].settled_after * CHAINS[chain].block_seconds for chain in item.case.wants]
    return time.monotonic() - done.began < min(settling, default=0.0)


async def _update(
    db: AsyncSession,
    rows: Iterable[tuple[GrantKey, Mapping[str, Any]]],
    values: Mapping[str, Any],
    states: Sequence[str],
) -> None:
    """Update these lines where they are still in one of `states`: each with its own values, and all with `values`."""
    # A fixed order, so that overlapping batches wait for each other instead of deadlocking.
    ordered = sorted(rows, key=lambda row: row[0])
    if not ordered:
        return
    own: dict[str, Any] = {name: bindparam(f"v_{name}") for name in ordered[0][1]}
    prepared = [_named(line) | {f"v_{name}": value for name, value in its.items()} for line, its in ordered]
    # Spelt out, because a list of unknown length cannot be bound when a statement runs for many rows.
    still = or_(*(col(Grant.state) == state for state in states))
    connection = await db.connection()
    await connection.execute(update(_TABLE).where(_THIS_LINE, still).values({**values, **own}), prepared)


_TABLE: Table = SQLModel.metadata.tables["grant"]
_THIS_LINE = (
    (col(Grant.server_id) == bindparam("b_server_id"))
    & (col(Grant.discord_id) == bindparam("b_discord_id"))
    & (col(Grant.role_id) == bindparam("b_role_id"))
)
"""The condition on the line with the parameters of `_named`, for a statement over many lines."""


def _named(line: GrantKey) -> dict[str, Any]:
    return {f"b_{name}": value for name, value in line._asdict().items()}


async def _give(db: AsyncSession, ones: Sequence[RoleDecision]) -> int:
    rows = [
        {
            **one.line._asdict(), "rule_ids": list(one.decision.rule_ids), "evidence": one.evidence,
            "request_id": one.request_id,
        }
        async for one in in_steps(sorted(ones, key=lambda one: one.line))
    ]  # fmt: skip
    async for start in in_steps(range(0, len(rows), ROWS_A_STATEMENT)):
        db.later(_GIVE, {"rows": json.dumps(rows[start : start + ROWS_A_STATEMENT])})
    return len(rows)


# A role whose earlier gift may have arrived late begins with one attempt, so that the writer first reads the member.
_GIVE = """
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, intended_at, next_at,
                         attempts, created_at, updated_at, request_id)
    SELECT server_id, discord_id, role_id, rule_ids, 'giving', false, evidence, now(), now(),
           CAST(EXISTS (SELECT 1 FROM unanswered u WHERE u.server_id = g.server_id AND u.discord_id = g.discord_id
                        AND u.role_id = g.role_id AND u.giving) AS integer), now(), now(), request_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS g (
        server_id integer, discord_id text, role_id text, rule_ids integer[], evidence jsonb, request_id text)
    ORDER BY server_id, discord_id, role_id
    ON CONFLICT DO NOTHING
"""


async def _adopt(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    """Create grants for roles that others gave and an admin handed over; if no rule says yes, the grace time begins."""
    if not ones:
        return
    rows = [
        {
            **one.line._asdict(), "rule_ids": list(one.decision.rule_ids), "state": "held", "had_before": True,
            "evidence": one.evidence, "no_since": one.decision.no_since, "attempts": 0,
        }
        async for one in in_steps(sorted(ones, key=lambda one: one.line))
    ]  # fmt: skip
    # Run for many rows instead of with many values, because one statement takes at most 65,535 parameters.
    made = insert(Grant).values(created_at=func.now(), updated_at=func.now())
    await db.execute(made.on_conflict_do_nothing(), rows)
    batch = uuid4()
    lines = [
        audit.role_line(
            "role.taken_over", one.line, batch=batch,
            data={"right": one.decision.no_since is None, "ruleIds": list(one.decision.rule_ids)},
        )
        for one in ones
    ]  # fmt: skip
    await audit.record_all(db, lines)
    await rivals.record(db, [Reversal(*one.line, taken=False) for one in ones], against=True)


async def _return(db: AsyncSession, ones: Sequence[RoleDecision]) -> int:
    rows = [(one.line, {**one.reasons, "request_id": one.request_id}) async for one in in_steps(ones)]
    # The removal may have happened, so `attempts` starts at 1: the writer first reads the member.
    giving = {"state": "giving", "attempts": 1, **_NOTHING_WAITS, **_DUE_NOW}
    await _update(db, rows, giving, ("taking", "lost", "held"))
    # A role that was taken meanwhile has no grant any more, so it is given again.
    await _give(db, [one for one in ones if one.state == "taking"])
    return len(ones)


_NOTHING_WAITS = {"no_since": None, "gift_since": None, "held_back_at": None, "first_no": None}
"""The values of a line whose role a rule grants."""


async def _take(db: AsyncSession, ones: Sequence[RoleDecision]) -> int:
    stopped = await breaker.stop_excess(db, [_removal(one) async for one in in_steps(ones)])
    held_back, allowed = list[RoleDecision](), list[RoleDecision]()
    for one in ones:
        # A role that is still being given must not be given any more. The writer takes it, if it is there, once an
        # admin has decided about the breaker.
        waits = (one.line.server_id, one.line.role_id) in stopped and not one.is_being_given
        (held_back if waits else allowed).append(one)
    await _hold_back(db, held_back)
    batches = await removal_batches.of_removals(db, [(one.line.server_id, one.line.role_id) for one in allowed])
    # A role that was being given may be there by now, so `attempts` starts at 1: the writer first reads the member.
    for comes, attempts, states in ((False, 0, ("held",)), (True, 1, ("giving", "held"))):
        never_given = {"given": False} if comes else {}
        rows = [
            (
                one.line,
                {
                    "no_since": one.decision.no_since, "evidence": one.evidence | never_given,
                    "batch": batches[one.line.server_id, one.line.role_id], "request_id": one.request_id,
                },
            )
            async for one in in_steps(one for one in allowed if one.is_being_given is comes)
        ]  # fmt: skip
        await _update(db, rows, {"state": "taking", "attempts": attempts, "held_back_at": None, **_DUE_NOW}, states)
    return len(allowed)


async def _call_off(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    """Cancel removals that are not sent yet. `no_since` and `first_no` stay, so they cost the removal no time.

    A role that was never given and is not there may still come, so its grant keeps the note of that.
    """
    held = {"state": "held", "next_at": None, "attempts": 0}
    for comes, noted in ((False, {"evidence": queue.NOW_GIVEN}), (True, {})):
        rows = [(one.line, dict[str, Any]()) for one in ones if one.is_being_given is comes]
        await _update(db, rows, {**held, **noted}, ("taking",))


def _removal(one: RoleDecision) -> breaker.Removal:
    server_id, discord_id, role_id = one.line
    alone = any(reading.one_source for reading in one.item.evidence(one.decision))
    has_role = role_id in one.item.case.roles
    return breaker.Removal(server_id, role_id, discord_id, one_source=alone, counts=has_role or not one.is_being_given)


async def _hold_back(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    """Record the removals that the breaker stopped, with their evidence, for an admin."""
    rows = [
        (one.line, {"no_since": one.decision.no_since, "evidence": one.evidence})
        async for one in in_steps(ones)
        if one.grant is not None and not one.grant.held_back
    ]
    await _update(db, rows, {"held_back_at": func.now()}, ("held", "giving"))


async def _keep(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    changed = [
        (one, grant) for one in ones if (grant := one.grant) is not None and keeps_differently(one.decision, grant)
    ]
    rows = [(one.line, one.reasons) async for one, _ in in_steps(changed)]
    await _update(db, rows, {**_NOTHING_WAITS, "updated_at": func.now()}, ("held", "giving"))
    lines = [
        audit.role_line("role.reasons", one.line, data={"ruleIds": list(one.decision.rule_ids)})
        for one, grant in changed
        if grant.rule_ids != one.decision.rule_ids
    ]
    await audit.record_all(db, lines)


async def _wait(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    db.add_all(grace_warnings.warnings(ones))
    # A role that is being given can be there already.
    await _update(db, [(one.line, {"no_since": one.decision.no_since}) for one in ones], {}, ("held", "giving"))


async def _note_first(db: AsyncSession, looked: Sequence[CaseOutcome]) -> None:
    """Store the answers that a later reconcile has to confirm."""
    rows = [
        (GrantKey(*item.case.who, role_id), {"first_no": confirmation.document(found)})
        for item in looked
        for role_id, found in item.first_no.items()
        if (grant := item.case.grant_of(role_id)) is not None and confirmation.parsed(grant.first_no) != found
    ]
    await _update(db, rows, {}, ("held", "giving"))


async def _forget(db: AsyncSession, ones: Sequence[RoleDecision], late: Collection[GrantKey]) -> None:
    """Delete these grants. A role that a holder lost is written to the log; those in `late` we have taken ourselves."""
    if ones:
        gone = [one.line for one in ones if one.state == "held"]
        await audit.record_all(db, [audit.role_line("role.taken" if one in late else "role.lost", one) for one in gone])
        await rivals.record(db, [Reversal(*one, taken=True) for one in gone if one not in late])
        connection = await db.connection()
        lines = sorted(one.line for one in ones)
        await connection.execute(delete(_TABLE).where(_THIS_LINE), [_named(line) for line in lines])


async def _lost(db: AsyncSession, ones: Sequence[RoleDecision]) -> None:
    lines = [one.line for one in ones]
    await _update(db, [(one, {}) for one in lines], {"state": "lost", "updated_at": func.now()}, ("held",))
    # One batch for each role: a batch is undone as a whole, and undoing it gives back one role.
    batches = defaultdict[tuple[int, str], UUID](uuid4)
    await audit.record_all(
        db, [audit.role_line("role.lost", one, batch=batches[one.server_id, one.role_id]) for one in lines]
    )
    await rivals.record(db, [Reversal(*one, taken=True) for one in lines], against=True)
    for server_id, discord_id, role_id in lines:
        db.add(Notice(discord_id=discord_id, server_id=server_id, kind="role.lost", data={"roleId": role_id}))


def _moments(item: CaseOutcome) -> list[datetime | None]:
    """Return when the member has to be reconciled again."""
    return [item.recheck_at, *(decision.due_at for decision in item.decisions)]


async def _finish(
    db: AsyncSession, worker: str, looked: Sequence[CaseOutcome], done: BatchOutcome, denied: Collection[str]
) -> None:
    """Complete the claims: retry doubtful ones soon, schedule grace times for their end, finish the others."""
    claims = {item.case.claim.key: item for item in looked}
    stirred = [item for item in looked if not item.calm]
    # A member who has left is reconciled again when they rejoin.
    doubtful = [item async for item in in_steps(stirred) if item.doubtful and not item.case.left]
    waits = [
        (item.case.claim, min(moments))
        async for item in in_steps(stirred)
        if not (item.doubtful or item.case.left) and (moments := [one for one in _moments(item) if one is not None])
    ]
    apart = {item.case.claim.key for item in doubtful} | {claim.key for claim, _ in waits}
    if doubtful:
        await queue.retry_later(
            db,
            worker,
            [item.case.claim for item in doubtful],
            [item.doubt async for item in in_steps(doubtful)],
            [item.again_in for item in doubtful],
        )
    if waits:
        await queue.reschedule(db, worker, waits)
    rest = [item.case.claim for key, item in claims.items() if key not in apart]
    changed = [item.case.claim for item in done.outcomes if item.case.claim.key not in claims and not item.gone]
    if rest or changed:
        queue.complete(db, worker, rest + changed, denied)
