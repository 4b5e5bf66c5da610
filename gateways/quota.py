"""One key's quota at a marketplace, shared out: proofs of wallets go first, then what the form looks up, then rules.

What is left is read from the headers of every answer. Those count all processes that use the key, so that processes
need not count for each other.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum

from gateways.errors import ProviderBusy, seconds_to_wait
from gateways.turns import caller

LONGEST_PAUSE = 300.0
"""Seconds. OpenSea's own SDK waits no longer than this either (external-apis §2.1)."""
SHORTEST_SHARED = 30.0
"""Seconds. A shorter window is over before anybody has to do without; it is obeyed, not shared out."""
LONGEST_WINDOW = 3_600.0
REMEMBERED = 900.0
"""Seconds for which a tenant that asked counts among those that share what rules may use."""
TURN = 60.0
"""Seconds after which a tenant that has had its share may try again."""


class Use(IntEnum):
    """What a read is for; those with a greater number come first."""

    RULES = 0
    LOOKUP = 1
    PROOF = 2


KEPT = {Use.RULES: 0.6, Use.LOOKUP: 0.4, Use.PROOF: 0.0}
"""Which part of a window's reads each use leaves to those that come before it: 0.4 are for proofs alone, 0.2 more for
lookups. The part shrinks as the window runs out, so that nothing is left unused at its end."""


class _Window:
    """What an answer said about one limit: so many reads of `limit` remain until `resets_at` (seconds of the loop)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.remaining = limit
        self.resets_at = self.seen_at = 0.0
        self.length = 1.0
        self.under_way = 0
        self.used: Counter[str] = Counter()

    def begin(self, now: float) -> None:
        """Begin another window, of which no answer has told yet."""
        self.remaining, self.resets_at, self.seen_at = self.limit, now + self.length, now
        self.used.clear()

    def told(self, remaining: int, resets_in: float, now: float) -> None:
        """Take over what an answer says; `resets_in` seconds from now."""
        resets_in = min(max(resets_in, 0.0), LONGEST_WINDOW)
        if now + resets_in > self.resets_at + SHORTEST_SHARED:
            self.used.clear()
        self.length = max(self.length, resets_in)
        self.remaining, self.resets_at, self.seen_at = remaining, now + resets_in, now

    def room(self, use: Use, now: float) -> float:
        """How many reads this use may make now."""
        kept = KEPT[use] * self.limit / self.length if self.length >= SHORTEST_SHARED else 0.0
        return self.remaining - self.under_way - kept * (self.resets_at - now)

    def wait(self, use: Use, now: float) -> float:
        """In how many seconds this use may make one more read if nobody else makes any."""
        left = self.resets_at - now
        kept = KEPT[use] * self.limit / self.length
        return min(left, max(1.0, (1.0 - self.room(use, now)) / kept)) if kept else left


class Quota:
    """Who may ask one provider now. Not for several event loops."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._quiet: dict[Use, float] = {}
        # By limit: some groups of calls have a tighter one than the others.
        self._windows: dict[int, _Window] = {}
        self._window_of: dict[Use, _Window] = {}
        self._asked: dict[str, float] = {}

    @contextmanager
    def one_read(self, use: Use) -> Generator[None]:
        """Count one read as under way. Raises ProviderBusy when this use has to wait, and for how long."""
        now = asyncio.get_running_loop().time()
        if (until := self._quiet.get(use, 0.0)) > now:
            raise ProviderBusy(self._name, "its rate limit is used up", retry_after=until - now)
        tenant = caller().tenant
        window = self._admitted(use, tenant, now)
        if window is None:
            yield
            return
        window.under_way += 1
        if use is Use.RULES:
            window.used[tenant] += 1
        try:
            yield
        finally:
            window.under_way -= 1

    def _admitted(self, use: Use, tenant: str, now: float) -> _Window | None:
        """The window in which a read is made; None while no limit is known. Raises ProviderBusy."""
        if use is Use.RULES:
            self._asked[tenant] = now
        window = self._window_of.get(use)
        if window is None:
            return None
        if now >= window.resets_at:
            window.begin(now)
        room = window.room(use, now)
        if room < 1 and (window.under_way or now - window.seen_at < LONGEST_PAUSE):
            wait = min(window.wait(use, now), LONGEST_PAUSE)
            reason = "its rate limit is used up" if use is Use.PROOF else "what is left of its rate limit is kept free"
            raise ProviderBusy(self._name, reason, retry_after=max(wait, 1.0))
        if (
            use is Use.RULES
            and window.length >= SHORTEST_SHARED
            and window.used[tenant] >= self._share(window, room, now)
        ):
            raise ProviderBusy(self._name, "this server's share of its rate limit is used up", retry_after=TURN)
        return window

    def _share(self, window: _Window, room: float, now: float) -> float:
        """How many reads each of the tenants that asked lately may make in this window."""
        if window.length < SHORTEST_SHARED:
            return float("inf")
        self._asked = {tenant: at for tenant, at in self._asked.items() if now - at < REMEMBERED}
        return (window.used.total() + room) / len(self._asked) if len(self._asked) > 1 else float("inf")

    def heed(self, use: Use, status: int, headers: Mapping[str, str]) -> None:
        """Remember what an answer's headers say of the limit: Limit, Remaining and Reset (Unix seconds), Retry-After.

        A refusal keeps quiet what comes after this use, not what comes before it: that may have a limit of its own.
        """
        now = asyncio.get_running_loop().time()
        limit, remaining = _number(headers.get("x-ratelimit-limit")), _number(headers.get("x-ratelimit-remaining"))
        reset = _number(headers.get("x-ratelimit-reset"))
        resets_in = None if reset is None else reset - datetime.now(UTC).timestamp()
        if limit is not None and limit >= 1 and remaining is not None and resets_in is not None:
            window = self._windows.setdefault(int(limit), _Window(int(limit)))
            window.told(int(remaining), resets_in, now)
            self._window_of[use] = window
        pause = resets_in if remaining == 0 and resets_in is not None else 0.0
        if status in {429, 599}:
            pause = max(pause, seconds_to_wait(headers.get("retry-after")) or 1.0)
        if pause > 0:
            until = now + min(pause, LONGEST_PAUSE)
            for one in Use:
                if one <= use:
                    self._quiet[one] = max(self._quiet.get(one, 0.0), until)

    def wait(self, use: Use) -> float:
        """For how many seconds this use keeps quiet, at least 1."""
        return max(1.0, self._quiet.get(use, 0.0) - asyncio.get_running_loop().time())


def _number(header: str | None) -> float | None:
    try:
        number = float(header) if header else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e12 else None
