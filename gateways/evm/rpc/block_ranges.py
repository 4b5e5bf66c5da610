"""How many blocks of logs a node gives in one request: learnt from what it takes and what it refuses."""

from time import monotonic

FIRST_SPAN, WIDEST_SPAN = 500, 10_000
"""Blocks in one request: the first size, and what the widest paid plans allow (docs/facts.md#limits-of-eth_getlogs)."""
RANGE_REMEMBERED, CONTENT_REMEMBERED = 3_600.0, 60.0
"""Seconds for which a refused size is not tried again: long for a plan's limit, short for a crowded block."""


class LogSpan:
    """The number of blocks that one node is asked for next, for one kind of filter."""

    def __init__(self, known: int | None = None) -> None:
        """Start from `known`, the number of blocks that the node was found to give before."""
        self.blocks = min(known or FIRST_SPAN, WIDEST_SPAN)
        self._good = known or 1
        """The largest size that passed since the last refusal of that size or a smaller one."""
        self._ceiling = (known, monotonic() + RANGE_REMEMBERED) if known else None
        """The largest size that was not refused, and until when (monotonic seconds) it is the limit."""
        self._for_range = bool(known)
        """Whether the last refusal was about the number of blocks as such."""

    @property
    def limit(self) -> int | None:
        """The most blocks that the node was found to give; None where no limit was found."""
        return self._good if self._for_range and self._ceiling is not None else None

    def gave(self, size: int) -> None:
        """Note that a request for `size` blocks passed; only one of the full size leads to a larger one."""
        self._good = max(self._good, size)
        if size >= self.blocks:
            most = self._most()
            self.blocks = max(1, min(most, self.blocks + max(1, self.blocks // 4)))

    def refused(self, size: int, *, for_range: bool, slow: bool = False, stated: int | None = None) -> None:
        """Note that `size` blocks were too many; `slow` means that the node did not answer in time.

        With `for_range` the node refused the number of blocks as such, so it will for a long time. `stated` is how many
        blocks it said that it gives.
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
