"""Ending other tasks, where the task that waits for the end can be cancelled too; and the pauses between tries."""

import asyncio
import contextlib

import pytest

from services.runtime.task_cancellation import stop


async def test_who_is_cancelled_while_it_ends_another_task_ends_as_well() -> None:
    ending = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def owner() -> None:
        while True:
            child = asyncio.create_task(slow())
            await asyncio.sleep(0)
            await stop(child)

    task = asyncio.create_task(owner())
    await ending.wait()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=10)
    assert done == {task}, "its own end was swallowed"
    assert task.cancelled()


async def test_what_a_task_failed_with_is_raised() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="broken"):
        await stop(task)
