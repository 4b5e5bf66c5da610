"""A census with nothing to count waits for the next request."""

import asyncio

import pytest

from jobs import census_taker
from jobs.census_taker import CensusTaker
from models import transaction
from services.collections.census import census_queue, reach
from services.rules.expression import Requirement
from services.runtime.postgres_listen import Listener
from services.runtime.task_cancellation import stop
from tests.support.builders import CONTRACT, a_server

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
