"""The bot's identifies to Discord's gateway, counted across restarts and spaced as Discord requires.

Discord allows 1,000 in 24 hours and then resets the token, and `max_concurrency` in five seconds
(docs/facts.md#discord-gateway).
"""

from sqlalchemy import text

from gateways import Gateways
from gateways.discord.application import SessionStarts
from gateways.transport.errors import ProviderError
from models.db.session import AsyncSession

DAILY, KEPT_BACK = 1_000, 50
"""Identifies that Discord allows in a day, and how many of them are reserved for an operator's restarts."""
SCARCE = 0.5
"""Share of a day's identifies after which the others are spread over the rest of the day."""
SPACING_SECONDS = 5.5
"""Half a second more than Discord requires, because two identifies may arrive at different speeds."""
DAY_SECONDS = 86_400
KEY = 4_815_162_344
"""The advisory lock for taking one."""


class TooManyIdentifies(Exception):
    """The day's identifies are used up; none was counted and none may be sent."""


async def starts(outside: Gateways) -> SessionStarts | None:
    """Return Discord's own count, or None if it does not answer."""
    try:
        return await outside.discord.session_starts()
    except ProviderError:
        return None


async def pause(db: AsyncSession, limit: SessionStarts | None) -> float:
    """Return the seconds until a client should connect; 0 when it may at once.

    `limit` is Discord's own count, None if it does not answer.
    """
    used, since_first, since_last = await _lately(db)
    total = limit.total if limit else DAILY
    ours = total - used
    left, reset = ours, DAY_SECONDS - since_first
    if limit is not None and limit.remaining < ours:
        left, reset = limit.remaining, limit.reset_after
    if left <= KEPT_BACK:
        return max(reset, 1.0)
    if left > total * SCARCE:
        return 0.0
    return max(0.0, reset / (left - KEPT_BACK) - since_last)


async def take(db: AsyncSession, max_concurrency: int) -> float:
    """Count one identify and return the seconds after which it may be sent. Raises TooManyIdentifies."""
    await db.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": KEY})
    await db.execute(text("DELETE FROM identify WHERE at < now() - interval '1 day'"))
    used, _, _ = await _lately(db)
    if used >= DAILY - KEPT_BACK:
        raise TooManyIdentifies
    found = await db.execute(
        text(
            """
            INSERT INTO identify (at) SELECT GREATEST(now(), (
                SELECT at + make_interval(secs => :spacing) FROM identify ORDER BY at DESC OFFSET :others LIMIT 1))
            RETURNING extract(epoch FROM at - now())
            """
        ),
        {"spacing": SPACING_SECONDS, "others": max_concurrency - 1},
    )
    return float(found.scalar_one())


async def _lately(db: AsyncSession) -> tuple[int, float, float]:
    """Return the number of identifies in the last day, and the seconds since the first and the last of them."""
    found = await db.execute(
        text(
            "SELECT count(*), COALESCE(extract(epoch FROM now() - min(at)), 0), "
            "COALESCE(extract(epoch FROM now() - max(at)), :day) FROM identify WHERE at > now() - interval '1 day'"
        ),
        {"day": DAY_SECONDS},
    )
    used, first, last = found.one()
    return int(used), float(first), float(last)
