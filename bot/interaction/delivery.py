"""Getting answers through to Discord in any weather: tried again while they can still count, and never said twice."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import aiohttp
import nextcord

from gateways import gateways
from services.runtime.tasks import backoff

log = logging.getLogger("holdfast.bot")

FIRST_ANSWER_SECONDS, LATER_ANSWERS = 2.7, timedelta(minutes=14, seconds=30)
"""Discord takes a first answer for 3 seconds and what follows for 15 minutes (docs/facts.md#discord-interactions)."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
ACKNOWLEDGED = 40060
"""Discord's code for a second first answer: the earlier one got through, and only its receipt was lost."""

REFUSED = frozenset({401, 403, 429})
"""What Discord counts as a refusal (docs/facts.md#discord-invalid-requests)."""

Interaction = nextcord.Interaction[nextcord.Client]
Send = Callable[[], Awaitable[object]]

Weather = (nextcord.HTTPException, aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError)
"""What sending can fail with; the last three are what the library makes of an answer that is broken or empty."""


def passes(fault: BaseException) -> bool:
    """Whether another try may fare better: an outage, a limit, a broken answer; not a refusal."""
    return not isinstance(fault, nextcord.HTTPException) or fault.status == 429 or fault.status >= 500


async def first(send: Send) -> bool:
    """Send the first answer; False when it came too late or Discord refuses it, and the person sees Discord's word."""
    loop = asyncio.get_running_loop()
    until = loop.time() + FIRST_ANSWER_SECONDS
    for pause in backoff(FIRST_PAUSE, LONGEST_PAUSE):
        try:
            await send()
        except Weather as fault:
            _count(fault)
            if isinstance(fault, nextcord.HTTPException) and fault.code == ACKNOWLEDGED:
                return True
            if not passes(fault) or loop.time() + pause > until:
                log.warning("a first answer did not get through: %s", _told(fault))
                break
        else:
            return True
        await asyncio.sleep(pause)
    return False


async def later(interaction: Interaction, send: Send) -> bool:
    """Send what replaces the first answer (which may be sent any number of times); False when it cannot be shown."""
    until = interaction.created_at + LATER_ANSWERS
    for pause in backoff(FIRST_PAUSE, LONGEST_PAUSE):
        try:
            await send()
        except Weather as fault:
            _count(fault)
            if not passes(fault) or datetime.now(UTC) + timedelta(seconds=pause) > until:
                log.warning("an answer could not be shown: %s", _told(fault))
                break
        else:
            return True
        await asyncio.sleep(pause)
    return False


def _count(fault: BaseException) -> None:
    """Refusals that the library was given count with those of our own client: Discord counts them by address."""
    if isinstance(fault, nextcord.HTTPException) and fault.status in REFUSED:
        gateways().discord.refusals.add()


def _told(fault: BaseException) -> str:
    if isinstance(fault, nextcord.HTTPException):
        return f"HTTP {fault.status}, code {fault.code}"
    return type(fault).__name__
