"""The number of Discord's refusals in ten minutes, in this process and in all processes together.

Discord blocks an IP address after 10,000 answers of 401, 403 or 429 (except those of shared scope) in 10 minutes
(docs/facts.md#discord-invalid-requests). We stop ourselves at a tenth of that, counted over all processes. A single
guild has a separate, far smaller budget: when it is used up, nothing is written in that guild and its channels are not
read for a while, and everything else continues.
"""

import asyncio
from collections import deque
from collections.abc import Mapping

from gateways.transport.errors import NotYet, ProviderBusy

ALLOWED = 1_000
WINDOW = 600.0
"""Seconds."""
ALLOWED_TOGETHER = 600
"""Reported refusals of all processes after which none of them sends requests. A process adds its unreported ones."""
UNTOLD = 50
"""Unreported refusals after which a process waits until it has reported them, so that 8 processes together stay within
ALLOWED."""
UNTOLD_PAUSE, TOGETHER_PAUSE = 5.0, 60.0
GUILD_ALLOWED = 30
"""Refusals of requests about one guild within the window, after which requests about it pause."""


class TooManyRefusals(ProviderBusy):
    """We stopped ourselves after so many refusals in 10 minutes that Discord would soon block us."""


class GuildRests(NotYet):
    """The request was not sent: after many refusals in this guild, requests about it pause for a while."""


class Refusals:
    """One process's count of refusals, which it may share with the others. It belongs to one event loop."""

    def __init__(self) -> None:
        self._own: deque[float] = deque()
        self._untold = 0
        self._together: int | None = None
        self._guilds: dict[str, deque[float]] = {}
        self._untold_guilds: dict[str, int] = {}
        self._resting: dict[str, float] = {}
        self.reads_rest: bool = False
        """Whether reading members pauses with a guild too, as in a process where no person waits for the reads."""

    def add(self, guild_id: str = "") -> None:
        """Count one answer of 401, 403 or 429 (not of shared or global scope), and the guild concerned, if any."""
        now = asyncio.get_running_loop().time()
        self._own.append(now)
        self._untold += 1
        if guild_id:
            self._guilds.setdefault(guild_id, deque(maxlen=GUILD_ALLOWED)).append(now)
            self._untold_guilds[guild_id] = self._untold_guilds.get(guild_id, 0) + 1

    def pause(self) -> float:
        """Return the seconds until requests may be sent again after too many refusals; 0 when they may be sent now."""
        now = asyncio.get_running_loop().time()
        while self._own and now - self._own[0] >= WINDOW:
            self._own.popleft()
        if len(self._own) >= ALLOWED:
            return WINDOW - (now - self._own[len(self._own) - ALLOWED])
        if self._together is None:
            return 0.0
        if self._together + self._untold >= ALLOWED_TOGETHER:
            return TOGETHER_PAUSE
        return UNTOLD_PAUSE if self._untold >= UNTOLD else 0.0

    def guild_pause(self, guild_id: str) -> float:
        """Return the seconds for which requests about a guild pause; 0 when they do not."""
        now = asyncio.get_running_loop().time()
        until = self._resting.get(guild_id, 0.0)
        mine = self._guilds.get(guild_id)
        if mine is not None and len(mine) == GUILD_ALLOWED and now - mine[0] < WINDOW:
            # A short pause until the count is shared; then the other processes' answer sets the length.
            until = max(until, now + UNTOLD_PAUSE)
        return max(0.0, until - now)

    @property
    def untold(self) -> int:
        """The number of refusals that are not reported to the other processes yet."""
        return self._untold

    @property
    def untold_guilds(self) -> Mapping[str, int]:
        """By guild, the number of refusals that are not reported to the other processes yet."""
        return dict(self._untold_guilds)

    def mark_reported(self, count: int, together: int) -> None:
        """Note that `count` of our refusals are reported; `together` is the number of all processes in the window."""
        self._untold -= count
        self._together = together

    def mark_guilds_reported(self, counts: Mapping[str, int], resting: Mapping[str, float]) -> None:
        """Note that these counts are reported; `resting` maps each guild that pauses to the seconds of its pause."""
        now = asyncio.get_running_loop().time()
        for guild_id, count in counts.items():
            self._untold_guilds[guild_id] -= count
            if self._untold_guilds[guild_id] <= 0:
                del self._untold_guilds[guild_id]
        self._resting = {guild_id: now + seconds for guild_id, seconds in resting.items()}
        for guild_id in list(self._guilds):
            # The pause settles the refusals that led to it; refusals older than the window no longer count.
            if guild_id in self._resting or now - self._guilds[guild_id][-1] >= WINDOW:
                del self._guilds[guild_id]
