"""How many refusals Discord has given us in ten minutes: counted here, and together with all other processes.

Discord shuts out an address after 10,000 answers of 401, 403 or 429 (shared ones excepted) in 10 minutes
(external-apis §1.7). We stop ourselves at a tenth of that, whichever processes they went to.
"""

import asyncio
from collections import deque

from gateways.errors import ProviderBusy

ALLOWED = 1_000
WINDOW = 600.0
"""Seconds."""
ALLOWED_TOGETHER = 600
"""Refusals that all processes have told of, after which none asks: what each has not told yet comes on top."""
UNTOLD = 50
"""Refusals after which a process waits until it has told of them; so 8 processes together stay within ALLOWED."""
UNTOLD_PAUSE, TOGETHER_PAUSE = 5.0, 60.0


class TooManyRefusals(ProviderBusy):
    """We stopped ourselves: so many refusals in 10 minutes that Discord would soon shut us out."""


class Refusals:
    """The count of one process, which somebody may share with the others'. It belongs to one event loop."""

    def __init__(self) -> None:
        self._own: deque[float] = deque()
        self._untold = 0
        self._together: int | None = None

    def add(self) -> None:
        """Count one answer of 401, 403 or 429 (not of shared scope)."""
        self._own.append(asyncio.get_running_loop().time())
        self._untold += 1

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

    @property
    def untold(self) -> int:
        """How many the others do not know of yet."""
        return self._untold

    def told(self, count: int, together: int) -> None:
        """So many of ours are known to all now; `together` is how many all processes had within the window."""
        self._untold -= count
        self._together = together
