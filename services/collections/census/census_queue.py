"""The queue of counts: which one is advanced next, so that every server gets its turn."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from models.db.session import AsyncSession

MOST_KEPT, MOST_OF_A_SERVER = 20_000_000, 5_000_000
"""The most pairs of an address and a token in all counts together, and in the running counts for one server."""
CHANNEL = "holdfast_census"
"""The channel on which a notification says that numbers of a rule have been requested."""
LEASE = timedelta(minutes=2)
"""How long a count is leased to the process that advances it; each step renews the lease."""


class CountTaken(Exception):
    """Another process advances the count now."""


@dataclass(frozen=True, slots=True)
class CensusTask:
    """A count under a lease, for the server whose turn it is; see models.Census."""

    id: int
    server_id: int
    chain: str
    contract: str
    block: int
    block_hash: str
    known: int | None
    target: int | None
    after: str | None
    again: bool
    moves: int
    tokens: int
    faults: int
    holder: str


_COLUMNS = "chain, contract, block, block_hash, known, target, after, again, moves, tokens, faults"
"""The columns of a count in the order of a CensusTask's fields."""


async def claim(db: AsyncSession, holder: str) -> CensusTask | None:
    """Claim the longest-waiting count of the server that has waited longest for a turn, or return None."""
    found = await db.execute(
        """
        SELECT c.id, r.server_id FROM census c
        JOIN reach_census n ON n.census_id = c.id JOIN reach r ON r.id = n.reach_id AND r.state = 'counting'
        LEFT JOIN census_turn t ON t.server_id = r.server_id
        WHERE c.state = 'counting' AND c.next_at <= now() AND (c.held_until IS NULL OR c.held_until < now())
        ORDER BY t.at NULLS FIRST, c.next_at, c.id LIMIT 1 FOR UPDATE OF c SKIP LOCKED
        """
    )
    place = found.one_or_none()
    if place is None:
        return None
    census_id, server_id = (int(one) for one in place)
    await db.execute(
        "INSERT INTO census_turn (server_id, at) VALUES (:server, clock_timestamp()) "
        "ON CONFLICT (server_id) DO UPDATE SET at = EXCLUDED.at",
        {"server": server_id},
    )
    taken = await db.execute(
        f"""
        UPDATE census SET holder = :holder, held_until = now() + :lease WHERE id = :census
        RETURNING {_COLUMNS}
        """,
        {"census": census_id, "holder": holder, "lease": LEASE},
    )
    return CensusTask(census_id, server_id, *taken.one(), holder=holder)


async def update(db: AsyncSession, task: CensusTask, **changes: Any) -> None:
    """Write columns of a count and renew its lease. Raises CountTaken if another process has taken it over."""
    columns = "".join(f", {name} = :{name}" for name in changes)
    found = await db.execute(
        f"UPDATE census SET held_until = now() + :lease{columns} "
        "WHERE id = :census AND holder = :holder AND state = 'counting' RETURNING id",
        {**changes, "census": task.id, "holder": task.holder, "lease": LEASE},
    )
    if found.first() is None:
        raise CountTaken


async def give_back(db: AsyncSession, task: CensusTask, pause: timedelta = timedelta(0)) -> None:
    """End the lease; the count may be advanced again after the pause."""
    await db.execute(
        "UPDATE census SET holder = NULL, held_until = NULL, next_at = clock_timestamp() + :pause "
        "WHERE id = :census AND holder = :holder",
        {"census": task.id, "holder": task.holder, "pause": pause},
    )


async def request_count(db: AsyncSession, chain: str, contract: str, fresh: timedelta) -> int:
    """Return the id of a collection's count; one that failed or is older than `fresh` continues from its block."""
    found = await db.execute(
        """
        INSERT INTO census AS c (chain, contract, state, block, block_hash, again, moves, tokens, faults, reason,
            next_at, wanted_at)
        VALUES (:chain, :contract, 'counting', -1, '', false, 0, 0, 0, '', now(), now())
        ON CONFLICT (chain, contract) DO UPDATE SET wanted_at = now(), state = 'counting',
            target = CASE c.state WHEN 'counting' THEN c.target END,
            next_at = LEAST(c.next_at, now()),
            reason = CASE c.state WHEN 'counting' THEN c.reason ELSE '' END,
            faults = CASE c.state WHEN 'counting' THEN c.faults ELSE 0 END
        WHERE c.state <> 'done' OR c.counted_at < now() - :fresh
        RETURNING id
        """,
        {"chain": chain, "contract": contract, "fresh": fresh},
    )
    place = found.scalar_one_or_none()
    if place is not None:
        return int(place)
    kept = await db.execute(
        "UPDATE census SET wanted_at = now() WHERE chain = :chain AND contract = :contract RETURNING id",
        {"chain": chain, "contract": contract},
    )
    return int(kept.scalar_one())


_WAITED_FOR = """EXISTS (SELECT 1 FROM reach_census n JOIN reach r ON r.id = n.reach_id
    WHERE n.census_id = c.id AND r.state = 'counting')"""
"""The SQL condition that somebody waits for the count `c`."""


async def make_room(db: AsyncSession, server_id: int) -> tuple[bool, bool]:
    """Delete the longest unwanted count that nobody waits for, if all counts together keep too much.

    Return whether there is room for any count, and whether there is room for one of this server.
    """
    found = await db.execute(
        f"""
        SELECT c.id FROM census c JOIN (
            SELECT id, sum(tokens) OVER (ORDER BY wanted_at DESC, id DESC) AS kept FROM census) k ON k.id = c.id
        WHERE k.kept > :most AND NOT {_WAITED_FOR} ORDER BY k.kept DESC LIMIT 1 FOR UPDATE OF c SKIP LOCKED
        """,
        {"most": MOST_KEPT},
    )
    if (oldest := found.scalar_one_or_none()) is not None:
        # Checked again under the lock: somebody may want it by now.
        await db.execute(f"DELETE FROM census c WHERE c.id = :census AND NOT {_WAITED_FOR}", {"census": oldest})
    found = await db.execute(
        """
        SELECT COALESCE(sum(tokens), 0), COALESCE(sum(tokens) FILTER (WHERE EXISTS (
            SELECT 1 FROM reach_census n JOIN reach r ON r.id = n.reach_id
            WHERE n.census_id = c.id AND r.state = 'counting' AND r.server_id = :server)), 0) FROM census c
        """,
        {"server": server_id},
    )
    kept, of_server = found.one()
    return int(kept) <= MOST_KEPT, int(of_server) <= MOST_OF_A_SERVER


async def refuse(db: AsyncSession, task: CensusTask, reason: str) -> bool:
    """End the requests of the task's server for its count; return whether another server waits for the count."""
    await db.execute(
        "UPDATE reach SET state = 'failed', reason = :reason, ended_at = now() FROM reach_census n "
        "WHERE n.reach_id = reach.id AND n.census_id = :census AND reach.state = 'counting' "
        "AND reach.server_id = :server",
        {"census": task.id, "server": task.server_id, "reason": reason},
    )
    others = await db.execute(f"SELECT {_WAITED_FOR} FROM census c WHERE c.id = :census", {"census": task.id})
    return bool(others.scalar_one())


async def read(db: AsyncSession, task: CensusTask) -> CensusTask:
    """Return the stored count. Raises CountTaken if another process has taken it over."""
    found = await db.execute(
        f"SELECT {_COLUMNS} FROM census WHERE id = :census AND holder = :holder",
        {"census": task.id, "holder": task.holder},
    )
    row = found.one_or_none()
    if row is None:
        raise CountTaken
    return CensusTask(task.id, task.server_id, *row, holder=task.holder)


async def end(db: AsyncSession, task: CensusTask, *, head: int, block_hash: str, reason: str = "") -> None:
    """Record that a count is complete up to the block `head`."""
    await update(db, task, head=head, block_hash=block_hash, reason=reason, target=None, faults=0, state="done")
    await db.execute("UPDATE census SET counted_at = now() WHERE id = :census", {"census": task.id})
