"""Solana's clock: slots that grow with the time of day, and leap when something happens."""

import time
from bisect import bisect_right

GENESIS = 1_584_332_940
"""When slot 0 was, in Unix seconds: mainnet's own beginning, so that numbers have their usual size."""
SECONDS = 0.4
TO_FINAL = 32
"""A slot is final when this many follow it."""


class Slots:
    """The present slot is what the clock says plus all leaps so far; it never goes back, not even over a restart."""

    def __init__(self) -> None:
        # (Unix seconds, sum of the leaps from then on)
        self._leaps: list[tuple[float, int]] = [(float(GENESIS), 0)]
        self._newest = 0

    @property
    def leap(self) -> int:
        """The sum of all leaps, to be written down with what caused the last one."""
        return self._leaps[-1][1]

    def restore(self, moment: float, leap: int) -> None:
        """What `leap` was from a moment on; told oldest first."""
        if leap > self.leap:
            self._leaps.append((max(moment, self._leaps[-1][0]), leap))

    def now(self) -> int:
        """The present slot."""
        self._newest = max(self._newest, self.at(time.time()))
        return self._newest

    def at(self, moment: float) -> int:
        """The slot at a moment of the past, in Unix seconds."""
        place = bisect_right(self._leaps, moment, key=lambda leap: leap[0]) - 1
        return _plain(moment) + self._leaps[max(0, place)][1]

    def forward(self, slots: int) -> int:
        """Leap this many slots ahead; the present slot then."""
        self.restore(time.time(), self.leap + slots)
        return self.now()

    def time_of(self, slot: int) -> int:
        """When a slot was, in Unix seconds; those that were leapt over share the moment of the leap."""
        later = time.time()
        for moment, leap in reversed(self._leaps):
            first = _plain(moment) + leap
            if slot >= first:
                return int(min(moment + (slot - first) * SECONDS, later))
            later = moment
        return GENESIS


def _plain(moment: float) -> int:
    return int((moment - GENESIS) / SECONDS)


def wall_clock(moment: float) -> float:
    """A moment of the monotonic clock in Unix seconds."""
    return time.time() - (time.monotonic() - moment)
