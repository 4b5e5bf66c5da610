"""Claim due members in batches under a lease, and complete or reschedule the claims."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from models.db.session import AsyncSession, Question, joined
from services.core.queue.mark_due import AGAIN, CHANNEL, SWEPT

LEASE = timedelta(seconds=60)
LONGEST_PAUSE = 2 * 3600
"""Longest pause in seconds between retries of a member who stays unknown."""
KNOWN_AGAIN = 60
"""Shortest pause in seconds once a retry at a predicted time has failed repeatedly."""
LATE = 2**31 - 1
"""The turn of a member who is scheduled for a later time: behind all turns of servers, ordered by that time."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's exclusive right to decide about a member while the lease lasts."""

    server_id: int
    discord_id: str
    version: int
    attempts: int
    priority: int
    request_id: str | None = None
    """The request that marked the member, if there was one."""
    seen: int = 0
    """How many of the marks counted in `version` were only sightings of transfers."""
    overtaken: int = 0
    """How many reconciles in a row would have taken a role but were overtaken by sightings."""

    @property
    def key(self) -> str:
        """Primary key of the row in the table."""
        return f"{self.server_id}:{self.discord_id}"


_FREE = """
    SELECT ctid, priority, turn, due_at FROM due
    WHERE kind = 'member' AND {which} AND priority >= :least AND due_at <= now()
    AND (claimed_until IS NULL OR claimed_until < now())
    AND (cardinality(CAST(:busy AS text[])) = 0 OR split_part(key, ':', 1) <> ALL(CAST(:busy AS text[])))
    ORDER BY priority DESC, turn, due_at LIMIT {most} FOR UPDATE SKIP LOCKED
"""

CLAIM = f"""
    WITH new AS ({_FREE.format(which="priority > :again", most=":limit")}),
    again AS ({_FREE.format(which="priority = :again", most=":quarter")}),
    swept AS ({_FREE.format(which="priority < :again", most=":limit")}),
    picked AS (
        SELECT ctid FROM (
            SELECT *, row_number() OVER (ORDER BY priority DESC, turn, due_at) > :half AS more FROM new
            UNION ALL SELECT *, false FROM again
            UNION ALL SELECT *, row_number() OVER (ORDER BY turn, due_at) > :quarter FROM swept
        ) found ORDER BY more, priority DESC, turn, due_at LIMIT :limit
    )
    UPDATE due d SET claimed_until = now() + :lease, claimed_by = :worker,
        version = GREATEST(d.version + 1, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint))
    WHERE d.ctid = ANY(ARRAY(SELECT ctid FROM picked))
    RETURNING d.key, d.version, d.attempts, d.priority, d.request_id, d.seen, d.overtaken, d.turn
"""
"""Rows are found by `ctid`, not by a join: in a table that is mostly empty the planner may expect one row, and a join
would compare every row with every other. A row that changes between being found and being locked waits for the next
claim.

Three kinds of members share a claim, so that none blocks the others: half is for new work, a quarter for retries and a
quarter for the sweep. New work and the sweep may use places that another kind leaves free.

Each claim gets a version that the member never had, even if the row was deleted and made again meanwhile. Otherwise a
worker that stood still past its lease could write an old answer once it holds a later claim on the same member.
"""


async def claim(
    db: AsyncSession, worker: str, limit: int, least: int = SWEPT, *, without: Collection[int] = ()
) -> list[Claim]:
    """Claim up to `limit` due members with at least the priority `least` under a lease, the most urgent first.

    Servers take turns within one priority: each server's first member comes before any server's second one. In the
    sweep, a turn has EACH_TURN members instead of one. The servers in `without` are skipped.
    """
    values = {
        "limit": limit, "half": -(-limit // 2), "quarter": -(-limit // 4), "least": least, "again": AGAIN,
        "lease": LEASE, "worker": worker, "busy": [str(server_id) for server_id in without],
    }  # fmt: skip
    (rows,) = await db.together((CLAIM, values))
    claims: list[Claim] = []
    for key, version, attempts, priority, *rest, _ in sorted(rows, key=lambda row: (-row[3], row[-1], row[0])):
        server, _, discord_id = key.partition(":")
        claims.append(Claim(int(server), discord_id, version, attempts, priority, *rest))
    return claims


async def refresh_statistics(db: AsyncSession) -> None:
    """Run ANALYZE on the queue table, unless another session is doing so.

    After a sweep the planner assumes an empty table, and would compare every row with every claim of a large batch.
    """
    await db.execute("ANALYZE (SKIP_LOCKED) due")


def _in_order(which: str) -> str:
    """Return a condition for the due members that match `which`; it locks them in the order of their keys, as marks do.

    Any other order could deadlock with a mark of several members.
    """
    found = f"SELECT key FROM due WHERE kind = 'member' AND {which} ORDER BY key FOR UPDATE"
    return f"kind = 'member' AND key = ANY(ARRAY({found}))"


_STOOD_STILL = round(LEASE / timedelta(microseconds=2))
"""A version that is higher by so much is of a later claim of the same worker, which began after a lease had lapsed:
claims take their versions from the clock in microseconds, and a mark adds one. Half a lease leaves room for the time
that a claim of thousands of members takes."""


def _of_claim(key: str, version: str) -> str:
    """Return a condition: the row's claim is the one that the caller knows, and no later claim of the same worker."""
    known = f"CAST((SELECT CAST(:versions AS jsonb)) ->> {key} AS bigint)"
    return f"{version} < {known} + {_STOOD_STILL}"


_OURS = _in_order(f"claimed_by = :worker AND key = ANY(string_to_array(:keys, ',')) AND {_of_claim('key', 'version')}")


async def renew(db: AsyncSession, worker: str) -> None:
    """Renew the lease on all claims of this worker, except those whose lease has lapsed: they are over."""
    which = _in_order("claimed_by = :worker AND claimed_until > now()")
    await db.execute(f"UPDATE due SET claimed_until = now() + :lease WHERE {which}", {"lease": LEASE, "worker": worker})


async def release_leases(db: AsyncSession, is_dead: Callable[[str], bool]) -> int:
    """Release the claims of workers that are known to be dead before their leases expire.

    A wrong `is_dead` costs only double work: a worker that lost a claim writes nothing for it.
    """
    result = await db.execute("SELECT DISTINCT claimed_by FROM due WHERE claimed_until > now()")
    dead = [str(worker) for (worker,) in result.all() if is_dead(str(worker))]
    if dead:
        which = _in_order("claimed_by = ANY(CAST(:dead AS text[]))")
        await db.execute(f"UPDATE due SET claimed_until = NULL, claimed_by = NULL WHERE {which}", {"dead": dead})
    return len(dead)


def still_ours(worker: str, claims: Sequence[Claim]) -> Question:
    """Return a statement that locks the claims and returns two lists of keys: unchanged claims, and those only sighted.

    Unchanged claims have had no mark since they were claimed; the others have had only sightings of transfers. Claims
    with other marks are locked too, because `complete` releases them and a mark of many members may hold some of these
    rows while it waits for others. A claim whose lease has lapsed is in neither list, even if nobody has claimed the
    member since: this process, or the whole machine, stood still, and perhaps the followers that report news did too.
    """
    # One pass: two passes would lock the rows in a different order than marks do.
    statement = f"""
        SELECT COALESCE(array_agg(key) FILTER (WHERE unchanged), '{{}}') AS keys,
               COALESCE(array_agg(key) FILTER (WHERE seen_only AND NOT unchanged), '{{}}') AS seen
        FROM (SELECT d.key, {_UNCHANGED} AS unchanged, {_SEEN_ONLY} AS seen_only FROM due d WHERE {_CLAIMED}
              ORDER BY d.key FOR UPDATE OF d) o
    """
    return statement, _values(worker, claims)


def check_unchanged(db: AsyncSession, worker: str, claims: Sequence[Claim]) -> None:
    """Make the transaction fail with GuardFailed if one of these claims has been marked since, or has lapsed."""
    question, values = still_ours(worker, claims)
    db.later(
        f"SELECT guard(cardinality(keys) = :all, 'marked again') FROM ({question}) o", {**values, "all": len(claims)}
    )


def complete(db: AsyncSession, worker: str, claims: Sequence[Claim], denied: Collection[str] = ()) -> None:
    """Complete the claims: delete unchanged rows, and release those marked again and those whose lease has lapsed.

    `denied` are the keys of members who would have lost a role without the sightings.
    """
    statement = f"""
        WITH gone AS (DELETE FROM due d WHERE {_CLAIMED} AND {_UNCHANGED}),
        released AS (
            UPDATE due d SET claimed_until = NULL, claimed_by = NULL,
                overtaken = CASE WHEN d.key = ANY(string_to_array(:denied, ',')) THEN d.overtaken + 1 ELSE 0 END
            WHERE {_CLAIMED} AND {_of_claim("d.key", "d.version")} AND NOT {_UNCHANGED} RETURNING d.due_at
        ) {_NOTIFY}
    """
    db.later(statement, {**_values(worker, claims), "denied": joined(denied), "channel": CHANNEL})


def pause_after(attempts: int, known: float | None = None) -> int:
    """Return the seconds until the next try after `attempts` failed ones; `known` is the predicted wait, if any.

    A predicted success is tried again within a minute, however often it has failed. The minimum pause keeps us from
    polling a chain that produces no blocks.
    """
    growing = min(5 * 2 ** min(attempts, 20), LONGEST_PAUSE)
    return growing if known is None else max(ceil(known), min(growing, KNOWN_AGAIN))


async def retry_later(
    db: AsyncSession,
    worker: str,
    claims: Sequence[Claim],
    reasons: Sequence[str | None],
    known_pauses: Sequence[float | None] | None = None,
) -> None:
    """Retry these claims after a pause that grows with the attempts, and store why each stayed unknown.

    `known_pauses` are the predicted seconds after which a retry can succeed (see `pause_after`).
    """
    known = known_pauses or [None] * len(claims)
    pauses = [pause_after(claim.attempts, pause) for claim, pause in zip(claims, known, strict=True)]
    more = {claim.key: [pause, reason] for claim, pause, reason in zip(claims, pauses, reasons, strict=True)}
    await db.execute(
        f"""
        UPDATE due d SET attempts = d.attempts + 1, overtaken = 0, turn = :late,
                         priority = LEAST(d.priority, :again),
                         reason = {_MORE} ->> 1,
                         due_at = now() + CAST({_MORE} ->> 0 AS integer) * interval '1 second'
        WHERE {_CLAIMED} AND {_UNCHANGED}
        """,
        {**_values(worker, claims), "more": json.dumps(more), "again": AGAIN, "late": LATE},
    )
    await release(db, worker, claims)


async def reschedule(db: AsyncSession, worker: str, moments: Sequence[tuple[Claim, datetime]]) -> None:
    """Reschedule these claims to the given times, such as the end of a grace time."""
    more = {claim.key: moment.isoformat() for claim, moment in moments}
    await db.execute(
        f"""
        UPDATE due d SET attempts = 0, overtaken = 0, priority = 0, reason = NULL, turn = :late,
                         due_at = CAST((SELECT CAST(:more AS jsonb)) ->> d.key AS timestamptz)
        WHERE {_CLAIMED} AND {_UNCHANGED}
        """,
        {**_values(worker, [claim for claim, _ in moments]), "more": json.dumps(more), "late": LATE},
    )
    await release(db, worker, [claim for claim, _ in moments])


async def postpone(db: AsyncSession, worker: str, claims: Sequence[Claim], seconds: float) -> None:
    """Release these claims without a decision, due again in `seconds`; unlike `retry_later`, this counts no attempt.

    Like `release` and `complete`, it leaves alone a later claim of the same worker on one of these members.
    """
    await db.execute(
        "UPDATE due SET claimed_until = NULL, claimed_by = NULL, turn = :late, "
        f"due_at = now() + :seconds * interval '1 second' WHERE {_OURS}",
        {**_ours(worker, claims), "seconds": seconds, "late": LATE},
    )


async def release(db: AsyncSession, worker: str, claims: Sequence[Claim]) -> None:
    """Release these claims for any worker, this one included."""
    await db.execute(
        "WITH released AS (UPDATE due SET claimed_until = NULL, claimed_by = NULL "
        f"WHERE {_OURS} RETURNING due_at) {_NOTIFY}",
        {**_ours(worker, claims), "channel": CHANNEL},
    )


_NOTIFY = "SELECT pg_notify(:channel, '') FROM released WHERE due_at <= now() LIMIT 1"
"""A mark's notification has no effect while its member is claimed, so the release of the member notifies again."""
_CLAIMED = "d.kind = 'member' AND d.key = ANY(string_to_array(:keys, ',')) AND d.claimed_by = :worker"
_MORE = "(SELECT CAST(:more AS jsonb)) -> d.key"
_HELD = "d.claimed_until > now()"
_UNCHANGED = f"({_HELD} AND d.version = CAST((SELECT CAST(:versions AS jsonb)) ->> d.key AS bigint))"
_SEEN_ONLY = f"({_HELD} AND d.version - d.seen = CAST((SELECT CAST(:changes AS jsonb)) ->> d.key AS bigint))"
"""Versions are looked up, not joined: claims change faster than the planner's statistics, and a join that expects few
rows compares every row with every other. The lookup is a separate SELECT, so that a cached plan parses the document
once."""


def _ours(worker: str, claims: Sequence[Claim]) -> dict[str, object]:
    return {
        "worker": worker,
        "keys": joined(claim.key for claim in claims),
        "versions": json.dumps({claim.key: claim.version for claim in claims}),
    }


def _values(worker: str, claims: Sequence[Claim]) -> dict[str, object]:
    changes = json.dumps({claim.key: claim.version - claim.seen for claim in claims})
    return {**_ours(worker, claims), "changes": changes}
