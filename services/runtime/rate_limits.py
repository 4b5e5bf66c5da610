"""How often something may be done: counted for a person or an address, by all web processes together."""

import logging
import math
from dataclasses import dataclass
from typing import cast

from redis.exceptions import RedisError

from services.core.ages import in_seconds
from services.core.errors import TooMany
from services.runtime.rate_limit_counts import MINUTE, Counts, OwnCounts, SharedCounts
from settings import settings

__all__ = [
    "LOOKUPS", "MINUTE", "PER_ADDRESS", "PREVIEWS", "PROOFS", "READS", "RECHECKS", "SIGN_INS", "SOCKETS", "WRITES",
    "Limit", "forget", "spend", "spend_for_address",
]  # fmt: skip

_log = logging.getLogger(__name__)

PER_ADDRESS = 2
"""How many people's share one address has: households and offices have one address for all."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that may be done so often in a minute; its setting is `LIMIT_` and its name."""

    name: str

    @property
    def per_minute(self) -> int:
        """How often one person may do it."""
        return cast("int", getattr(settings(), f"limit_{self.name}"))


SIGN_INS = Limit("sign_ins")
WRITES = Limit("writes")
PROOFS = Limit("proofs")
LOOKUPS = Limit("lookups")
PREVIEWS = Limit("previews")
RECHECKS = Limit("rechecks")
SOCKETS = Limit("sockets")
READS = Limit("reads")
"""Questions about a server's admins: `services/guilds/permissions.py` counts them for a person, by both ways."""

_counts: Counts | None = None


async def spend(limit: Limit, user_id: int) -> None:
    """Count one more for a person. Raises TooMany, which says in how many seconds the next one is free."""
    await _spend(f"{limit.name}:user:{user_id}", limit.per_minute)


async def spend_for_address(limit: Limit, address: str, *, share: int = PER_ADDRESS) -> None:
    """Count one more for an address, which may do it `share` times as often as a person. Raises TooMany."""
    await _spend(f"{limit.name}:address:{address}", limit.per_minute * share)


async def _spend(key: str, per_minute: int) -> None:
    try:
        wait = await _in_force().spend(key, per_minute)
    except (RedisError, OSError) as fault:
        # Whoever cannot count lets people in: the limits protect the service, they are not what guards data.
        _log.warning("Limits are not counted, Redis does not answer: %s", type(fault).__name__)
        return
    if wait > 0:
        seconds = math.ceil(wait)
        raise TooMany(f"That was too often. Please try again {in_seconds(seconds)}.", seconds)


def _in_force() -> Counts:
    global _counts
    if _counts is None:
        address = settings().redis_url
        _counts = SharedCounts(address) if address else OwnCounts()
    return _counts


async def forget() -> None:
    """Close the connection to Redis; what this process alone has counted is gone."""
    global _counts
    counts, _counts = _counts, None
    if counts is not None:
        await counts.close()
