"""A jobs process while the database is away: from its first moment on it waits, and then does its work."""

import asyncio

import pytest

import models
from jobs.__main__ import PARTS, lives
from models import Schedule, transaction
from services import sweep
from services.tasks import stop
from settings import settings
from tests.jobs.town import until

NOWHERE = "postgresql+psycopg://holdfast@/holdfast?host=/nowhere&port=5432"


async def test_no_part_ends_while_the_database_is_away_and_all_go_on_when_it_is_back(
    product: None, database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    settings.cache_clear()
    await models.use(NOWHERE)
    tasks = [asyncio.create_task(life()) for life in lives(PARTS)]
    running = asyncio.gather(*tasks)

    async def everybody_noticed() -> bool:
        assert not running.done(), running.exception()
        return caplog.text.count("did not answer") + caplog.text.count("was lost") >= len(tasks)

    async def the_clock_ticks() -> bool:
        assert not running.done(), running.exception()
        async with transaction() as db:
            return await db.get(Schedule, sweep.SCHEDULE) is not None

    try:
        await until(everybody_noticed)
        monkeypatch.setenv("DATABASE_URL", database_url)
        settings.cache_clear()
        await models.use(database_url)
        await until(the_clock_ticks)
    finally:
        await stop(*tasks)
        await asyncio.gather(running, return_exceptions=True)
