"""Long work in short steps of the event loop, so that the process's other tasks run in between."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

STEP_SECONDS = 0.01
"""After so long the others have their turn. Work for a few members ends before that and waits for nobody."""


async def in_steps(items: Iterable[T]) -> AsyncGenerator[T]:
    """Yield the items; whenever the work on them has taken STEP_SECONDS, let other tasks run.

    Whatever else can change meanwhile must not be relied on to stay the same from item to item.
    """
    until = monotonic() + STEP_SECONDS
    for item in items:
        yield item
        if monotonic() >= until:
            await asyncio.sleep(0)
            until = monotonic() + STEP_SECONDS
