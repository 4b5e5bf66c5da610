"""A jobs process while the database is away: it waits from its start on, and then does its work."""

import asyncio
import gc
import logging
from typing import Any

import pytest
from sqlalchemy import text

import models
from jobs import provider_monitor
from jobs.__main__ import PARTS, lives
from jobs.provider_monitor import ProviderMonitor
from jobs.reconciler import Reconciler
from models import Schedule, transaction
from services.runtime import database_faults, retries
from services.runtime.task_cancellation import stop
from services.triggers import sweep
from settings import settings
from tests.jobs.town import until

NOWHERE = "postgresql+psycopg://holdfast@/holdfast?host=/nowhere&port=5432"


async def test_no_part_ends_while_the_database_is_away_and_all_go_on_when_it_is_back(
    product: None, database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    settings.cache_clear()
    await models.use(NOWHERE)
    noticed, log_fault = 0, database_faults.log_fault

    def counted(log: logging.Logger, fault: BaseException, then: str) -> None:
        nonlocal noticed
        noticed += 1
        log_fault(log, fault, then)

    monkeypatch.setattr(database_faults, "log_fault", counted)
    tasks = [asyncio.create_task(life()) for life in lives(PARTS)]
    running = asyncio.gather(*tasks)

    async def everybody_noticed() -> bool:
        assert not running.done(), running.exception()
        return noticed + caplog.text.count("writing stopped") + caplog.text.count("was lost") >= len(tasks)

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


async def test_a_full_disk_is_told_in_full_once_and_not_as_an_absent_database(
    product: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    async def disk_full(_: ProviderMonitor) -> None:
        nonlocal tries
        tries += 1
        async with transaction() as db:
            await db.execute(text("DO $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"))

    async def tried_often() -> bool:
        return tries >= 4

    monkeypatch.setattr(provider_monitor, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(ProviderMonitor, "once", disk_full)
    task = asyncio.create_task(retries.run_forever(ProviderMonitor().run))
    try:
        await until(tried_often)
    finally:
        await stop(task)
    told = [record for record in caplog.records if record.name == provider_monitor.log.name]
    assert [bool(record.exc_info) for record in told] == [True]
    assert all("no space left" in record.getMessage() for record in told)
    assert "did not answer" not in caplog.text


async def test_a_part_that_fails_while_it_is_told_to_end_does_not_begin_again() -> None:
    begun, count = asyncio.Event(), 0

    async def life() -> None:
        nonlocal count
        count += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the way back fails too")

    task = asyncio.create_task(retries.run_forever(life))
    await begun.wait()
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=60)
    assert done
    assert task.cancelled()
    assert count == 1


async def test_of_several_failed_tasks_one_error_is_raised_and_none_is_left_for_asyncio_to_log() -> None:
    async def fails(number: int) -> None:
        raise ConnectionError(f"lost {number}")

    loop, unread = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: unread.append(context))
    worker = Reconciler(asyncio.Event())
    worker._slow = {asyncio.create_task(fails(number)): 1 for number in (1, 2, 3)}
    await asyncio.sleep(0)
    with pytest.raises(ConnectionError, match="lost 1"):
        worker._forget_ended()
    gc.collect()
    assert unread == []
