"""A part of a jobs process that lives on whatever ends one of its lives: an absent database, or a fault of our own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from services.runtime import database_faults

log = logging.getLogger("holdfast.jobs")

AGAIN_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LIVED_WELL_SECONDS = 60.0
"""Seconds after which a life counts as having worked, so that the next pause is short again."""


@contextmanager
def outlasting(log: logging.Logger, then: str) -> Generator[None]:
    """Log a fault of the database instead of raising it, with what follows from it; any other fault is raised.

    In a task that was cancelled no fault stands in for the cancellation: that is raised.
    """
    try:
        yield
    except Exception as fault:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        if not database_faults.is_the_databases(fault):
            raise
        database_faults.tell(log, fault, then)


async def lasting(life: Callable[[], Awaitable[None]]) -> None:
    """Live again and again: what a life had in hand when it ended is claimed again by the next one.

    A fault that nobody foresaw ends this part's life alone, is told in full, and is tried again ever more rarely:
    the process's other parts go on, and it would meet the same fault after a restart.
    """
    loop = asyncio.get_running_loop()
    pause = AGAIN_SECONDS
    while True:
        began = loop.time()
        try:
            with outlasting(log, "a part of the background work begins again"):
                await life()
            pause = AGAIN_SECONDS
        except Exception:
            pause = AGAIN_SECONDS if loop.time() - began > LIVED_WELL_SECONDS else pause
            log.exception("a part of the background work failed and begins again in %.0f s", pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            continue
        await asyncio.sleep(pause)
