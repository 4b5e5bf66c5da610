"""A time limit on the reads for one server, applied to every call to a provider; the reconcile sets it."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_budget: ContextVar[tuple[float, float] | None] = ContextVar("budget", default=None)
"""The seconds, and the deadline in the event loop's time."""


@contextmanager
def of(seconds: float | None) -> Generator[None]:
    """Give the block, and the tasks that it starts, a budget of `seconds`; None sets no limit."""
    budget = None if seconds is None else (seconds, asyncio.get_running_loop().time() + seconds)
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


@contextmanager
def again() -> Generator[None]:
    """Give the block a new budget, as long as the surrounding one."""
    budget = _budget.get()
    with of(None if budget is None else budget[0]):
        yield


def timeout(most: float | None = None) -> asyncio.Timeout:
    """Return a timeout for `async with` that ends with the budget, or after `most` seconds if that is earlier.

    It raises TimeoutError like any other.
    """
    budget = _budget.get()
    until = None if budget is None else budget[1]
    if most is not None:
        latest = asyncio.get_running_loop().time() + most
        until = latest if until is None else min(until, latest)
    return asyncio.timeout_at(until)
