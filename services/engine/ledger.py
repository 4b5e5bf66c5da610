"""Write decisions to the ledger in bulk, and drop removals that a newer sighting overtook, five times in a row at most.

Role changes are committed before Discord is asked, so a crash loses none.
"""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
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
from services.engine.cases import evidence
from services.engine.decide import Action, Decision, keeps_differently
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome, facts_of
from services.guilds import rivals
from services.guilds.members import came_back, left_many, seen_many
from services.guilds.rivals import Reversal
from services.holdings import confirmation, delegations, fetch, last_known
from services.roles import breaker, in_doubt, removal_batches
from services.roles.outbox import INTENT_CHANNEL
from services.runtime.loop_steps import in_steps

Pair = tuple[CaseOutcome, Decision]


def line_of(pair: Pair) -> dict[str, Any]:
    """Return the columns that identify the line."""
    item, decision = pair
    return {
        "server_id": item.case.claim.server_id, "discord_id": item.case.claim.discord_id,
        "role_id": decision.role_id,
    }  # fmt: skip


def line(pair: Pair) -> GrantKey:
    """Return the line's key as one value."""
    item, decision = pair
    return item.case.claim.server_id, item.case.claim.discord_id, decision.role_id


def key_of(pair: Pair) -> dict[str, Any]:
    """Return the columns as parameters of `this_line`."""
    return {f"b_{name}": value for name, value in line_of(pair).items()}


def this_line() -> Any:
    """Build the condition that selects the line with the parameters of `key_of`, for a statement over many lines."""
    return (
        (col(Grant.server_id) == bindparam("b_server_id"))
        & (col(Grant.discord_id) == bindparam("b_discord_id"))
        & (col(Grant.role_id) == bindparam("b_role_id"))
    )


def state_of(pair: Pair) -> str:
    """Return the line's state as it was loaded; empty if there was none."""
    grant = facts_of(pair[0], pair[1].role_id)
    return grant.state if grant else ""


async def update_lines(
    db: AsyncSession,
    rows: Sequence[dict[str, Any]],
    fixed: dict[str, Any],
    own: Sequence[str],
    stamped: Sequence[str],
    states: Sequence[str],
) -> None:
    """Update the grants that `rows` name and that are still in one of `states`; `own` columns differ by row.

    `stamped` columns get the database's transaction time, by which changes and the writer's lease are ordered.
    """
    if not rows:
        return
    values: dict[str, Any] = {**fixed, **{name: bindparam(f"v_{name}") for name in own}}
    values.update({name: func.now() for name in stamped})
    prepared = [{(key if key.startswith("b_") else f"v_{key}"): value for key, value in row.items()} for row in rows]
    # A fixed order, so that overlapping batches wait for each other instead of deadlocking.
    prepared.sort(key=lambda row: (row["b_server_id"], row["b_discord_id"], row["b_role_id"]))
    table: Table = SQLModel.metadata.tables["grant"]
    # Spelt out, because a list of unknown length cannot be bound when a statement runs for many rows.
    still = or_(*(col(Grant.state) == state for state in states))
    connection = await db.connection()
    await connection.execute(update(table).where(this_line(), still).values(values), prepared)


async def remember(db: AsyncSession, done: BatchOutcome) -> None:
    """Store what was read; unknown or older readings overwrite nothing."""
    await fetch.remember(db, done.asked)
    await stored_traits.remember(db, done.traits)
    await delegations.remember(db, done.delegations)
    await last_known.remember(db, [reading for item in done.outcomes for reading in item.readings_made()])


ROWS_A_STATEMENT = 1_000
OVERTAKEN = frozenset({Action.GIVE, Action.KEEP, Action.RETURN, Action.CALL_OFF, Action.WAIT})
"""Actions that are right at the block of their evidence, whatever happened later; the next reconcile sees the rest."""
MOST_OVERTAKEN = 5
"""How many reconciles in a row that would take a role may be overtaken by sightings. The next one takes the role, if it
ends before a newer block can be settled. Otherwise anybody could delay a removal forever by naming the wallet in a log
every second. Each reconcile covered everything seen before it began."""


async def write_decisions(
    db: AsyncSession, worker: str, done: BatchOutcome, ours: Collection[str], seen: Collection[str] = ()
) -> int:
    """Write the decisions of a batch and complete its claims; return the number of queued role changes.

    A case whose key is not in `ours` is skipped: its member was marked again and stays queued. If its key is in `seen`,
    only sightings marked the member, so decisions that need no newer answer are written (see OVERTAKEN).
    """
    await remember(db, done)
    denied: set[str] = set()
    async for item in in_steps(done.outcomes):
        if (claim := item.case.claim).key in seen:
            if any(one.action is Action.TAKE for one in item.decisions):
                denied.add(claim.key)
            if claim.overtaken < MOST_OVERTAKEN or not _still_unsettled(item, done):
                item.decisions = [one for one in item.decisions if one.action in OVERTAKEN]
    looked = [
        item
        async for item in in_steps(done.outcomes)
        if not item.calm and (item.case.claim.key in ours or item.case.claim.key in seen)
    ]
    await seen_many(db, [(item.case.claim.server_id, item.live) for item in looked if item.live is not None])
    await left_many(db, [item.case.who for item in looked if item.gone])
    left_behind = {item.case.who: [grant.role_id for grant in item.left_behind] for item in looked if item.left_behind}
    await came_back(db, left_behind)
    active = [item for item in looked if item.case.bot_invited and not item.case.left and not item.gone]
    by_action: dict[Action, list[Pair]] = {action: [] for action in Action}
    async for item, decision in in_steps((one, made) for one in active for made in one.decisions):
        if decision.action is not Action.NONE:
            by_action[decision.action].append((item, decision))
    written = await _give(db, by_action[Action.GIVE])
    # Nobody else took the role if our own late removal did, cancelled before Discord answered, or if it never came.
    absent = [line(pair) for pair in (*by_action[Action.LOST], *by_action[Action.FORGET])]
    late, never = await in_doubt.removals(db, absent), await in_doubt.never_given(db, absent)
    again = [pair for pair in by_action[Action.LOST] if line(pair) in late | never]
    written += await _return(db, [*by_action[Action.RETURN], *again])
    written += await _take(db, by_action[Action.TAKE])
    await _call_off(db, by_action[Action.CALL_OFF])
    await _adopt(db, by_action[Action.ADOPT])
    await _keep(db, by_action[Action.KEEP])
    await _wait(db, by_action[Action.WAIT])
    await _note_first(db, active)
    await _forget(db, by_action[Action.FORGET], late, never)
    await _lost(db, [pair for pair in by_action[Action.LOST] if line(pair) not in late | never])
    mine = [item async for item in in_steps(done.outcomes) if item.case.claim.key in ours]
    await _finish(db, worker, mine, done, denied)
    if written:
        db.later("SELECT pg_notify(:channel, '')", {"channel": INTENT_CHANNEL})
    return written


def _still_unsettled(item: CaseOutcome, done: BatchOutcome) -> bool:
    """Return whether no block after the start of the reconcile can be settled yet on any of the member's chains.

    Until one can, later transfers cost no role to a member who has held since the last settled block.
    """
    settling = [CHAINS[chain].settled_after * CHAINS[chain].block_seconds for chain in item.case.wants]
    return time.monotonic() - done.began < min(settling, default=0.0)


async def _give(db: AsyncSession, pairs: Sequence[Pair]) -> int:
    rows = [
        {
            **line_of(pair), "rule_ids": list(pair[1].rule_ids), "evidence": evidence(pair[0].evidence(pair[1])),
            "request_id": pair[0].case.claim.request_id,
        }
        async for pair in in_steps(sorted(pairs, key=line))
    ]  # fmt: skip
    async for start in in_steps(range(0, len(rows), ROWS_A_STATEMENT)):
        db.later(_GIVE, {"rows": json.dumps(rows[start : start + ROWS_A_STATEMENT])})
    return len(rows)


_GIVE = """
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, intended_at, next_at,
                         attempts, created_at, updated_at, request_id)
    SELECT server_id, discord_id, role_id, rule_ids, 'giving', false, evidence, now(), now(),
           0, now(), now(), request_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS g (
        server_id integer, discord_id text, role_id text, rule_ids integer[], evidence jsonb, request_id text)
    ORDER BY server_id, discord_id, role_id
    ON CONFLICT DO NOTHING
"""


async def _adopt(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    """Create grants for roles that others gave and an admin handed over; if no rule says yes, the grace time begins."""
    if not pairs:
        return
    rows = [
        {
            **line_of(pair), "rule_ids": list(pair[1].rule_ids), "state": "held", "had_before": True,
            "evidence": evidence(pair[0].evidence(pair[1])), "no_since": pair[1].no_since, "attempts": 0,
        }
        async for pair in in_steps(sorted(pairs, key=line))
    ]  # fmt: skip
    # Run for many rows instead of with many values, because one statement takes at most 65,535 parameters.
    made = insert(Grant).values(created_at=func.now(), updated_at=func.now())
    await db.execute(made.on_conflict_do_nothing(), rows)
    batch = uuid4()
    await audit.record_all(
        db,
        [
            audit.line(
                "role.taken_over", server_id=item.case.claim.server_id, subject=item.case.claim.discord_id,
                role_id=decision.role_id, batch=batch,
                data={"right": decision.no_since is None, "ruleIds": list(decision.rule_ids)},
            )
            for item, decision in pairs
        ],
    )  # fmt: skip
    await rivals.record(db, [Reversal(*line(pair), taken=False) for pair in pairs], against=True)


async def _return(db: AsyncSession, pairs: Sequence[Pair]) -> int:
    # The removal may have happened, so `attempts` starts at 1: the writer first reads the member.
    await update_lines(
        db,
        [
            {**key_of(pair), "rule_ids": list(pair[1].rule_ids), "request_id": pair[0].case.claim.request_id}
            for pair in pairs
        ],
        {
            "state": "giving",
            "attempts": 1,
            "no_since": None,
            "gift_since": None,
            "held_back_at": None,
            "first_no": None,
        },
        ("rule_ids", "request_id"),
        ("intended_at", "next_at", "updated_at"),
        ("taking", "lost", "held"),
    )
    # A role that was taken meanwhile has no grant any more, so it is given again.
    await _give(db, [pair for pair in pairs if state_of(pair) == "taking"])
    return len(pairs)


async def _take(db: AsyncSession, pairs: Sequence[Pair]) -> int:
    roles = [(item.case.claim.server_id, decision.role_id) for item, decision in pairs]
    stopped = await breaker.stop_excess(db, [_removal(pair) async for pair in in_steps(pairs)])
    # A role that is still being given must not be given any more. The writer takes it, if it is there, once an admin
    # has decided about the breaker.
    waits = [role in stopped and state_of(pair) != "giving" for pair, role in zip(pairs, roles, strict=True)]
    await _hold_back(db, [pair for pair, wait in zip(pairs, waits, strict=True) if wait])
    allowed = [pair for pair, wait in zip(pairs, waits, strict=True) if not wait]
    together = await removal_batches.of_removals(
        db, [role for role, wait in zip(roles, waits, strict=True) if not wait]
    )
    # A role that was being given may be there by now, so `attempts` starts at 1: the writer first reads the member.
    for state, attempts, states in (("held", 0, ("held",)), ("giving", 1, ("giving", "held"))):
        chosen = [pair for pair in allowed if state_of(pair) == state]
        await update_lines(
            db,
            [
                {
                    **key_of(pair), "no_since": pair[1].no_since,
                    "evidence": evidence(pair[0].evidence(pair[1])) | ({"given": False} if state == "giving" else {}),
                    "batch": together[pair[0].case.claim.server_id, pair[1].role_id],
                    "request_id": pair[0].case.claim.request_id,
                }
                async for pair in in_steps(chosen)
            ],
            {"state": "taking", "attempts": attempts, "held_back_at": None},
            ("no_since", "evidence", "batch", "request_id"),
            ("intended_at", "next_at", "updated_at"),
            states,
        )  # fmt: skip
    return len(allowed)


async def _call_off(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    """Cancel removals that are not sent yet. `no_since` and `first_no` stay, so they cost the removal no time."""
    held = {"state": "held", "next_at": None, "attempts": 0, "evidence": queue.NOW_GIVEN}
    await update_lines(db, list(map(key_of, pairs)), held, (), (), ("taking",))


def _removal(pair: Pair) -> breaker.Removal:
    item, decision = pair
    claim, found = item.case.claim, item.evidence(decision)
    return breaker.Removal(
        claim.server_id, decision.role_id, claim.discord_id,
        one_source=any(one.one_source for one in found), counts=state_of(pair) == "held",
    )  # fmt: skip


async def _hold_back(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    """Record the removals that the breaker stopped, with their evidence, for an admin."""
    new = [pair for pair in pairs if (grant := facts_of(pair[0], pair[1].role_id)) and not grant.held_back]
    await update_lines(
        db,
        [
            {
                **key_of(pair), "no_since": pair[1].no_since,
                "evidence": evidence(pair[0].evidence(pair[1])),
            }
            async for pair in in_steps(new)
        ],
        {},
        ("no_since", "evidence"),
        ("held_back_at",),
        ("held", "giving"),
    )  # fmt: skip


async def _keep(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    changed = [
        pair
        for pair in pairs
        if (grant := facts_of(pair[0], pair[1].role_id)) is not None and keeps_differently(pair[1], grant)
    ]
    await update_lines(
        db,
        [{**key_of(pair), "rule_ids": list(pair[1].rule_ids)} for pair in changed],
        {"no_since": None, "gift_since": None, "held_back_at": None, "first_no": None},
        ("rule_ids",),
        (),
        ("held", "giving"),
    )
    await audit.record_all(
        db,
        [
            audit.line(
                "role.reasons", server_id=pair[0].case.claim.server_id, subject=pair[0].case.claim.discord_id,
                role_id=pair[1].role_id, data={"ruleIds": list(pair[1].rule_ids)},
            )
            for pair in changed
            if (grant := facts_of(pair[0], pair[1].role_id)) is not None and grant.rule_ids != pair[1].rule_ids
        ],
    )  # fmt: skip


async def _wait(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    db.add_all(grace_warnings.warnings(pairs))
    rows = [{**key_of(pair), "no_since": pair[1].no_since} for pair in pairs]
    # A role that is being given can be there already.
    await update_lines(db, rows, {}, ("no_since",), (), ("held", "giving"))


async def _note_first(db: AsyncSession, looked: Sequence[CaseOutcome]) -> None:
    """Store the answers that a later reconcile has to confirm."""
    rows = [
        {**_named(item, role_id), "first_no": confirmation.document(found)}
        for item in looked
        for role_id, found in item.first_no.items()
        if (grant := facts_of(item, role_id)) is not None and confirmation.parsed(grant.first_no) != found
    ]
    await update_lines(db, rows, {}, ("first_no",), (), ("held", "giving"))


def _named(item: CaseOutcome, role_id: str) -> dict[str, Any]:
    return {"b_server_id": item.case.claim.server_id, "b_discord_id": item.case.claim.discord_id, "b_role_id": role_id}


async def _forget(
    db: AsyncSession, pairs: Sequence[Pair], late: Collection[GrantKey], never: Collection[GrantKey]
) -> None:
    """Delete these grants, and log the roles that holders lost: by us if in `late`; those in `never` never came."""
    if pairs:
        gone = [line(pair) for pair in pairs if state_of(pair) == "held" and line(pair) not in never]
        await audit.record_all(
            db,
            [
                audit.line(
                    "role.taken" if one in late else "role.lost", server_id=one[0], subject=one[1], role_id=one[2]
                )
                for one in gone
            ],
        )
        await rivals.record(db, [Reversal(*one, taken=True) for one in gone if one not in late])
        connection = await db.connection()
        table: Table = SQLModel.metadata.tables["grant"]
        await connection.execute(delete(table).where(this_line()), [key_of(pair) for pair in sorted(pairs, key=line)])


async def _lost(db: AsyncSession, pairs: Sequence[Pair]) -> None:
    await update_lines(db, list(map(key_of, pairs)), {"state": "lost"}, (), ("updated_at",), ("held",))
    # One batch for each role: a batch is undone as a whole, and undoing it gives back one role.
    batches = defaultdict[tuple[int, str], UUID](uuid4)
    await audit.record_all(
        db,
        [
            audit.line(
                "role.lost", server_id=row["server_id"], subject=row["discord_id"], role_id=row["role_id"],
                batch=batches[row["server_id"], row["role_id"]],
            )
            for row in map(line_of, pairs)
        ],
    )  # fmt: skip
    await rivals.record(db, [Reversal(*line(pair), taken=True) for pair in pairs], against=True)
    for row in map(line_of, pairs):
        db.add(
            Notice(
                discord_id=row["discord_id"], server_id=row["server_id"], kind="role.lost",
                data={"roleId": row["role_id"]},
            )
        )  # fmt: skip


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
    changed = [item.case.claim for item in done.outcomes if item.case.claim.key not in claims]
    if rest or changed:
        queue.complete(db, worker, rest + changed, denied)
