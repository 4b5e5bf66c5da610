"""Whether a node's newest block is plausible after the blocks that the node reported before."""

from time import monotonic

MARGIN = 1_000
"""Blocks by which a head may be ahead of what time allows: nodes catch up, and answer from several machines."""
RATE = 20
"""How many times faster than usual a chain may make blocks."""
LARGEST_BLOCK = 2**63 - 1
"""The largest number of a block that can be stored; no chain ever has so many."""
REPEATS, REPEAT_SECONDS = 3, 30.0
"""How often, and over how many seconds, a node repeats a jump until we believe it: chain or node were replaced."""


class HeadTrack:
    """The newest block of a node that we believed, and a jump that we do not believe yet.

    A wrong number that is believed once is stored as the block before which nothing counts, and every later answer
    would be stale. A head that moves back is plausible here: code for which it must not move back checks that itself.
    """

    def __init__(self, block_seconds: float) -> None:
        self._block_seconds = block_seconds
        self._believed: tuple[int, float] | None = None
        self._doubted: tuple[int, float, float, int] | None = None

    @property
    def block(self) -> int | None:
        """The newest believed block; None before the first."""
        return None if self._believed is None else self._believed[0]

    def seed(self, block: int) -> None:
        """Start from another node's block, if no block of this node has been believed yet."""
        if self._believed is None:
            self._believed = block, monotonic()

    def believe(self, block: int) -> bool:
        """Return whether the head is plausible, and keep it if so."""
        if block > LARGEST_BLOCK:
            return False
        now = monotonic()
        if self._believed is None or self._may_follow(block, self._believed, now) or self._repeats(block, now):
            # The time stays while the number does, so that the blocks that time allows grow.
            if self._believed is None or block != self._believed[0]:
                self._believed = block, now
            self._doubted = None
            return True
        return False

    def _may_follow(self, block: int, earlier: tuple[int, float], now: float) -> bool:
        number, at = earlier
        return block - number <= MARGIN + RATE * (now - at) / self._block_seconds

    def _repeats(self, block: int, now: float) -> bool:
        """Note one more doubted head; return whether it continues those before it, for long enough."""
        if self._doubted is not None:
            number, at, since, times = self._doubted
            if block >= number - MARGIN and self._may_follow(block, (number, at), now):
                self._doubted = block, now, since, times + 1
                return times + 1 >= REPEATS and now - since >= REPEAT_SECONDS
        self._doubted = block, now, now, 1
        return False
