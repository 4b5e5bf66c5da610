"""HTTP exchanges that run until they are complete, even when no caller waits for them any more."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TypeVar

import anyio

T = TypeVar("T")

LAST_MOMENT = 0.2
"""Seconds that exchanges have to finish before they are cancelled."""

_running: set[asyncio.Task[object]] = set()


async def to_its_end(
    exchange: Coroutine[object, object, T], seconds: float, ended: Callable[[], None] | None = None
) -> T:
    """Return the exchange's result, or raise TimeoutError after `seconds`.

    The exchange continues when its caller is cancelled. `ended` is called once when the exchange has ended. The
    exchange works for the same tenant as its caller.

    httpcore gives a connection back to its pool under anyio's shield, but asyncio's own cancellation passes through
    that shield. A task cancelled at that moment keeps its place in the pool for ever, and after a few of them nothing
    is sent to the host any more. So the exchange has its own task, which only anyio's deadline ends.
    """
    task: asyncio.Task[T] = asyncio.create_task(_within(exchange, seconds))
    _running.add(task)
    task.add_done_callback(_ended)
    # An exchange that is stopped before its first step, when the process ends, was never awaited.
    task.add_done_callback(lambda _: exchange.close())
    if ended is not None:
        task.add_done_callback(lambda _: ended())
    return await asyncio.shield(task)


async def end_all() -> None:
    """Stop the exchanges of this event loop and wait until they have ended. Call it before closing the connections.

    The exchanges get LAST_MOMENT seconds to finish first, because asyncio loses the socket of a connection that is
    made in the same step in which its task is cancelled.
    """
    if mine := _of_this_loop():
        await asyncio.wait(mine, timeout=LAST_MOMENT)
    while mine := _of_this_loop():
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        # A task's done callbacks run one step of the loop after the task ends.
        await asyncio.sleep(0)


def _of_this_loop() -> list[asyncio.Task[object]]:
    loop = asyncio.get_running_loop()
    return [task for task in _running if task.get_loop() is loop]


def _ended(task: asyncio.Task[object]) -> None:
    _running.discard(task)
    if not task.cancelled():
        # Read the exception, so that asyncio does not report a failure for which no caller waits any more.
        task.exception()


async def _within(exchange: Coroutine[object, object, T], seconds: float) -> T:
    with anyio.fail_after(max(0.0, seconds)):
        return await exchange


async def together(asks: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """Return all results, in their order; the first exception cancels the other coroutines and is raised."""
    tasks = [asyncio.ensure_future(ask) for ask in asks]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
