"""Split a sequence into parts that fit into one request or one statement."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the items in chunks of `size`, in order; the last may be shorter. Without items there is no chunk."""
    return [items[start : start + size] for start in range(0, len(items), size)]
