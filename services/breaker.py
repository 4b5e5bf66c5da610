"""The breaker: when too many would lose a role at once, nobody loses it until an admin has looked."""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import text
from sqlmodel import col, select

from models import Breaker, now
from models.database import AsyncSession
from services import events

MOST_PEOPLE = 5
MOST_SHARE_PERCENT = 20
APPROVED_FOR = timedelta(hours=24)


def too_many(losing: int, holders: int) -> bool:
    """Whether this many of so many holders within a day is more than chance: over 5 people and over 20 %."""
    return losing > MOST_PEOPLE and losing * 100 > holders * MOST_SHARE_PERCENT


async def stopped(db: AsyncSession, candidates: Iterable[tuple[int, str, str]]) -> set[tuple[int, str]]:
    """Of the removals about to be intended (`(server id, role id, Discord id)`) the roles that are stopped.

    Counts the people from whom the role was taken within 24 hours and who do not have it back, those from whom it is
    being taken, and the new ones, whatever the cause, and records a trip. Workers count one after another, so that
    two batches cannot slip past together.
    """
    new: dict[tuple[int, str], set[str]] = {}
    for server_id, role_id, discord_id in candidates:
        new.setdefault((server_id, role_id), set()).add(discord_id)
    refused: set[tuple[int, str]] = set()
    for (server_id, role_id), people in sorted(new.items()):
        await db.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:role, 0))"), {"role": f"{server_id}:{role_id}"}
        )
        if await _refuses(db, server_id, role_id, people):
            refused.add((server_id, role_id))
    return refused


async def _refuses(db: AsyncSession, server_id: int, role_id: str, people: set[str]) -> bool:
    breaker = await db.get(Breaker, (server_id, role_id))
    if breaker is not None:
        if breaker.approved_at is None:
            return True
        if breaker.approved_at > now() - APPROVED_FOR:
            return False
        # An approval is for what was seen that day, not for whatever may come later.
        await db.delete(breaker)
        await db.flush()
    result = await db.execute(
        text(
            """
            WITH have AS (
                SELECT discord_id, state FROM "grant"
                WHERE server_id = :server AND role_id = :role AND state IN ('held', 'taking', 'giving')
            ), lost AS (
                SELECT DISTINCT subject AS discord_id FROM event
                WHERE server_id = :server AND role_id = :role AND kind = 'role.taken'
                AND at > now() - interval '24 hours' AND subject NOT IN (SELECT discord_id FROM have)
            ), losing AS (
                SELECT discord_id FROM lost UNION SELECT discord_id FROM have WHERE state = 'taking'
                UNION SELECT unnest(CAST(:people AS text[]))
            )
            SELECT (SELECT count(*) FROM losing), (SELECT count(*) FROM (
                SELECT discord_id FROM losing UNION SELECT discord_id FROM have) everybody)
            """
        ),
        {"server": server_id, "role": role_id, "people": sorted(people)},
    )
    losing, holders = (int(value) for value in result.one())
    if not too_many(losing, holders):
        return False
    db.add(Breaker(server_id=server_id, role_id=role_id, would_lose=losing, holders=holders))
    await events.record(
        db,
        events.line(
            "breaker.tripped", server_id=server_id, role_id=role_id, data={"wouldLose": losing, "holders": holders}
        ),
    )
    await db.flush()
    return True


async def tripped(db: AsyncSession, server_id: int) -> list[Breaker]:
    """The roles of a server whose removals wait for an admin."""
    rows = await db.exec(select(Breaker).where(Breaker.server_id == server_id, col(Breaker.approved_at).is_(None)))
    return list(rows.all())


async def approve(db: AsyncSession, server_id: int, admin: str) -> int:
    """Let the stopped removals of a server go on for a day; tells how many roles were concerned."""
    waiting = await tripped(db, server_id)
    for breaker in waiting:
        breaker.approved_at, breaker.approved_by = now(), admin
        db.add(breaker)
        await events.record(
            db, events.line("breaker.approved", server_id=server_id, actor=admin, role_id=breaker.role_id)
        )
    return len(waiting)
