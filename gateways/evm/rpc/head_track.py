"""Whether a node's newest block is plausible after what the node said before."""

from time import monotonic

MARGIN = 1_000
"""Blocks by which a head may be ahead of what time allows: nodes catch up, and answer from several machines."""
RATE = 20
"""How many times faster than usual a chain may make blocks."""
REPEATS, REPEAT_SECONDS = 3, 30.0
"""How often a node repeats a jump, and over how many seconds, until we believe it: chain or node were replaced."""


class HeadTrack:
    """The newest block that a node said and we believed, and a jump that we did not believe yet.

    A wrong number that is believed once is stored as the block before which nothing counts, and everything after it
    would be stale. A head that goes back is plausible: what must not go back is checked where it is used.
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
        """Take another node's block as the start, where this node has not been believed yet."""
        if self._believed is None:
            self._believed = block, monotonic()

    def believe(self, block: int) -> bool:
        """Return whether the head is plausible, and keep it if so."""
        now = monotonic()
        if self._believed is None or self._may_follow(block, self._believed, now) or self._repeats(block, now):
            # While the number stays the same, the time that it may use up grows.
            if self._believed is None or block != self._believed[0]:
                self._believed = block, now
            self._doubted = None
            return True
        return False

    def _may_follow(self, block: int, earlier: tuple[int, float], now: float) -> bool:
        number, at = earlier
        return block - number <= MARGIN + RATE * (now - at) / self._block_seconds

    def _repeats(self, block: int, now: float) -> bool:
        """Note one more doubted head; whether it and those before it make a chain of their own for long enough."""
        if self._doubted is not None:
            number, at, since, times = self._doubted
            if block >= number - MARGIN and self._may_follow(block, (number, at), now):
                self._doubted = block, now, since, times + 1
                return times + 1 >= REPEATS and now - since >= REPEAT_SECONDS
        self._doubted = block, now, now, 1
        return False
