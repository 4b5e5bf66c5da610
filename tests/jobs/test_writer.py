"""What the writer waits for between two looks at what is intended."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobs import writer
from jobs.writer import AT_ONCE, Writer
from services.tasks import stop


@pytest.fixture
async def slow(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[asyncio.Task[None]]]:
    """As many changes as may be under way at once, none of which ever ends; nor does any pause."""
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1_000.0)

    async def forever() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(forever()) for _ in range(AT_ONCE)]
    yield tasks
    await stop(*tasks)


async def test_a_call_is_heard_while_a_role_is_being_written(slow: list[asyncio.Task[None]]) -> None:
    called = asyncio.Event()
    called.set()
    async with asyncio.timeout(30):
        await Writer(called)._until_something_happens(slow[:1])
    assert not called.is_set(), "it would be heard again and again"


async def test_a_call_waits_while_there_is_no_room_for_what_it_tells_of(slow: list[asyncio.Task[None]]) -> None:
    called = asyncio.Event()
    called.set()
    waiting = asyncio.create_task(Writer(called)._until_something_happens(slow))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert called.is_set()
    slow[0].cancel()
    async with asyncio.timeout(30):
        await waiting
    assert called.is_set(), "it is for the look that now has room"
