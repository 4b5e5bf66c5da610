"""The schedules: one row each, so that only one of several schedulers runs each job."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from models.db.session import AsyncSession

Work = Callable[[AsyncSession], Awaitable[object]]
"""The work of a job, done in the transaction that claims its turn."""
SWEEP = "sweep"
"""The schedule of the sweep over everybody."""
HOUSEKEEPING = "housekeeping"
"""The schedule of the deletion of expired data."""
APART = timedelta(minutes=1)
"""The most by which the start times of two transactions that claim a schedule concurrently may differ."""


async def ensure(db: AsyncSession, name: str, every: timedelta) -> None:
    """Create the schedule if it is missing, and move it closer if it is more than one period away."""
    await db.execute(
        """
        INSERT INTO schedule (name, next_at, done, total) VALUES (:name, now() + :every, 0, 0)
        ON CONFLICT (name) DO UPDATE SET next_at = LEAST(schedule.next_at, now() + :every)
        """,
        {"name": name, "every": every},
    )


async def claim(db: AsyncSession, name: str, every: timedelta) -> bool:
    """Return whether this process should run the job now; a run missed during downtime is due at once.

    A schedule more than one period away is due too: the database's clock was ahead when it was planned.
    """
    result = await db.execute(
        "UPDATE schedule SET next_at = now() + :every WHERE name = :name "
        "AND (next_at <= now() OR next_at > now() + :every + :apart) RETURNING name",
        {"name": name, "every": every, "apart": APART},
    )
    return result.first() is not None


async def bring_forward(db: AsyncSession, name: str) -> None:
    """Make the schedule due now."""
    await db.execute(
        """
        INSERT INTO schedule (name, next_at, done, total) VALUES (:name, now(), 0, 0)
        ON CONFLICT (name) DO UPDATE SET next_at = now()
        """,
        {"name": name},
    )


async def began(db: AsyncSession, name: str, total: int = 0) -> None:
    """Record the start of a run and how much there is to do."""
    await db.execute(
        """
        INSERT INTO schedule (name, next_at, started_at, done, total) VALUES (:name, now(), now(), 0, :total)
        ON CONFLICT (name) DO UPDATE SET started_at = now(), finished_at = NULL, total = :total, done = 0
        """,
        {"name": name, "total": total},
    )


async def running_since(db: AsyncSession, name: str) -> datetime | None:
    """Return when the present run began; None if it has ended, or none has begun."""
    statement = "SELECT started_at FROM schedule WHERE name = :name AND finished_at IS NULL"
    (rows,) = await db.together((statement, {"name": name}))
    return rows[0][0] if rows else None


async def finished(db: AsyncSession, name: str, began: datetime) -> bool:
    """Record the end of the run that began then, and return whether it was still running."""
    result = await db.execute(
        "UPDATE schedule SET finished_at = now(), done = total "
        "WHERE name = :name AND started_at = :began AND finished_at IS NULL RETURNING name",
        {"name": name, "began": began},
    )
    return result.first() is not None
