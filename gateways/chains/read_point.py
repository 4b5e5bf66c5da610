"""Where a question to a chain is to be answered: by which node, and at which block."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """The node and the block at which a question is to be answered.

    With `endpoint` None the nodes are tried in their order; with a number, only that node is tried. The node's newest
    block must be at or after `not_before_block`. With `settled` an EVM chain is read at its newest settled block
    (`Chain.settled_after` blocks before the newest one), and the answer names that block.
    """

    endpoint: int | None = None
    not_before_block: int = 0
    settled: bool = False


NEWEST = ReadPoint()
"""The newest block of any node."""
