"""Asking for what a screen shows, once more when it fails. What changes something is never sent twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.core.errors import HoldfastError, QuestionTimedOut, explained
from state.core.timing import QUERY_ATTEMPTS, RETRY_SECONDS

T = TypeVar("T")


async def ask(read: Callable[[], Awaitable[T]]) -> T:
    """What `read` answers, asked for up to QUERY_ATTEMPTS times (docs/specification.md#section-8-errors).

    Unauthorized, and whatever else would be the same again, is not asked for twice: the error of the last attempt is
    raised.
    """
    for attempt in range(1, QUERY_ATTEMPTS + 1):
        try:
            return await read()
        except Exception as fault:
            if attempt == QUERY_ATTEMPTS or not _may_heal(fault):
                raise
        await asyncio.sleep(RETRY_SECONDS)
    raise AssertionError


def _may_heal(fault: Exception) -> bool:
    """Whether the same question may be answered a moment later: a fault of ours or of a provider, not an answer."""
    told = explained(fault)
    # What took too long is not asked for twice at once: that would take too long again, and keep others from it.
    return not isinstance(told, QuestionTimedOut) and (not isinstance(told, HoldfastError) or told.status >= 500)
