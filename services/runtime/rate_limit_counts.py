"""Where it is counted how often something was done: in Redis, or in this process where it is the only one.

Both count by the same rule (GCRA, "leaky bucket as a meter"): per key one moment is kept, by when all that was spent
is made up for. Each turn moves it on by 1/n of a minute; a turn that would move it more than a minute ahead is refused.
So n may come at once, and then one every 1/n of a minute.
"""

import time
from collections.abc import Callable
from typing import Protocol, cast

from redis.asyncio import Redis

MINUTE = 60.0
PATIENCE = 1.0
"""Seconds for Redis to answer."""
MOST_KEYS = 50_000
"""Keys that one process remembers; about 10 MB."""

# The server's clock counts, and the script runs as one step: processes and their clocks need not agree.
_SPEND = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local made_up = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + tonumber(ARGV[1])
local wait = made_up - now - tonumber(ARGV[2])
if wait > 0.000001 then return tostring(wait) end
redis.call('SET', KEYS[1], string.format('%.6f', made_up), 'PX', math.ceil((made_up - now) * 1000))
return '0'
"""


class Counts(Protocol):
    """Counts per key."""

    async def spend(self, key: str, per_minute: int) -> float:
        """Count one more and return 0, or the seconds until that would be possible, and count nothing."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class OwnCounts:
    """Counts of this process, which forget by themselves what is made up for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made_up: dict[str, float] = {}

    async def spend(self, key: str, per_minute: int) -> float:
        """Count one more and return 0, or the seconds until that would be possible."""
        now = self._clock()
        made_up = max(self._made_up.get(key, now), now) + MINUTE / per_minute
        wait = made_up - now - MINUTE
        if wait > 1e-6:
            return wait
        if key not in self._made_up and len(self._made_up) >= MOST_KEYS:
            self._forget(now)
        self._made_up[key] = made_up
        return 0.0

    async def close(self) -> None:
        """Nothing to let go of."""

    def _forget(self, now: float) -> None:
        """Drop what is made up for, and where that is not half of it, those that are nearest to it."""
        left = sorted((made_up, key) for key, made_up in self._made_up.items() if made_up > now)
        self._made_up = {key: made_up for made_up, key in left[-MOST_KEYS // 2 :]}


class SharedCounts:
    """Counts in Redis, which all web processes share."""

    def __init__(self, url: str) -> None:
        self._redis = Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)  # pyright: ignore[reportUnknownMemberType]
        self._spend = self._redis.register_script(_SPEND)

    async def spend(self, key: str, per_minute: int) -> float:
        """Count one more and return 0, or the seconds until that would be possible. Raises RedisError."""
        each = MINUTE / per_minute
        answer: object = await self._spend(keys=[f"holdfast:limit:{key}"], args=[each, MINUTE])  # pyright: ignore[reportUnknownVariableType]
        return float(cast("bytes", answer))

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
