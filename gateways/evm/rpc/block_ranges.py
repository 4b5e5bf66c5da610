"""How many blocks of logs a node gives in one request: learnt from what it takes and what it refuses."""

from time import monotonic

FIRST_SPAN, WIDEST_SPAN = 500, 10_000
"""Blocks in one request: where we start, and the most that the widest paid plans allow
(docs/facts.md#limits-of-eth_getlogs)."""
RANGE_REMEMBERED, CONTENT_REMEMBERED = 3_600.0, 60.0
"""Seconds for which a refused size is not tried again: a plan's limit stays, a crowded block passes."""


class LogSpan:
    """The number of blocks that one node is asked for next, for one kind of filter."""

    def __init__(self, known: int | None = None) -> None:
        """`known` is how many blocks the node was found to give before."""
        self.blocks = min(known or FIRST_SPAN, WIDEST_SPAN)
        self._good = known or 1
        """The greatest size that went well since the last refusal that was not above it."""
        self._ceiling = (known, monotonic() + RANGE_REMEMBERED) if known else None
        """The greatest size that was not refused, and until when (monotonic seconds) it binds."""
        self._for_range = bool(known)
        """Whether the last refusal was of the number of blocks as such."""

    @property
    def limit(self) -> int | None:
        """How many blocks the node gives at most, as far as has been found out; None where that is not limited."""
        return self._good if self._for_range and self._ceiling is not None else None

    def gave(self, size: int) -> None:
        """Note that a request for `size` blocks went well; only one of the full size allows a wider one."""
        self._good = max(self._good, size)
        if size >= self.blocks:
            most = self._most()
            self.blocks = max(1, min(most, self.blocks + max(1, self.blocks // 4)))

    def refused(self, size: int, *, for_range: bool, slow: bool = False, stated: int | None = None) -> None:
        """Note that `size` blocks were too many; `slow` says that the node did not answer in time.

        With `for_range` the node refused the number of blocks as such, so it refuses it again for a long time. `stated`
        is how many it said that it gives.
        """
        if self._good >= size:
            self._good = 1
        self._for_range = for_range
        kept = RANGE_REMEMBERED if for_range else CONTENT_REMEMBERED
        if stated is not None and stated < size and not slow:
            self.blocks = stated
            self._ceiling = stated if for_range else size - 1, monotonic() + kept
            return
        smaller = max(1, size // (8 if slow else 2))
        self.blocks = smaller if slow else max(smaller, min(self._good, size - 1), 1)
        self._ceiling = max(1, size - 1), monotonic() + kept

    def _most(self) -> int:
        if self._ceiling is None:
            return WIDEST_SPAN
        most, until = self._ceiling
        if monotonic() >= until:
            self._ceiling, self._good = None, self.blocks
            return WIDEST_SPAN
        return most
