"""Split long work into short steps of the event loop, so that other tasks run in between."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

STEP_SECONDS = 0.01
"""Time after which other tasks get a turn. Work for a few members ends earlier and never yields."""


async def in_steps(items: Iterable[T]) -> AsyncGenerator[T]:
    """Yield the items; once the work on them has taken STEP_SECONDS, let other tasks run.

    Shared state may therefore change from item to item.
    """
    until = monotonic() + STEP_SECONDS
    for item in items:
        yield item
        if monotonic() >= until:
            await asyncio.sleep(0)
            until = monotonic() + STEP_SECONDS
