"""A census with nothing to count waits for the next request, and no request waits for a census."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from jobs import census_taker
from jobs.census_taker import CensusTaker
from models import CensusToken, transaction
from services.collections.census import census_queue, reach, reach_numbers
from services.rules.expression import Requirement
from services.runtime.postgres_listen import Listener
from services.runtime.task_cancellation import stop
from tests.support.builders import CONTRACT, a_server, address

pytestmark = pytest.mark.usefixtures("product")


async def test_a_request_ends_the_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census_taker, "IDLE_SECONDS", 3600.0)
    called, looked = asyncio.Event(), asyncio.Queue[None]()
    taker = CensusTaker("test", called)

    async def once() -> bool:
        looked.put_nowait(None)
        return False

    monkeypatch.setattr(taker, "once", once)
    running = [asyncio.create_task(life()) for life in (Listener({census_queue.CHANNEL: called}).run, taker.run)]
    try:
        async with asyncio.timeout(60):
            await looked.get()
            await looked.get()  # once the listener has connected
            async with transaction() as db:
                server = await a_server(db)
                await reach.start(db, server.id or 0, Requirement("basic", "base", CONTRACT))
            await looked.get()
    finally:
        await stop(*running)


async def test_a_count_begins_again_at_once_while_a_rules_numbers_are_added_up_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_up = reach_numbers.count

    async def begins_again(*arguments: Any) -> object:
        async with transaction() as other:
            await other.execute("SET LOCAL lock_timeout = '1s'")
            await census_queue.request_count(other, "base", CONTRACT, reach.FRESH)
            await other.execute("DELETE FROM census_token")
        return await add_up(*arguments)

    monkeypatch.setattr(reach_numbers, "count", begins_again)
    async with transaction() as db:
        server = await a_server(db)
        await reach.start(db, server.id or 0, Requirement("basic", "base", CONTRACT))
        done = await db.execute("UPDATE census SET state = 'done', block = 1, head = 1 RETURNING id")
        db.add(CensusToken(census_id=done.scalar_one(), part=0, owner=address(), token=Decimal(1), amount=Decimal(1)))
    async with transaction() as db:
        row = await reach.next_ended(db)
        assert row is not None
        await reach.settle(db, row)
        assert (row.state, row.holders) == ("done", 1)
