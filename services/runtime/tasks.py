"""Ending other tasks without losing one's own end."""

import asyncio
from typing import Any


async def stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until each has ended; what one failed with is raised.

    Not `suppress(CancelledError)` around `await task`: whoever waits so and is cancelled meanwhile would swallow
    its own end and run on for ever.
    """
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
