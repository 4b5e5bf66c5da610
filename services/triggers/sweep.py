"""The daily round over everybody, and a round over one server when an admin asks for it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from gateways import Gateways
from models import Schedule
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.guilds import permissions
from services.runtime import schedules

SCHEDULE = "sweep"


@dataclass(frozen=True, slots=True)
class SweepView:
    """How far the round is: `total` members were due when it began, `left` are still to be looked at."""

    started_at: datetime | None
    finished_at: datetime | None
    total: int
    left: int


async def start_sweep(db: AsyncSession) -> int:
    """Mark everybody whom a rule can concern as due, and let failed writes be tried again; tells how many are due."""
    total = await queue.mark_all(db)
    await db.execute(
        text("UPDATE \"grant\" SET next_at = now() WHERE state IN ('giving', 'taking') AND next_at > now()")
    )
    await schedules.began(db, SCHEDULE, total)
    return total


async def ask_for_sweep(db: AsyncSession) -> None:
    """Let the next tick of any clock start a round."""
    await schedules.bring_forward(db, SCHEDULE)


async def progress(db: AsyncSession) -> SweepView:
    """How far the present round is, or how the last one ended."""
    row = await db.get(Schedule, SCHEDULE)
    left = (await db.execute(text("SELECT count(*) FROM due WHERE kind = 'member'"))).scalar_one()
    if row is None:
        return SweepView(None, None, 0, int(left))
    return SweepView(row.started_at, row.finished_at, row.total, min(int(left), row.total))


def seconds_left(started_at: datetime, now: datetime, total: int, left: int) -> float | None:
    """How long the round goes on at the pace it has had so far; None before there is a pace."""
    looked_at, lasted = total - left, (now - started_at).total_seconds()
    return lasted * left / looked_at if looked_at > 0 and lasted > 0 else None


async def recheck_server(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> int:
    """Mark every member of a server as due, for somebody who runs it; ServerNotFound for anyone else."""
    await permissions.by_id(db, outside, actor, server_id)
    total = await queue.mark_server(db, server_id, queue.CHANGED)
    await audit.record(
        db, audit.line("recheck.asked", server_id=server_id, actor=actor.discord_id, data={"members": total})
    )
    return total


async def finish_if_done(db: AsyncSession) -> bool:
    """Note the end of the round once nobody is left who has not been looked at; tells whether it ended just now."""
    waiting = await db.execute(
        text("SELECT 1 FROM due WHERE kind = 'member' AND attempts = 0 AND due_at <= now() LIMIT 1")
    )
    return waiting.first() is None and await schedules.finished(db, SCHEDULE)
