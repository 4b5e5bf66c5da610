"""How long the reading for one server may take: set around a look, and heeded wherever somebody outside is asked."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_budget: ContextVar[tuple[float, float] | None] = ContextVar("budget", default=None)
"""Seconds, and until when by the event loop's time."""


@contextmanager
def of(seconds: float | None) -> Generator[None]:
    """Give the code inside, and the tasks that it starts, so many seconds; None sets no bound."""
    budget = None if seconds is None else (seconds, asyncio.get_running_loop().time() + seconds)
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


@contextmanager
def again() -> Generator[None]:
    """Give the code inside as many seconds as the code around it was given."""
    budget = _budget.get()
    with of(None if budget is None else budget[0]):
        yield


def heeded(most: float | None = None) -> asyncio.Timeout:
    """Return a timeout for `async with` that ends with the budget, and after `most` seconds in any case.

    It raises TimeoutError like any other.
    """
    budget = _budget.get()
    until = None if budget is None else budget[1]
    if most is not None:
        latest = asyncio.get_running_loop().time() + most
        until = latest if until is None else min(until, latest)
    return asyncio.timeout_at(until)
