"""Rate limits as Discord counts them: fixed windows per bucket and top-level resource, and 50 a second per token.

The limits of single routes are here too.
"""

import hashlib
import math
import time
from dataclasses import dataclass, field

GLOBAL_LIMIT = 50
GLOBAL_SECONDS = 1.0
CREATIONS, DAY = 200, 86_400.0
FEW = 10_000
"""A number of windows that costs little to remember."""


@dataclass(frozen=True)
class Limit:
    """A number of requests per number of seconds; routes with the same `bucket` text share one count."""

    bucket: str
    requests: int = 50
    seconds: float = 1.0

    @property
    def hash(self) -> str:
        """The value of X-RateLimit-Bucket, the same for every guild and channel."""
        return hashlib.sha256(self.bucket.encode()).hexdigest()[:32]


MEMBER_ROLE_WRITES = Limit("member role writes", 10, 10.0)
"""For each guild over all its members, in a fixed window (facts: discord-api-docs#7680)."""
NEW_ROLES = Limit("create role", 250, DAY)
OWN_GUILDS = Limit("a user's own guilds", 1, 1.0)
"""Tight for each user's token (docs/facts.md#discord-users); Discord does not say how long the window is."""
POSTS = Limit("messages of a channel", 5, 5.0)
"""Of a strict sandbox: not documented by Discord, but clients meet it."""
RENAMES = Limit("channel name and topic", 2, 600.0)
"""Of a strict sandbox, for each channel: not documented by Discord, but clients meet it."""
WEBHOOKS = Limit("interaction webhook", 5, 1.0)
"""For each interaction's webhook. A route without a limit of its own has the defaults of `Limit`."""


@dataclass
class _Window:
    seconds: float
    began: float = -math.inf
    used: int = 0


@dataclass(frozen=True)
class Verdict:
    """Whether a request is allowed, and the headers that describe its bucket. `retry_after` is in seconds."""

    allowed: bool
    scope: str
    retry_after: float
    headers: dict[str, str]


@dataclass
class Limits:
    """All windows of all tokens. Those that have ended are forgotten when there are `FEW` or twice those still open."""

    _windows: dict[tuple[str, ...], _Window] = field(default_factory=dict)
    _room: int = FEW

    @property
    def remembered(self) -> int:
        """The number of windows in memory."""
        return len(self._windows)

    def take_global(self, token: str, limit: Limit) -> Verdict | None:
        """Count a request against the token's global limit; return a Verdict only when that is used up.

        `limit` is the route's own. Its headers are included, since some clients cannot read a 429 without them.
        """
        allowed, _, left = self._take(("global", token), GLOBAL_LIMIT, GLOBAL_SECONDS)
        if allowed:
            return None
        headers = {
            "X-RateLimit-Global": "true",
            "X-RateLimit-Scope": "global",
            "Retry-After": str(math.ceil(left)),
            "X-RateLimit-Limit": str(limit.requests),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": f"{time.time() + left:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": limit.hash,
        }
        return Verdict(False, "global", left, headers)

    def take(self, token: str, limit: Limit, resource: str) -> Verdict:
        """Count a request against its bucket for one top-level resource (a guild, a channel, a webhook)."""
        allowed, remaining, left = self._take((token, limit.bucket, resource), limit.requests, limit.seconds)
        headers = {
            "X-RateLimit-Limit": str(limit.requests),
            "X-RateLimit-Remaining": str(remaining),
            "X-RateLimit-Reset": f"{time.time() + left:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": limit.hash,
        }
        if not allowed:
            headers |= {"X-RateLimit-Scope": "user", "Retry-After": str(math.ceil(left))}
        return Verdict(allowed, "user", left, headers)

    def take_creations(self, guild_id: str, count: int) -> bool:
        """Count new commands of a guild, or global ones if the id is empty; return False beyond 200 a day.

        See docs/facts.md#discord-commands.
        """
        return self._take(("", "new commands", guild_id), CREATIONS, DAY, count)[0]

    def clear(self) -> None:
        """Forget every count."""
        self._windows.clear()
        self._room = FEW

    def _take(self, key: tuple[str, ...], requests: int, seconds: float, count: int = 1) -> tuple[bool, int, float]:
        now = time.monotonic()
        if len(self._windows) >= self._room:
            self._windows = {k: window for k, window in self._windows.items() if now - window.began < window.seconds}
            self._room = max(FEW, 2 * len(self._windows))
        window = self._windows.setdefault(key, _Window(seconds))
        if now - window.began >= seconds:
            window.began, window.used = now, 0
        left = window.began + seconds - now
        if window.used + count > requests:
            return False, 0, left
        window.used += count
        return True, requests - window.used, left


def too_many(verdict: Verdict) -> dict[str, object]:
    """Return the body of a 429."""
    return {
        "message": "You are being rate limited.",
        "retry_after": round(verdict.retry_after, 3),
        "global": verdict.scope == "global",
        "code": 0,
    }
