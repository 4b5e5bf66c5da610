"""How long the event loop is held: the longest single step of a process, in which nothing else of it runs."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time


@dataclass
class Longest:
    """The longest step so far, in milliseconds of processor time."""

    milliseconds: float = 0.0


@contextmanager
def longest_step() -> Generator[Longest]:
    """Measure each step of this thread's event loop while the block lasts.

    It uses the thread's processor time: what other processes take of the machine does not count.
    """
    found, run, measuring = Longest(), asyncio.Handle._run, True

    def measured(self: asyncio.Handle) -> None:
        began = thread_time()
        run(self)
        taken = 1000 * (thread_time() - began)
        # The step in which the block ends continues after it.
        if measuring and taken > found.milliseconds:
            found.milliseconds = taken

    asyncio.Handle._run = measured
    try:
        yield found
    finally:
        measuring = False
        asyncio.Handle._run = run
