"""What the clock does: one row a schedule, so that however many clocks tick, each thing is done once."""

from datetime import timedelta

from sqlalchemy import text

from models.db.session import AsyncSession

APART = timedelta(minutes=1)
"""By how much the beginnings of two transactions that claim a schedule at the same moment may differ."""


async def ensure(db: AsyncSession, name: str, every: timedelta) -> None:
    """Make sure that the schedule exists and is no further away than its own period (a shortened one counts)."""
    await db.execute(
        text(
            """
            INSERT INTO schedule (name, next_at, done, total) VALUES (:name, now() + :every, 0, 0)
            ON CONFLICT (name) DO UPDATE SET next_at = LEAST(schedule.next_at, now() + :every)
            """
        ),
        {"name": name, "every": every},
    )


async def claim(db: AsyncSession, name: str, every: timedelta) -> bool:
    """Whether it is this process's turn to do it now; one missed while everything was down is due at once.

    So is one that is further away than its period: the database's clock was ahead when that was planned.
    """
    result = await db.execute(
        text(
            "UPDATE schedule SET next_at = now() + :every WHERE name = :name "
            "AND (next_at <= now() OR next_at > now() + :every + :apart) RETURNING name"
        ),
        {"name": name, "every": every, "apart": APART},
    )
    return result.first() is not None


async def bring_forward(db: AsyncSession, name: str) -> None:
    """Make it due now."""
    await db.execute(
        text(
            """
            INSERT INTO schedule (name, next_at, done, total) VALUES (:name, now(), 0, 0)
            ON CONFLICT (name) DO UPDATE SET next_at = now()
            """
        ),
        {"name": name},
    )


async def began(db: AsyncSession, name: str, total: int = 0) -> None:
    """Note that it began, with how much there is to do."""
    await db.execute(
        text(
            """
            INSERT INTO schedule (name, next_at, started_at, done, total) VALUES (:name, now(), now(), 0, :total)
            ON CONFLICT (name) DO UPDATE SET started_at = now(), finished_at = NULL, total = :total, done = 0
            """
        ),
        {"name": name, "total": total},
    )


async def finished(db: AsyncSession, name: str) -> bool:
    """Note that it ended, if it was running; tells whether it was."""
    result = await db.execute(
        text(
            "UPDATE schedule SET finished_at = now(), done = total "
            "WHERE name = :name AND started_at IS NOT NULL AND finished_at IS NULL RETURNING name"
        ),
        {"name": name},
    )
    return result.first() is not None
