"""Counts kept up to date in the database: log lines by server, kind and day, holders of rules, members."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from models.db.session import AsyncSession


@dataclass(frozen=True, slots=True)
class HolderSteps:
    """A rule's present holders, and the change in their number on each day."""

    present: int
    steps: dict[date, int]


async def by_day(
    db: AsyncSession, server_ids: Iterable[int], kinds: Iterable[str], first: date
) -> dict[tuple[str, date], int]:
    """Return the total number of log lines of these kinds in the servers, by kind and day, from the day `first` on.

    The triggers that count cut days in UTC.
    """
    rows = await db.execute(
        """
        SELECT kind, day, sum(total) FROM (
            SELECT server_id, kind, day, total FROM rollup
            UNION ALL SELECT server_id, kind, day, total FROM rollup_delta
        ) c WHERE server_id = ANY(CAST(:servers AS integer[])) AND kind = ANY(CAST(:kinds AS text[])) AND day >= :first
        GROUP BY 1, 2
        """,
        {"servers": list(server_ids), "kinds": list(kinds), "first": first},
    )
    return {(str(kind), day): int(total) for kind, day, total in rows.all()}


async def holders(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, int]:
    """Return, by rule, how many members hold its role because of it; rules without holders are left out."""
    rows = await db.execute(
        """
        SELECT rule_id, sum(total) FROM (
            SELECT rule_id, total FROM holder_count WHERE server_id = ANY(CAST(:servers AS integer[]))
            UNION ALL SELECT rule_id, total FROM rollup_delta
            WHERE kind = 'holders' AND server_id = ANY(CAST(:servers AS integer[]))
        ) c GROUP BY rule_id HAVING sum(total) <> 0
        """,
        {"servers": list(server_ids)},
    )
    return {int(rule_id): int(total) for rule_id, total in rows.all()}


async def members(db: AsyncSession, server_id: int) -> int:
    """Return how many members a server has, without bots."""
    found = await db.execute(
        """
        SELECT COALESCE(sum(total), 0) FROM (
            SELECT total FROM rollup WHERE server_id = :server AND kind = 'members'
            UNION ALL SELECT total FROM rollup_delta WHERE server_id = :server AND kind = 'members'
        ) c
        """,
        {"server": server_id},
    )
    return int(found.scalar_one())


async def holder_steps(db: AsyncSession, server_ids: Iterable[int], first: date) -> dict[int, HolderSteps]:
    """Return the present holders and the daily changes since `first` by rule, from one snapshot of the database."""
    rows = await db.execute(
        """
        SELECT rule_id, CAST(NULL AS date) AS day, total FROM holder_count
        WHERE server_id = ANY(CAST(:servers AS integer[]))
        UNION ALL SELECT rule_id, NULL, total FROM rollup_delta
        WHERE kind = 'holders' AND server_id = ANY(CAST(:servers AS integer[]))
        UNION ALL SELECT rule_id, day, total FROM rollup
        WHERE kind = 'holders' AND server_id = ANY(CAST(:servers AS integer[])) AND day >= :first
        UNION ALL SELECT rule_id, day, total FROM rollup_delta
        WHERE kind = 'holders' AND server_id = ANY(CAST(:servers AS integer[])) AND day >= :first
        """,
        {"servers": list(server_ids), "first": first},
    )
    present: dict[int, int] = {}
    steps: dict[int, dict[date, int]] = {}
    for rule_id, day, total in rows.all():
        if day is None:
            present[rule_id] = present.get(rule_id, 0) + int(total)
        else:
            own = steps.setdefault(rule_id, {})
            own[day] = own.get(day, 0) + int(total)
    return {rule_id: HolderSteps(present.get(rule_id, 0), steps.get(rule_id, {})) for rule_id in present.keys() | steps}


async def fold(db: AsyncSession) -> int:
    """Add the changes since the last call to the counts; return how many, 0 while another process does it."""
    return int((await db.execute("SELECT rollup_fold()")).scalar_one())


async def begin(db: AsyncSession) -> None:
    """Reset every count, then count holders and members. Blocks all writers of these and of the log: commit at once."""
    await db.execute("SELECT rollup_begin()")


async def fill(db: AsyncSession) -> None:
    """Count the lines that were in the log when the counts began; call this once. Blocks no writers."""
    await db.execute("SELECT rollup_fill()")
