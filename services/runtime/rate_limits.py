"""Rate limits per person and per address, shared by all processes that have Redis."""

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from locales import _
from services.core.actors import Actor
from services.core.errors import TooMany
from services.core.relative_times import in_seconds
from settings import settings

MINUTE = 60.0
PATIENCE = 1.0
"""Seconds to wait for Redis."""
MOST_KEYS = 50_000
"""How many keys one process remembers; about 10 MB."""

# The clock of Redis decides and the script is atomic, so the clocks of the processes need not agree. A count far ahead
# of a full one is from before that clock was set back: it counts as none.
_SPEND = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local kept = tonumber(redis.call('GET', KEYS[1]) or '0')
if kept > now + 2 * tonumber(ARGV[2]) then kept = now end
local made_up = math.max(kept, now) + tonumber(ARGV[1])
local wait = made_up - now - tonumber(ARGV[2])
if wait > 0.000001 then return tostring(wait) end
redis.call('SET', KEYS[1], string.format('%.6f', made_up), 'PX', math.ceil((made_up - now) * 1000))
return '0'
"""


class NotCounted(Exception):
    """Redis does not answer; the text names its fault."""


class OwnCounts:
    """Request counts of this process; expired ones are dropped."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made_up: dict[str, float] = {}

    async def spend(self, key: str, per_minute: float) -> float:
        """Count one request and return 0, or return the seconds until the next is allowed and count nothing."""
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
        """Do nothing: there are no connections."""

    def _forget(self, now: float) -> None:
        """Drop expired keys; if more than half remain, drop those that expire soonest."""
        left = sorted((made_up, key) for key, made_up in self._made_up.items() if made_up > now)
        self._made_up = {key: made_up for made_up, key in left[-MOST_KEYS // 2 :]}


class SharedCounts:
    """Request counts in Redis, shared by all web processes."""

    def __init__(self, url: str) -> None:
        # Imported here, as most installations have no Redis: it makes every start longer and every process larger.
        from redis.asyncio import Redis
        from redis.exceptions import RedisError

        self._faults = (RedisError, OSError)
        self._redis = Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)  # pyright: ignore[reportUnknownMemberType]
        self._spend = self._redis.register_script(_SPEND)

    async def spend(self, key: str, per_minute: float) -> float:
        """Do as `OwnCounts.spend` does. Raises NotCounted."""
        each = MINUTE / per_minute
        try:
            answer: object = await self._spend(keys=[f"holdfast:limit:{key}"], args=[each, MINUTE])  # pyright: ignore[reportUnknownVariableType]
        except self._faults as fault:
            raise NotCounted(type(fault).__name__) from fault
        return float(cast("bytes", answer))

    async def answers(self) -> bool:
        """Return whether Redis answers."""
        try:
            return bool(await cast("Awaitable[bool]", self._redis.ping()))  # pyright: ignore[reportUnknownMemberType]
        except self._faults:
            return False

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


_log = logging.getLogger(__name__)

PER_ADDRESS = 2
"""How many times a person's limit an address has: a household or an office shares one address."""
TOKENS_TOGETHER = 3
"""How many times a person's limit all tokens of one person for one server share; another token does not raise it."""
CHOICES = 6
"""How often in a minute one member may agree to something in one server: that their wallets count, or are shown."""
LOG_KIB = 1_024
"""KiB of changed rules that the people of one server may write to its log in a minute."""


@dataclass(frozen=True, slots=True)
class Limit:
    """An action with a limit per minute; its setting is named `LIMIT_` plus its name."""

    name: str

    @property
    def per_minute(self) -> int:
        """How often one person may do it per minute."""
        return cast("int", getattr(settings(), f"limit_{self.name}"))


SIGN_INS = Limit("sign_ins")
WRITES = Limit("writes")
PROOFS = Limit("proofs")
LOOKUPS = Limit("lookups")
PREVIEWS = Limit("previews")
HANDOVERS = Limit("handovers")
RECHECKS = Limit("rechecks")
SOCKETS = Limit("sockets")
INTERACTIONS = Limit("interactions")
READS = Limit("reads")
"""Reads of a server's admins, counted per person in `services/guilds/permissions.py`."""

_counts: OwnCounts | SharedCounts | None = None


async def spend(limit: Limit, user_id: int) -> None:
    """Count one request of a person. Raises TooMany with the seconds until the next is allowed."""
    await _spend(f"{limit.name}:user:{user_id}", limit.per_minute)


async def spend_for(limit: Limit, actor: Actor) -> None:
    """Count one request of a person, or of a token, which has a person's limits for itself. Raises TooMany.

    The tokens that a person made for one server also share TOKENS_TOGETHER times these limits.
    """
    await _spend(f"{limit.name}:{actor.limit_key}", limit.per_minute)
    if actor.token is not None:
        together = f"tokens:{actor.token.server_id}:{actor.user_id}"
        await _spend(f"{limit.name}:{together}", limit.per_minute * TOKENS_TOGETHER)


async def spend_for_interaction(discord_id: str) -> None:
    """Count one command, button or form of somebody in Discord, who may be a stranger to us. Raises TooMany."""
    await _spend(f"{INTERACTIONS.name}:discord:{discord_id}", INTERACTIONS.per_minute)


async def spend_for_completion(discord_id: str) -> None:
    """Count one list of choices for what somebody types in Discord, apart from their commands. Raises TooMany."""
    await _spend(f"completions:discord:{discord_id}", INTERACTIONS.per_minute)


async def spend_for_address(limit: Limit, address: str, *, share: int = PER_ADDRESS) -> None:
    """Count one request of an address, which has `share` times the limit of a person. Raises TooMany."""
    await _spend(f"{limit.name}:address:{address}", limit.per_minute * share)


async def spend_choice(server_id: int, user_id: int) -> None:
    """Count that a member agrees to something in a server. Raises TooMany."""
    await _spend(f"choices:server:{server_id}:user:{user_id}", CHOICES)


async def spend_log(server_id: int, size: int) -> None:
    """Count bytes that people write to a server's log. One change may use up a whole minute's. Raises TooMany."""
    await _spend(f"log:server:{server_id}", max(1.0, LOG_KIB * 1024 / max(1, size)))


async def _spend(key: str, per_minute: float) -> None:
    try:
        wait = await _in_force().spend(key, per_minute)
    except NotCounted as fault:
        # Fail open: the limits protect the service, not the data.
        _log.warning("rate limits not counted, Redis unavailable reason=%s", fault)
        return
    if wait > 0:
        seconds = math.ceil(wait)
        raise TooMany(_("That was too often. Please try again {time}.").format(time=in_seconds(seconds)), seconds)


def _in_force() -> OwnCounts | SharedCounts:
    global _counts
    if _counts is None:
        address = settings().redis_url
        _counts = SharedCounts(address) if address else OwnCounts()
    return _counts


async def redis_answers() -> bool | None:
    """Return whether the Redis of REDIS_URL answers; None without that setting."""
    counts = _in_force()
    return await counts.answers() if isinstance(counts, SharedCounts) else None


async def forget() -> None:
    """Close the connection to Redis, or drop this process's own counts."""
    global _counts
    counts, _counts = _counts, None
    if counts is not None:
        await counts.close()
