"""The bot's identifies to Discord's gateway, counted across processes and restarts and spaced as Discord requires.

Discord allows 1,000 in 24 hours and then resets the token. In five seconds it allows one for each of the
`max_concurrency` groups of shards (docs/facts.md#discord-gateway).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.errors import UndefinedColumn, UndefinedTable

from gateways import Gateways
from gateways.discord.application import SessionStarts
from gateways.transport.errors import ProviderError
from locales import _, number
from models import WatchedConnection
from models.db.session import AsyncSession, Question, ask
from services.core.relative_times import length
from setting_checks import libpq_url

DAILY, KEPT_BACK = 1_000, 50
"""Identifies that Discord allows in a day, and how many of them are reserved for an operator's restarts."""
SCARCE = 0.5
"""Share of a day's identifies after which the remaining ones are spread over the rest of the day."""
SPACING_SECONDS = 5.5
"""Half a second more than Discord requires, because two identifies may take different times to arrive."""
DAY_SECONDS = 86_400
KEY = 4_815_162_344
"""The advisory lock under which an identify is counted."""


class TooManyIdentifies(Exception):
    """The day's identifies are used up; none was counted and none may be sent."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left of a day's identifies: the lesser of our own count and Discord's.

    `seconds` is the time until there are more, `since_last` the time since the last identify, both in seconds.
    """

    total: int
    left: int
    seconds: float
    since_last: float

    @property
    def is_scarce(self) -> bool:
        """Whether so many are used that the remaining ones are spread over the rest of the day."""
        return self.left <= self.total * SCARCE

    @property
    def is_used_up(self) -> bool:
        """Whether only the reserve is left."""
        return self.left <= KEPT_BACK


async def read_discords_count(outside: Gateways) -> SessionStarts | None:
    """Return Discord's own count, or None if Discord does not answer."""
    try:
        return await outside.discord.session_starts()
    except ProviderError:
        return None


async def learn(db: AsyncSession, limit: SessionStarts) -> None:
    """Store Discord's own count for all processes."""
    await db.execute(
        """
        INSERT INTO gateway_limit (id, total, remaining, resets_at, max_concurrency, shards, read_at)
        VALUES (1, :total, :remaining, now() + make_interval(secs => :reset), :concurrency, :shards, now())
        ON CONFLICT (id) DO UPDATE SET total = EXCLUDED.total, remaining = EXCLUDED.remaining,
            resets_at = EXCLUDED.resets_at, max_concurrency = EXCLUDED.max_concurrency, shards = EXCLUDED.shards,
            read_at = EXCLUDED.read_at
        """,
        {
            "total": limit.total, "remaining": limit.remaining, "reset": limit.reset_after,
            "concurrency": limit.max_concurrency, "shards": limit.shards,
        },
    )  # fmt: skip


async def budget(db: AsyncSession) -> Budget:
    """Return what is left of the day's identifies."""
    return _weigh(*await db.together(*_BUDGET))


async def budget_at(url: str) -> Budget | None:
    """Return the budget in the database at this URL; None before its first migration. Raises psycopg.Error."""
    async with await WatchedConnection.connect(libpq_url(url), autocommit=True) as connection:
        try:
            return _weigh(*[await ask(connection, question) for question in _BUDGET])
        except (UndefinedTable, UndefinedColumn):
            return None


def _weigh(ours: Sequence[tuple[Any, ...]], discords: Sequence[tuple[Any, ...]]) -> Budget:
    used, since_first, since_last = ours[0]
    left, seconds, total = DAILY - int(used), DAY_SECONDS - float(since_first), DAILY
    if discords:
        allowed, remaining, resets = discords[0]
        total = min(total, int(allowed))
        left = min(left, total - int(used))
        if remaining < left:
            left, seconds = int(remaining), float(resets)
    return Budget(total, left, max(seconds, 1.0), float(since_last))


async def pause(db: AsyncSession) -> float:
    """Return the seconds that a client should wait before it connects; 0 if it may connect at once."""
    found = await budget(db)
    if found.is_used_up:
        return found.seconds
    if not found.is_scarce:
        return 0.0
    return max(0.0, found.seconds / (found.left - KEPT_BACK) - found.since_last)


async def take(db: AsyncSession, shard_id: int | None = None) -> float:
    """Count one identify and return the seconds after which it may be sent. Raises TooManyIdentifies.

    Shards whose numbers have the same remainder when divided by `max_concurrency` wait for each other, across all
    processes.
    """
    await db.execute("SELECT pg_advisory_xact_lock(:key)", {"key": KEY})
    await db.execute("DELETE FROM identify WHERE at < now() - interval '1 day'")
    await db.execute(_SET_BACK, {"spacing": SPACING_SECONDS})
    if (await budget(db)).is_used_up:
        raise TooManyIdentifies
    found = await db.execute(_TAKE, {"spacing": SPACING_SECONDS, "shard": shard_id or 0})
    return float(found.scalar_one())


async def recommended(db: AsyncSession) -> int:
    """Return how many shards Discord last recommended; 1 if it never did."""
    (rows,) = await db.together(("SELECT shards FROM gateway_limit", {}))
    return int(rows[0][0]) if rows else 1


async def warning(db: AsyncSession) -> str:
    """Return a warning about the day's identifies; empty while most of them are left."""
    return warning_text(await budget(db))


def warning_text(found: Budget) -> str:
    """Return a warning about this budget; empty while most of it is left."""
    if found.is_used_up:
        return _(
            "Discord allows {total} new connections of the bot in a day and then resets its token. {left} are left. "
            "The bot keeps them for a restart by you and opens no new one for {length}."
        ).format(total=number(found.total), left=number(found.left), length=length(found.seconds))
    if not found.is_scarce:
        return ""
    return _(
        "{left} of the {total} new connections that Discord allows the bot in a day are left. The bot spreads them "
        "over the day. Look for the reason in the bot's log."
    ).format(left=number(found.left), total=number(found.total))


_OURS = """
    SELECT count(*), COALESCE(extract(epoch FROM now() - min(at)), 0),
    COALESCE(extract(epoch FROM now() - max(at)), :day) FROM identify WHERE at > now() - interval '1 day'
"""
# Discord's count minus the identifies taken since it was read; no row once Discord has reset the count.
_DISCORDS = """
    SELECT total, remaining - (SELECT count(*) FROM identify WHERE at > read_at), extract(epoch FROM resets_at - now())
    FROM gateway_limit WHERE resets_at > now()
"""
_BUDGET: tuple[Question, ...] = ((_OURS, {"day": DAY_SECONDS}), (_DISCORDS, {}))
# Identifies are planned ahead by at most their spacing. One further ahead was counted before the database's clock was
# set back: it still counts in this day, but no shard waits until the clock gets there.
_SET_BACK = """
    UPDATE identify SET at = now()
    WHERE at > now() + (SELECT count(*) FROM identify) * make_interval(secs => :spacing)
"""
_TAKE = """
    WITH lane AS (SELECT mod(CAST(:shard AS integer), COALESCE(max(max_concurrency), 1)) AS number FROM gateway_limit)
    INSERT INTO identify (at, lane) SELECT GREATEST(now(), (
        SELECT max(at) + make_interval(secs => :spacing) FROM identify WHERE identify.lane = lane.number)), lane.number
    FROM lane RETURNING extract(epoch FROM at - now())
"""
