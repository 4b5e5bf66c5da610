"""Restart parts of a jobs process after a database failure or an error of our own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from services.runtime import database_faults
from services.runtime.backoff import backoff

log = logging.getLogger(f"holdfast.{__name__}")

RESTART_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEALTHY_AFTER_SECONDS = 60.0
"""Seconds after which a run counts as healthy, so that the next pause is short again."""


@contextmanager
def cancellation_first() -> Generator[None]:
    """In a cancelled task, raise the cancellation instead of any other error."""
    try:
        yield
    except Exception:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


@contextmanager
def database_errors_logged(log: logging.Logger, then: str) -> Generator[None]:
    """Log a database error, with its consequence `then`, instead of raising it; raise any other error.

    In a cancelled task every error becomes the cancellation.
    """
    try:
        with cancellation_first():
            yield
    except Exception as fault:
        if not database_faults.is_the_databases(fault):
            raise
        database_faults.log_fault(log, fault, then)


async def run_forever(life: Callable[[], Awaitable[None]]) -> None:
    """Run forever, and restart after every end; the next run reclaims the last one's unfinished work.

    An unexpected error is logged in full and ends only this part, because the same error would follow a restart of the
    process. The pauses between such restarts grow.
    """
    loop = asyncio.get_running_loop()
    pauses = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS)
    while True:
        began = loop.time()
        try:
            with database_errors_logged(log, "background part will restart"):
                await life()
            pauses, pause = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS), RESTART_SECONDS
        except Exception:
            if loop.time() - began > HEALTHY_AFTER_SECONDS:
                pauses = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS)
            pause = next(pauses)
            log.exception("background part failed, restarting in_seconds=%.0f", pause)
        await asyncio.sleep(pause)
