"""The breaker: when too many would lose a role at once, nobody loses it until an admin has looked."""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, func, text, update
from sqlmodel import col, select

from models import Breaker, Grant, now
from models.session import AsyncSession
from services import due, events

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
    if breaker is not None and breaker.approved_at is None and breaker.dismissed_at is None:
        return True
    # An approval is for what was seen that day, not for whatever may come later; a dismissal lets nothing go.
    if breaker is not None and breaker.approved_at is not None and breaker.approved_at > now() - APPROVED_FOR:
        return False
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
    tripped = Breaker(server_id=server_id, role_id=role_id, would_lose=losing, holders=holders)
    if breaker is not None:
        await db.delete(breaker)
        await db.flush()
    db.add(tripped)
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
    rows = await db.exec(select(Breaker).where(Breaker.server_id == server_id, *_WAITING))
    return list(rows.all())


_WAITING = (col(Breaker.approved_at).is_(None), col(Breaker.dismissed_at).is_(None))


async def waiting(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, int]:
    """Per server how many roles' removals wait for an admin; servers without any are absent."""
    rows = await db.exec(
        select(Breaker.server_id, func.count())
        .where(col(Breaker.server_id).in_(list(server_ids)), *_WAITING)
        .group_by(col(Breaker.server_id))
    )
    return dict(rows.all())


async def approve(db: AsyncSession, server_id: int, admin: str, role_id: str | None = None) -> int:
    """Let the stopped removals of a server, or of one role of it, go on for a day; tells of how many roles.

    What was dismissed before can be approved all the same: those who were let keep the role are judged again.
    """
    rows = await db.exec(
        select(Breaker).where(
            Breaker.server_id == server_id, col(Breaker.approved_at).is_(None), *_only(Breaker.role_id, role_id)
        )
    )
    waiting = rows.all()
    for breaker in waiting:
        breaker.approved_at, breaker.approved_by = now(), admin
        breaker.dismissed_at = breaker.dismissed_by = None
        db.add(breaker)
        await db.execute(
            update(Grant).where(_held_back(server_id, breaker.role_id)).values(gift_since=None, held_back_at=None)
        )
        await events.record(
            db, events.line("breaker.approved", server_id=server_id, actor=admin, role_id=breaker.role_id)
        )
    return len(waiting)


async def dismiss(db: AsyncSession, server_id: int, admin: str, role_id: str | None = None) -> int:
    """Let everybody whose removal was stopped keep the role until a rule says yes to them again.

    From then on removals of the role are counted anew. Tells of how many roles; approving later is still possible.
    """
    rows = await db.exec(
        select(Breaker).where(Breaker.server_id == server_id, *_WAITING, *_only(Breaker.role_id, role_id))
    )
    waiting = rows.all()
    for breaker in waiting:
        breaker.dismissed_at, breaker.dismissed_by = now(), admin
        db.add(breaker)
        await _give_back(db, server_id, breaker.role_id)
        kept = await db.execute(
            update(Grant)
            .where(_held_back(server_id, breaker.role_id))
            .values(gift_since=now(), no_since=None)
            .returning(col(Grant.discord_id))
        )
        people = [str(who) for (who,) in kept.all()]
        # A look that is under way must not take what was just left to them.
        await due.mark_members(db, server_id, people, due.CHANGED)
        data = {"members": len(people)}
        await events.record(
            db, events.line("breaker.dismissed", server_id=server_id, actor=admin, role_id=breaker.role_id, data=data)
        )
    return len(waiting)


async def _give_back(db: AsyncSession, server_id: int, role_id: str) -> None:
    """Turn removals that were intended before the trip round; they may have been sent, so the writer looks first."""
    await db.execute(
        update(Grant)
        .where(col(Grant.server_id) == server_id, col(Grant.role_id) == role_id, col(Grant.state) == "taking")
        .values(state="giving", attempts=1, intended_at=func.now(), next_at=func.now(), held_back_at=func.now())
    )


def _held_back(server_id: int, role_id: str) -> ColumnElement[bool]:
    return and_(col(Grant.server_id) == server_id, col(Grant.role_id) == role_id, col(Grant.held_back_at).is_not(None))


def _only(column: str, wanted: str | None) -> tuple[ColumnElement[bool], ...]:
    return () if wanted is None else (col(column) == wanted,)
