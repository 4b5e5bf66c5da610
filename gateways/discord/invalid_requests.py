"""How many refusals Discord has given us in ten minutes: counted here, and together with all other processes.

Discord shuts out an address after 10,000 answers of 401, 403 or 429 (shared ones excepted) in 10 minutes
(docs/facts.md#discord-invalid-requests). We stop ourselves at a tenth of that, whichever processes they went to. A
single guild has a budget of its own, far below: when it is used up, nothing is written in that guild for a while, its
channels are not read either, and everything else goes on.
"""

import asyncio
from collections import deque
from collections.abc import Mapping

from gateways.transport.errors import NotYet, ProviderBusy

ALLOWED = 1_000
WINDOW = 600.0
"""Seconds."""
ALLOWED_TOGETHER = 600
"""Refusals that all processes have reported, after which none asks: what each has not reported yet comes on top."""
UNTOLD = 50
"""Refusals after which a process waits until it has reported them; so 8 processes together stay within ALLOWED."""
UNTOLD_PAUSE, TOGETHER_PAUSE = 5.0, 60.0
GUILD_ALLOWED = 30
"""Refusals of requests about one guild within the window, after which requests about it pause."""


class TooManyRefusals(ProviderBusy):
    """We stopped ourselves: so many refusals in 10 minutes that Discord would soon shut us out."""


class GuildRests(NotYet):
    """Discord refused so much in this guild that nothing is sent there for a while; nothing was sent."""


class Refusals:
    """The count of one process, which it may share with the others. It belongs to one event loop."""

    def __init__(self) -> None:
        self._own: deque[float] = deque()
        self._untold = 0
        self._together: int | None = None
        self._guilds: dict[str, deque[float]] = {}
        self._untold_guilds: dict[str, int] = {}
        self._resting: dict[str, float] = {}
        self.reads_rest: bool = False
        """Whether reading members pauses with a guild too: in a process where nobody waits for it."""

    def add(self, guild_id: str = "") -> None:
        """Count one answer of 401, 403 or 429 (not of shared or global scope), about a guild if it was about one."""
        now = asyncio.get_running_loop().time()
        self._own.append(now)
        self._untold += 1
        if guild_id:
            self._guilds.setdefault(guild_id, deque(maxlen=GUILD_ALLOWED)).append(now)
            self._untold_guilds[guild_id] = self._untold_guilds.get(guild_id, 0) + 1

    def pause(self) -> float:
        """Seconds until requests may go out again after too many refusals; 0 when there were not too many."""
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
        """Seconds for which requests about a guild pause; 0 when they do not."""
        now = asyncio.get_running_loop().time()
        until = self._resting.get(guild_id, 0.0)
        mine = self._guilds.get(guild_id)
        if mine is not None and len(mine) == GUILD_ALLOWED and now - mine[0] < WINDOW:
            # Until the count is shared, which says for how long.
            until = max(until, now + UNTOLD_PAUSE)
        return max(0.0, until - now)

    @property
    def untold(self) -> int:
        """How many the others do not know of yet."""
        return self._untold

    @property
    def untold_guilds(self) -> Mapping[str, int]:
        """By guild, how many the others do not know of yet."""
        return dict(self._untold_guilds)

    def told(self, count: int, together: int) -> None:
        """Note that `count` of ours are shared; `together` is how many all processes had within the window."""
        self._untold -= count
        self._together = together

    def told_guilds(self, counts: Mapping[str, int], resting: Mapping[str, float]) -> None:
        """These counts are known to all now; `resting` is for how many seconds guilds rest."""
        now = asyncio.get_running_loop().time()
        for guild_id, count in counts.items():
            self._untold_guilds[guild_id] -= count
            if self._untold_guilds[guild_id] <= 0:
                del self._untold_guilds[guild_id]
        self._resting = {guild_id: now + seconds for guild_id, seconds in resting.items()}
        for guild_id in list(self._guilds):
            # The rest covers what led to it; what is older than the window no longer counts.
            if guild_id in self._resting or now - self._guilds[guild_id][-1] >= WINDOW:
                del self._guilds[guild_id]
