"""What concerns one server reads that server's part of the queue, however many members of others wait."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from models import AsyncSession, transaction
from services.core import queue

pytestmark = pytest.mark.usefixtures("database")


async def mark_server(db: AsyncSession, server_id: int) -> None:
    await queue.mark_server(db, server_id, queue.CHANGED)


@pytest.mark.parametrize("write", [mark_server, queue.invalidate_running])
async def test_what_concerns_one_server_reads_no_queued_members_of_others(
    write: Callable[[AsyncSession, int], Awaitable[None]],
) -> None:
    async with transaction() as db:
        await queue.mark_member(db, 1, "5", queue.SWEPT)
        for other in (2, 10, 17):
            await queue.mark_named(db, other, [str(number) for number in range(100)], queue.SWEPT)
        await db.execute(text("UPDATE due SET claimed_by = 'w1', claimed_until = now() + interval '1 minute'"))
        await db.execute(text("ANALYZE due"))
    async with transaction() as db:
        # Of so few rows, the planner would read all at once.
        await db.execute(text("SET LOCAL enable_seqscan = off"))
        read = text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'due'")
        before = (await db.execute(read)).scalar_one()
        await write(db, 1)
        assert (await db.execute(read)).scalar_one() - before < 10
    async with transaction() as db:
        assert (await db.execute(text("SELECT key FROM due WHERE version > 1"))).scalars().all() == ["1:5"]
