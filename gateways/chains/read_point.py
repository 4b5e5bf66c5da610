"""Where a question to a chain is answered: by which node, and at which block."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """The node and the block of one answer.

    With `endpoint` None the nodes are tried in their order; with a number, only that one is. The node's newest block is
    at or after `not_before_block`. With `settled` an EVM chain is read at the block that its newest one has settled
    (`Chain.settled_after`), which is the block that the answer names.
    """

    endpoint: int | None = None
    not_before_block: int = 0
    settled: bool = False


NEWEST = ReadPoint()
"""The newest block of any node."""
