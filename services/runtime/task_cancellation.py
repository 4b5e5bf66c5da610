"""Cancel other tasks without losing one's own cancellation."""

import asyncio
from typing import Any


async def stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until each has ended; raise the error of a failed one.

    Not `suppress(CancelledError)` around `await task`: a caller cancelled meanwhile would swallow its own cancellation
    and run forever.
    """
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
