"""The queue of members to reconcile: mark them as due, claim them in batches, complete or reschedule claims."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from sqlalchemy import text

from gateways.chains.catalogue import CHAINS
from models.db.session import AsyncSession, Question, joined
from services.core import request_ids

CHANNEL = "holdfast_due"
"""The NOTIFY channel for members that became due."""

# In order: somebody waits at the screen, has just joined, moved a token, changed a setting; and the daily sweep.
WAITING, JOINED, SEEN, CHANGED, SWEPT = 100, 80, 60, 50, 0
AGAIN = 10
"""Priority of retries: above the sweep, below new work."""

LEASE = timedelta(seconds=60)
LONGEST_PAUSE = 2 * 3600
"""Longest pause in seconds between retries of a member who stays unknown."""
EACH_TURN = 50
"""Members of a server that the sweep takes in one turn: they share what is read for the server."""
KNOWN_AGAIN = 60
"""Shortest pause in seconds once a retry at a predicted time has failed repeatedly."""
LATE = 2**31 - 1
"""Turn of a member who waits for a time: behind all turns of servers, ordered by that time."""


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


async def mark_member(db: AsyncSession, server_id: int, discord_id: str, priority: int) -> None:
    """Mark one member of one server as due now."""
    await _mark(db, "SELECT CAST(:server AS integer) AS server_id, CAST(:who AS text) AS discord_id", priority,
                {"server": server_id, "who": discord_id})  # fmt: skip


async def mark_everywhere(db: AsyncSession, discord_id: str, priority: int) -> None:
    """Mark a person as due in every server with the bot of which they are a member."""
    who = ("SELECT m.server_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id "
           "WHERE m.discord_id = :who AND m.left_at IS NULL AND s.bot_invited")  # fmt: skip
    await _mark(db, who, priority, {"who": discord_id})


async def mark_members(db: AsyncSession, server_id: int, people: Sequence[str], priority: int) -> int:
    """Mark those of the given members whom a rule of the server can concern."""
    who = _concerned("AND m.server_id = :server AND m.discord_id = ANY(CAST(:people AS text[]))")
    return await _mark(db, who, priority, {"server": server_id, "people": list(people)})


async def mark_named(db: AsyncSession, server_id: int, people: Sequence[str], priority: int) -> int:
    """Mark these people in a server, even if we do not know them as members."""
    who = "SELECT CAST(:server AS integer) AS server_id, unnest(CAST(:people AS text[])) AS discord_id"
    return await _mark(db, who, priority, {"server": server_id, "people": list(people)})


def mark_holders(db: AsyncSession, chain: str, addresses: Sequence[str], priority: int) -> None:
    """Mark the owners of these wallets and their delegates on the chain, in every server with the bot."""
    statement, values = _marking(
        "SELECT DISTINCT m.server_id, m.discord_id FROM (SELECT unnest(CAST(:addresses AS text[])) AS address UNION "
        "SELECT d.delegate FROM delegation d WHERE d.chain = :chain AND d.vault = ANY(CAST(:addresses AS text[]))) a "
        "JOIN wallet w ON w.family = :family AND w.address = a.address AND w.chain IN ('', :chain) "
        'JOIN "user" u ON u.id = w.user_id JOIN member m ON m.discord_id = u.discord_id '
        "JOIN server s ON s.id = m.server_id WHERE m.left_at IS NULL AND s.bot_invited",
        priority,
        {"addresses": list(addresses), "chain": chain, "family": CHAINS[chain].family},
        sighting=True,
    )
    db.later(statement, values)


async def mark_claimants(
    db: AsyncSession,
    vaults: Sequence[str],
    priority: int,
    *,
    without: Sequence[str] = (),
    servers: Sequence[int] | None = None,
) -> int:
    """Mark the members who may count the holdings of these vaults through a delegation.

    Excludes the delegates in `without`; `servers` limits the servers, None means all. The marks count as sightings,
    because anybody can cause them for another person as often as they like.
    """
    if not vaults:
        return 0
    return await _mark(
        db,
        "SELECT DISTINCT m.server_id, m.discord_id FROM delegation d "
        "JOIN wallet w ON w.family = 'evm' AND w.address = d.delegate AND w.chain IN ('', d.chain) "
        'JOIN "user" u ON u.id = w.user_id JOIN member m ON m.discord_id = u.discord_id AND m.left_at IS NULL '
        "JOIN server s ON s.id = m.server_id AND s.bot_invited "
        "WHERE d.vault = ANY(CAST(:vaults AS text[])) AND d.delegate <> ALL(CAST(:without AS text[])) "
        "AND (CAST(:servers AS integer[]) IS NULL OR m.server_id = ANY(CAST(:servers AS integer[])))",
        priority,
        {"vaults": list(vaults), "without": list(without), "servers": None if servers is None else list(servers)},
        sighting=True,
    )


async def mark_rivals(
    db: AsyncSession, addresses: Sequence[str], priority: int, servers: Sequence[int] | None = None
) -> int:
    """Mark the members whose count depends on whether these wallets count for somebody.

    These are the delegates of the addresses, and the other delegates of vaults that delegated to the addresses;
    `servers` limits the servers, None means all.
    """
    of_them = "SELECT DISTINCT vault FROM delegation WHERE delegate = ANY(CAST(:addresses AS text[]))"
    (rows,) = await db.together((of_them, {"addresses": list(addresses)}))
    vaults = sorted({*addresses, *(vault for (vault,) in rows)})
    return await mark_claimants(db, vaults, priority, without=addresses, servers=servers)


async def mark_server(db: AsyncSession, server_id: int, priority: int) -> int:
    """Mark the members whom a rule of the server can concern."""
    return await _mark(db, _concerned("AND m.server_id = :server"), priority, {"server": server_id})


async def disturb_server(db: AsyncSession, server_id: int) -> None:
    """Invalidate the running reconciles of a server's members, because their input has changed."""
    # A reconcile that is being written has its rows locked; waiting for it could deadlock.
    await db.execute(
        text(
            "UPDATE due SET version = version + 1 WHERE ctid = ANY(ARRAY(SELECT ctid FROM due "
            "WHERE kind = 'member' AND claimed_until IS NOT NULL AND starts_with(key, :of_server) "
            "FOR UPDATE SKIP LOCKED))"
        ),
        {"of_server": f"{server_id}:"},
    )


async def mark_servers(db: AsyncSession, servers: Sequence[int], priority: int) -> int:
    """Mark the members whom a rule of these servers can concern."""
    who = _concerned("AND m.server_id = ANY(CAST(:servers AS integer[]))")
    return await _mark(db, who, priority, {"servers": list(servers)})


async def mark_all(db: AsyncSession, priority: int = SWEPT) -> int:
    """Mark all members whom a rule can concern, for the daily sweep.

    The sweep brings no news about them, so a running reconcile already counts for it: versions stay.
    """
    return await _mark(db, _concerned(), priority, {}, raises_version=False)


def _concerned(more: str = "") -> str:
    """Return the SQL for present members, no bots, with a wallet, a grant or a role to take over, limited by `more`."""
    # Joins, not conditions: a condition would look up each of a million members separately.
    return " UNION ".join(
        f"SELECT m.server_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id {reason} "
        f"WHERE m.left_at IS NULL AND NOT m.bot AND s.bot_invited {more}"
        for reason in (
            'JOIN "user" u ON u.discord_id = m.discord_id JOIN wallet w ON w.user_id = u.id',
            'JOIN "grant" g ON g.server_id = m.server_id AND g.discord_id = m.discord_id',
            "JOIN rule r ON r.server_id = m.server_id AND r.takes_over AND r.state = 'active' AND r.deleted_at IS NULL "
            "AND r.role_id = ANY(m.roles)",
        )
    )


async def _mark(
    db: AsyncSession,
    who: str,
    priority: int,
    values: dict[str, object],
    *,
    raises_version: bool = True,
    sighting: bool = False,
) -> int:
    question = _marking(who, priority, values, raises_version=raises_version, sighting=sighting)
    (((marked, _),),) = await db.together(question)
    return int(marked)


def _marking(
    who: str, priority: int, values: dict[str, object], *, raises_version: bool = True, sighting: bool = False
) -> Question:
    # A fixed order makes overlapping marks wait for each other instead of deadlocking.
    statement = f"""
        WITH marked AS (
        INSERT INTO due (kind, key, priority, due_at, version, seen, attempts, request_id, turn)
        SELECT 'member', w.server_id || ':' || w.discord_id, :priority, now(), 1, :sighting, 0, CAST(:request AS text),
               (row_number() OVER (PARTITION BY w.server_id ORDER BY w.discord_id) - 1) / :each + 1
        FROM ({who}) w ORDER BY 2
        ON CONFLICT (kind, key) DO UPDATE SET
            version = due.version + :step,
            seen = due.seen + :sighting,
            priority = GREATEST(due.priority, EXCLUDED.priority),
            due_at = LEAST(due.due_at, EXCLUDED.due_at),
            turn = LEAST(due.turn, EXCLUDED.turn),
            attempts = CASE WHEN :step > 0 THEN 0 ELSE due.attempts END,
            request_id = COALESCE(EXCLUDED.request_id, due.request_id)
        RETURNING 1)
        SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify(:channel, '') END FROM marked
    """
    more = {
        "priority": priority, "step": int(raises_version), "sighting": int(sighting), "request": request_ids.current(),
        "channel": CHANNEL, "each": 1 if priority > AGAIN else EACH_TURN,
    }  # fmt: skip
    return statement, {**values, **more}


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
    UPDATE due d SET claimed_until = now() + :lease, claimed_by = :worker
    WHERE d.ctid = ANY(ARRAY(SELECT ctid FROM picked))
    RETURNING d.key, d.version, d.attempts, d.priority, d.request_id, d.seen, d.overtaken, d.turn
"""
"""Rows are found by `ctid`, not by a join: the planner may expect one row in a table that is mostly empty, and would
compare each row with each. A row that changes between being found and being locked waits for the next claim.

Three kinds of members share a claim, so that none blocks the others: half is for new work, a quarter for retries and a
quarter for the sweep. New work and the sweep may use what another kind leaves free.
"""


async def claim(
    db: AsyncSession, worker: str, limit: int, least: int = SWEPT, *, without: Collection[int] = ()
) -> list[Claim]:
    """Claim up to `limit` due members with at least the priority `least` under a lease, the most urgent first.

    Servers take turns within one priority: each server's first member comes before any server's second one, and in the
    sweep each server's first EACH_TURN members. The servers in `without` are skipped.
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


async def count_anew(db: AsyncSession) -> None:
    """ANALYZE the queue table; skipped while another session does it.

    After a sweep the planner assumes an empty table, and would compare each row with each claim of a large batch.
    """
    await db.execute(text("ANALYZE (SKIP_LOCKED) due"))


def _in_order(which: str) -> str:
    """Return a condition for the due members that match `which`; it locks them in the order of their keys, as marks do.

    Any other order could deadlock with a mark of several members.
    """
    found = f"SELECT key FROM due WHERE kind = 'member' AND {which} ORDER BY key FOR UPDATE"
    return f"kind = 'member' AND key = ANY(ARRAY({found}))"


_OURS = _in_order("claimed_by = :worker AND key = ANY(string_to_array(:keys, ','))")


async def renew(db: AsyncSession, worker: str) -> None:
    """Renew the lease on all claims of this worker."""
    which = _in_order("claimed_by = :worker AND claimed_until IS NOT NULL")
    await db.execute(
        text(f"UPDATE due SET claimed_until = now() + :lease WHERE {which}"), {"lease": LEASE, "worker": worker}
    )


async def release_leases(db: AsyncSession, is_dead: Callable[[str], bool]) -> int:
    """Release the claims of workers that are known to be dead before their leases expire.

    A wrong `is_dead` costs only double work: a worker that lost a claim writes nothing for it.
    """
    result = await db.execute(text("SELECT DISTINCT claimed_by FROM due WHERE claimed_until > now()"))
    dead = [str(worker) for (worker,) in result.all() if is_dead(str(worker))]
    if dead:
        which = _in_order("claimed_by = ANY(CAST(:dead AS text[]))")
        await db.execute(text(f"UPDATE due SET claimed_until = NULL, claimed_by = NULL WHERE {which}"), {"dead": dead})
    return len(dead)


def still_ours(worker: str, claims: Sequence[Claim]) -> Question:
    """Return a statement that locks the claims and returns two lists of keys: unchanged ones, and those only sighted.

    Unchanged claims have had no mark since they were claimed; the others only sightings of transfers.
    """
    statement = f"""
        SELECT ARRAY(SELECT d.key FROM due d WHERE {_CLAIMED} AND {_UNCHANGED} ORDER BY d.key FOR UPDATE OF d) AS keys,
               ARRAY(SELECT d.key FROM due d WHERE {_CLAIMED} AND NOT {_UNCHANGED} AND {_SEEN_ONLY}
                     ORDER BY d.key FOR UPDATE OF d) AS seen
    """
    return statement, _values(worker, claims)


def hold(db: AsyncSession, worker: str, claims: Sequence[Claim], seen: Sequence[Claim] = ()) -> None:
    """Make the transaction fail with GuardFailed if one of these claims has had a mark since it was claimed.

    Those in `seen` may have had sightings of transfers.
    """
    question, values = still_ours(worker, [*claims, *seen])
    db.later(
        "SELECT guard(cardinality(keys) >= :all AND cardinality(keys) + cardinality(seen) = :both, 'marked again') "
        f"FROM ({question}) o",
        {**values, "all": len(claims), "both": len(claims) + len(seen)},
    )


def done(db: AsyncSession, worker: str, claims: Sequence[Claim], denied: Collection[str] = ()) -> None:
    """Complete the claims: delete unchanged rows, and release those marked again.

    `denied` are the keys of members who would have lost a role without the sightings.
    """
    statement = f"""
        WITH gone AS (DELETE FROM due d WHERE {_CLAIMED} AND {_UNCHANGED})
        UPDATE due d SET claimed_until = NULL, claimed_by = NULL,
            overtaken = CASE WHEN d.key = ANY(string_to_array(:denied, ',')) THEN d.overtaken + 1 ELSE 0 END
        WHERE {_CLAIMED} AND NOT {_UNCHANGED}
    """
    db.later(statement, {**_values(worker, claims), "denied": joined(denied)})


def pause_after(attempts: int, known: float | None = None) -> int:
    """Return the seconds until the next try after `attempts` failed ones; `known` is the predicted wait, if any.

    A predicted success is tried again within a minute, however often it has failed. The minimum pause keeps us from
    asking a chain without end that makes no blocks while nothing happens.
    """
    growing = min(5 * 2 ** min(attempts, 20), LONGEST_PAUSE)
    return growing if known is None else max(ceil(known), min(growing, KNOWN_AGAIN))


async def later(
    db: AsyncSession,
    worker: str,
    claims: Sequence[Claim],
    reasons: Sequence[str | None],
    known_pauses: Sequence[float | None] | None = None,
) -> None:
    """Retry these claims after a pause that grows with the attempts, and store the reasons they stayed unknown.

    `known_pauses` are the predicted seconds after which a retry can succeed (see `pause_after`).
    """
    known = known_pauses or [None] * len(claims)
    pauses = [pause_after(claim.attempts, pause) for claim, pause in zip(claims, known, strict=True)]
    more = {claim.key: [pause, reason] for claim, pause, reason in zip(claims, pauses, reasons, strict=True)}
    await db.execute(
        text(
            f"""
            UPDATE due d SET attempts = d.attempts + 1, overtaken = 0, turn = :late,
                             priority = LEAST(d.priority, :again),
                             reason = {_MORE} ->> 1,
                             due_at = now() + CAST({_MORE} ->> 0 AS integer) * interval '1 second'
            WHERE {_CLAIMED} AND {_UNCHANGED}
            """
        ),
        {**_values(worker, claims), "more": json.dumps(more), "again": AGAIN, "late": LATE},
    )
    await let_go(db, worker, claims)


async def at(db: AsyncSession, worker: str, moments: Sequence[tuple[Claim, datetime]]) -> None:
    """Reschedule these claims to the given times, such as the end of a grace time."""
    more = {claim.key: moment.isoformat() for claim, moment in moments}
    await db.execute(
        text(
            f"""
            UPDATE due d SET attempts = 0, overtaken = 0, priority = 0, reason = NULL, turn = :late,
                             due_at = CAST((SELECT CAST(:more AS jsonb)) ->> d.key AS timestamptz)
            WHERE {_CLAIMED} AND {_UNCHANGED}
            """
        ),
        {**_values(worker, [claim for claim, _ in moments]), "more": json.dumps(more), "late": LATE},
    )
    await let_go(db, worker, [claim for claim, _ in moments])


async def put_off(db: AsyncSession, worker: str, claims: Sequence[Claim], seconds: float) -> None:
    """Release these claims without a decision for `seconds`; unlike `later` it counts no attempt."""
    await db.execute(
        text(
            "UPDATE due SET claimed_until = NULL, claimed_by = NULL, turn = :late, "
            f"due_at = now() + :seconds * interval '1 second' WHERE {_OURS}"
        ),
        {"worker": worker, "keys": joined(claim.key for claim in claims), "seconds": seconds, "late": LATE},
    )


async def let_go(db: AsyncSession, worker: str, claims: Sequence[Claim]) -> None:
    """Release these claims for any worker, this one included."""
    await db.execute(
        text(f"UPDATE due SET claimed_until = NULL, claimed_by = NULL WHERE {_OURS}"),
        {"worker": worker, "keys": joined(claim.key for claim in claims)},
    )


_CLAIMED = "d.kind = 'member' AND d.key = ANY(string_to_array(:keys, ',')) AND d.claimed_by = :worker"
_MORE = "(SELECT CAST(:more AS jsonb)) -> d.key"
_UNCHANGED = "d.version = CAST((SELECT CAST(:versions AS jsonb)) ->> d.key AS bigint)"
_SEEN_ONLY = "d.version - d.seen = CAST((SELECT CAST(:changes AS jsonb)) ->> d.key AS bigint)"
"""Looked up, not joined: claims change faster than the planner's statistics, and a join that expects few rows compares
each with each. The lookup is a SELECT of its own, so that a cached plan parses the document once."""


def _values(worker: str, claims: Sequence[Claim]) -> dict[str, object]:
    return {
        "worker": worker,
        "keys": joined(claim.key for claim in claims),
        "versions": json.dumps({claim.key: claim.version for claim in claims}),
        "changes": json.dumps({claim.key: claim.version - claim.seen for claim in claims}),
    }
