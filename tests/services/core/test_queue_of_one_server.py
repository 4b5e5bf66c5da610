"""What concerns one server reads that server's part of the queue, however many members of others wait."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from models import AsyncSession, now, transaction
from services.core import queue
from services.health import backlog
from services.triggers import rechecks

pytestmark = pytest.mark.usefixtures("database")


async def mark_server(db: AsyncSession, server_id: int) -> None:
    await queue.mark_server(db, server_id, queue.CHANGED)


async def a_queue_of_several_servers() -> None:
    """Queue one member of server 1 and many of others, in a database whose collation the system's library defines.

    An operator's own database mostly has such a collation, in which no index finds the beginning of a text.
    """
    async with transaction() as db:
        await db.execute(text("CREATE COLLATION of_the_system (provider = libc, locale = 'C.UTF-8')"))
        await db.execute(text("ALTER TABLE due ALTER COLUMN key TYPE text COLLATE of_the_system"))
        await queue.mark_member(db, 1, "5", queue.SWEPT)
        for other in (2, 10, 17):
            for number in range(100):
                await queue.mark_member(db, other, str(number), queue.SWEPT)
        await db.execute(text("UPDATE due SET claimed_by = 'w1', claimed_until = now() + interval '1 minute'"))
        await db.execute(text("ANALYZE due"))


async def rows_read(db: AsyncSession, doing: Callable[[AsyncSession], Awaitable[object]]) -> int:
    """Return how many rows of the queue `doing` reads."""
    # Of so few rows, the planner would read all at once.
    await db.execute(text("SET LOCAL enable_seqscan = off"))
    read = text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'due'")
    before = int((await db.execute(read)).scalar_one())
    await doing(db)
    return int((await db.execute(read)).scalar_one()) - before


@pytest.mark.parametrize("write", [mark_server, queue.invalidate_running])
async def test_what_concerns_one_server_reads_no_queued_members_of_others(
    write: Callable[[AsyncSession, int], Awaitable[None]],
) -> None:
    await a_queue_of_several_servers()
    async with transaction() as db:
        assert await rows_read(db, lambda db: write(db, 1)) < 10
    async with transaction() as db:
        assert (await db.execute(text("SELECT key FROM due WHERE version > 1"))).scalars().all() == ["1:5"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: rechecks.waiting(db, 1),
        lambda db: rechecks.waiting(db, 1, "5"),
        lambda db: backlog.queue(db, 1, now()),
        lambda db: backlog.unknown(db, 1),
    ],
    ids=["who waits", "whether a member waits", "what waits", "what is unknown"],
)
async def test_a_question_about_one_server_reads_no_queued_members_of_others(
    ask: Callable[[AsyncSession], Awaitable[object]],
) -> None:
    await a_queue_of_several_servers()
    async with transaction() as db:
        assert await rows_read(db, ask) < 10


async def test_whether_one_member_waits_is_asked_without_reading_the_others_of_the_server() -> None:
    await a_queue_of_several_servers()
    async with transaction() as db:
        # More often than the connection and the planner make a plan of its own for the values.
        for _ in range(20):
            assert await rows_read(db, lambda db: rechecks.waiting(db, 2, "5")) < 10


async def test_only_members_of_the_server_are_counted() -> None:
    await a_queue_of_several_servers()
    async with transaction() as db:
        await db.execute(text("UPDATE due SET reason = 'away', attempts = 1"))
        assert [await rechecks.waiting(db, server_id) for server_id in (1, 2, 10, 3)] == [1, 100, 100, 0]
        assert [await rechecks.waiting(db, 1, who) for who in ("5", "%", "6")] == [1, 0, 0]
        assert (await backlog.queue(db, 1, now())).failing == 1
        assert [one.members for one in await backlog.unknown(db, 1)] == [1]
