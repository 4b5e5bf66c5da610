"""Cancel other tasks without losing one's own cancellation, and space tries out."""

import asyncio
from collections.abc import Generator
from typing import Any


async def stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until each has ended; raise what one failed with.

    Not `suppress(CancelledError)` around `await task`: a caller cancelled meanwhile would swallow its own cancellation
    and run forever.
    """
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result


def backoff(first: float, longest: float) -> Generator[float]:
    """Yield pauses in seconds without end: `first`, then each twice the one before, up to `longest`."""
    while True:
        yield first
        first = min(2 * first, longest)


def doubled(first: float, times: int, longest: float) -> float:
    """Return a pause of `first` seconds doubled so many times, at most `longest`; any number of times will do."""
    # A number of attempts that nobody bounds must not overflow the power.
    return min(first * 2.0 ** min(times, 60), longest)
