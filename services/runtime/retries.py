"""Growing pauses between attempts, and parts of a process that restart after an error."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from services.runtime import database_faults

log = logging.getLogger(f"holdfast.{__name__}")

RESTART_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEALTHY_AFTER_SECONDS = 60.0
"""Seconds after which a run counts as healthy, so that the next pause is short again."""


def backoff(first: float, longest: float) -> Generator[float]:
    """Yield pauses in seconds without end: `first`, then each twice the one before, up to `longest`."""
    while True:
        yield first
        first = min(2 * first, longest)


def doubled(first: float, times: int, longest: float) -> float:
    """Return a pause of `first` seconds doubled `times` times, at most `longest`; `times` has no limit."""
    # An unlimited number of attempts must not overflow the power.
    return min(first * 2.0 ** min(times, 60), longest)


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

    One that comes again is logged rarely. In a cancelled task every error becomes the cancellation.
    """
    try:
        with cancellation_first():
            yield
        database_faults.answered(log, then)
    except Exception as fault:
        if not database_faults.is_the_databases(fault):
            raise
        database_faults.log_fault(log, fault, then)


@asynccontextmanager
async def own_fault_recorded(
    log: logging.Logger, said: str, *arguments: object, record: Callable[[Exception], Awaitable[None]]
) -> AsyncGenerator[None]:
    """Log an error of our own and record it for the one item that the block is about, so that it delays no other.

    Raises a database error, and in a cancelled task the cancellation.
    """
    try:
        with cancellation_first():
            yield
    except Exception as fault:
        if database_faults.is_the_databases(fault):
            raise
        log.exception(said, *arguments)
        await record(fault)


async def repeat_forever(
    once: Callable[[], Awaitable[bool | None]], log: logging.Logger, then: str, seconds: float
) -> None:
    """Do a piece of work again and again, with a pause of so many seconds unless it returns that there is more.

    A database error is logged with its consequence `then`.
    """
    while True:
        more = None
        with database_errors_logged(log, then):
            more = await once()
        if not more:
            await asyncio.sleep(seconds)


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
