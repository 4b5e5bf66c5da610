"""Let an answer wait until the member who asked is stored: at first, only their interaction says that they are here."""

import asyncio
import contextlib
from collections.abc import Generator

LONGEST_SECONDS = 5.0
"""Seconds for which an answer waits: storing takes longer while the database is away or a guild has many events."""

_running: dict[int, asyncio.Event] = {}
"""By interaction, the event that is set once its member is stored."""


@contextlib.contextmanager
def storing(interaction_id: int) -> Generator[None]:
    """Let `stored` wait until the block, which stores the interaction's member, has ended."""
    over = _running[interaction_id] = asyncio.Event()
    try:
        yield
    finally:
        del _running[interaction_id]
        over.set()


async def stored(interaction_id: int) -> None:
    """Wait until the interaction's member is stored, at most LONGEST_SECONDS."""
    if (over := _running.get(interaction_id)) is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_SECONDS):
                await over.wait()
