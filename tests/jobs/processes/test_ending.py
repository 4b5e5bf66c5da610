"""A jobs process ends on SIGTERM, whatever its parts are doing."""

import asyncio
import os
import signal
from functools import partial

import psycopg
import pytest

import jobs.__main__ as process
from services.runtime.retries import run_forever


async def test_a_part_that_takes_a_question_back_is_not_disturbed_in_that(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def life() -> None:
        """Behave as psycopg does: cancel the statement when cancelled, and close the connection if that is interrupted.

        It then raises that error, and the cancellation of the task is lost.
        """
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                raise psycopg.OperationalError("the connection is closed") from None
            taken_back.set()
            raise

    async def another() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(process, "lives", lambda _: [partial(run_forever, life), partial(run_forever, another)])
    running = asyncio.create_task(process._run(()))
    await asked.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        await running
    assert taken_back.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_wait_for_the_migrations_is_ended(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """The first process of a container ignores a signal that it does not handle; Ctrl+C would print a traceback."""
    waits = asyncio.Event()

    async def until_migrated() -> None:
        waits.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(process.readiness, "until_migrated", until_migrated)
    monkeypatch.setattr(process, "lives", lambda _: pytest.fail("the database is not ready"))
    running = asyncio.create_task(process._run(()))
    await waits.wait()
    assert signal.getsignal(number) not in {signal.SIG_DFL, signal.default_int_handler}
    os.kill(os.getpid(), number)
    async with asyncio.timeout(60):
        await running


async def test_the_other_parts_end_with_one_that_cannot_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def lost() -> None:
        raise SystemError

    async def another() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(process, "lives", lambda _: [another, lost])
    with pytest.raises(SystemError):
        await process._run(())
    assert ended.is_set()
