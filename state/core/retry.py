"""Repeats a failed read of a screen once. Changes are never sent twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from models import transaction
from services.core.errors import HoldfastError, QuestionTimedOut, explained
from state.core.timing import QUERY_ATTEMPTS, RETRY_SECONDS

T = TypeVar("T")


async def ask(read: Callable[[Any], Awaitable[T]]) -> T:
    """Return the result of `read`, which gets a transaction in each of up to QUERY_ATTEMPTS attempts.

    An error that would repeat, such as Unauthorized, is raised at once; otherwise the last attempt's error is. See
    docs/specification.md#section-8-errors.
    """
    for attempt in range(1, QUERY_ATTEMPTS + 1):
        try:
            async with transaction() as db:
                return await read(db)
        except Exception as fault:
            if attempt == QUERY_ATTEMPTS or not _may_heal(fault):
                raise
        await asyncio.sleep(RETRY_SECONDS)
    raise AssertionError


def _may_heal(fault: Exception) -> bool:
    """Return whether a second attempt may succeed: after our own or a provider's error, not after a refusal."""
    told = explained(fault)
    # A read that timed out would take as long again, and keep others waiting.
    return not isinstance(told, QuestionTimedOut) and (not isinstance(told, HoldfastError) or told.status >= 500)
