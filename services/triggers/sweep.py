"""The daily sweep over all members, and an admin's re-check of one server."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateways import Gateways
from models import Schedule, transaction
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.guilds import members_intent, permissions
from services.guilds.gateway import known_people
from services.runtime import schedules
from services.triggers import member_rereads

log = logging.getLogger(f"holdfast.{__name__}")

SCHEDULE = schedules.SWEEP
MOST_AT_ONCE = 50_000
"""The most members who are queued in one transaction, unless a server has more."""


@dataclass(frozen=True, slots=True)
class SweepView:
    """Progress of the sweep: `total` members were due when it began, `left` still wait."""

    started_at: datetime | None
    finished_at: datetime | None
    total: int
    left: int


async def start_sweep(db: AsyncSession) -> int:
    """Queue all members whom a rule can concern, and let failed writes be tried again; return how many are due.

    While Discord reports members, people who left are read again too.

    The queue is written in transactions of their own, a part of the servers in each, so that nobody waits long for a
    row of it. If this ends early, `db` is rolled back, and with it the turn: the next one marks everybody again.
    Nothing may wait for the sweep's row of `schedule` while it holds a row of the queue, as PostgreSQL would not notice
    that deadlock.
    """
    total = 0
    for servers in _parts((await db.execute(_SIZES)).all()):
        async with transaction() as marking:
            total += await queue.mark_swept(marking, servers)
    await db.execute(_TRY_AGAIN)
    if await members_intent.hears_members(db):
        await member_rereads.read_who_left(db)
    await schedules.began(db, SCHEDULE, total)
    return total


_SIZES = """
    SELECT s.id, COALESCE(sum(c.total), 0) FROM server s LEFT JOIN (
        SELECT server_id, total FROM rollup WHERE kind = 'members'
        UNION ALL SELECT server_id, total FROM rollup_delta WHERE kind = 'members'
    ) c ON c.server_id = s.id WHERE s.bot_invited GROUP BY s.id ORDER BY s.id
"""
# A change that somebody has locked gets its next moment from them.
_TRY_AGAIN = """
    UPDATE "grant" SET next_at = now() WHERE id IN (
        SELECT id FROM "grant" WHERE state IN ('giving', 'taking') AND next_at > now() FOR UPDATE SKIP LOCKED)
"""


def _parts(sizes: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """Group servers, each an id and its number of members, into parts of MOST_AT_ONCE members or one larger server."""
    part, members = list[int](), 0
    for server_id, size in sizes:
        if part and members + size > MOST_AT_ONCE:
            yield part
            part, members = [], 0
        part.append(server_id)
        members += size
    if part:
        yield part


async def begin(db: AsyncSession) -> None:
    """Start a sweep and log how many members are due."""
    log.info("started sweep members=%s", await start_sweep(db))


async def ask_for_sweep(db: AsyncSession) -> None:
    """Make the sweep due now, for any scheduler."""
    await schedules.bring_forward(db, SCHEDULE)


async def progress(db: AsyncSession) -> SweepView:
    """Return the progress of the present sweep, or the result of the last one."""
    row = await db.get(Schedule, SCHEDULE)
    left = (await db.execute("SELECT count(*) FROM due WHERE kind = 'member'")).scalar_one()
    if row is None:
        return SweepView(None, None, 0, int(left))
    return SweepView(row.started_at, row.finished_at, row.total, min(int(left), row.total))


def seconds_left(started_at: datetime, now: datetime, total: int, left: int) -> float | None:
    """Return the seconds until the sweep ends at its present pace; None before there is a pace."""
    looked_at, lasted = total - left, (now - started_at).total_seconds()
    return lasted * left / looked_at if looked_at > 0 and lasted > 0 else None


async def recheck_server(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> int | None:
    """Queue every member of a server and have its list of members read; return how many are queued.

    Return None while another request does the same: in a large server each takes seconds. Members are read after the
    queue is written, so what this request would have found is found. Raises ServerNotFound unless the actor runs the
    server.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    if not await db.try_lock(f"recheck:{server_id}"):
        return None
    # The server's row first, as a guild that becomes available locks it.
    await known_people.want_list(db, server_id)
    total = await queue.mark_server(db, server_id, queue.CHANGED)
    await audit.record(
        db, audit.line("recheck.asked", server_id=server_id, actor=actor.discord_id, data={"members": total})
    )
    return total


async def finish_if_done(db: AsyncSession) -> bool:
    """Record the end of the sweep once no member waits for it; return whether it ended just now."""
    # First, so that the queue is read only while a sweep runs, and so that the end is that of this sweep: the next one
    # may be about to begin, with members who cannot be seen yet.
    if (began := await schedules.running_since(db, SCHEDULE)) is None:
        return False
    waiting = await db.execute("SELECT 1 FROM due WHERE kind = 'member' AND attempts = 0 AND due_at <= now() LIMIT 1")
    return waiting.first() is None and await schedules.finished(db, SCHEDULE, began)
