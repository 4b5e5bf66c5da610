"""Deliver answers to Discord through outages: retry while Discord accepts them, and never send one twice."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import aiohttp
import nextcord

from gateways import gateways
from services.runtime.retries import backoff

log = logging.getLogger(f"holdfast.{__name__}")

FIRST_ANSWER_SECONDS, LATER_ANSWERS = 2.7, timedelta(minutes=14, seconds=30)
"""Discord accepts a first answer for 3 seconds and later ones for 15 minutes (docs/facts.md#discord-interactions)."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
ACKNOWLEDGED = 40060
"""Discord's code for a repeated first answer: the earlier one arrived, and only Discord's confirmation was lost."""

REFUSED = frozenset({401, 403, 429})
"""Statuses that Discord counts as refusals (docs/facts.md#discord-invalid-requests)."""

Interaction = nextcord.Interaction[nextcord.Client]
Send = Callable[[], Awaitable[object]]

SENDING_ERRORS = (nextcord.HTTPException, aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError)
"""Errors of sending; the library raises the last three for a broken or empty answer."""


def is_temporary(fault: BaseException) -> bool:
    """Return whether a retry may succeed: after an outage, a rate limit or a broken answer, but not after a refusal."""
    return not isinstance(fault, nextcord.HTTPException) or fault.status == 429 or fault.status >= 500


async def first(send: Send) -> bool:
    """Send the first answer; return False if it is too late or refused, so that Discord shows its own message."""
    return await _delivered(send, FIRST_ANSWER_SECONDS, "first answer not delivered")


async def later(interaction: Interaction, send: Send) -> bool:
    """Send a replacement of the first answer, which is safe to repeat; return False if it cannot be shown."""
    left = interaction.created_at + LATER_ANSWERS - datetime.now(UTC)
    return await _delivered(send, left.total_seconds(), "answer not shown")


async def _delivered(send: Send, seconds: float, otherwise: str) -> bool:
    """Send an answer within so many seconds; return False, and say so in the log, if it cannot be delivered."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    for pause in backoff(FIRST_PAUSE, LONGEST_PAUSE):
        try:
            await send()
        except SENDING_ERRORS as fault:
            _count(fault)
            if isinstance(fault, nextcord.HTTPException) and fault.code == ACKNOWLEDGED:
                return True
            if not is_temporary(fault) or loop.time() + pause > until:
                log.warning("%s reason=%s", otherwise, _in_words(fault))
                break
        else:
            return True
        await asyncio.sleep(pause)
    return False


def _count(fault: BaseException) -> None:
    """Count the library's refusals with those of our own client, because Discord counts them by IP address."""
    if isinstance(fault, nextcord.HTTPException) and fault.status in REFUSED:
        gateways().discord.refusals.add()


def _in_words(fault: BaseException) -> str:
    if isinstance(fault, nextcord.HTTPException):
        return f"HTTP {fault.status}, code {fault.code}"
    return type(fault).__name__
