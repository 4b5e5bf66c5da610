"""Cancel other tasks without losing one's own cancellation."""

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


async def stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until each has ended; raise the error of a failed one.

    Not `suppress(CancelledError)` around `await task`: a caller cancelled meanwhile would swallow its own cancellation
    and run forever.
    """
    for result in await outcomes(*tasks):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result


async def outcomes(*tasks: asyncio.Task[T]) -> list[T | BaseException]:
    """Cancel the tasks that still run, wait until each has ended, and return the results or exceptions.

    Call it in a `finally` after `asyncio.wait`, which leaves its tasks running when its caller is cancelled.
    """
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)
