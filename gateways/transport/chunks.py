"""Split a sequence into what one request or one statement takes."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the items in chunks of `size`, in their order; the last chunk may be shorter. No items are no chunk."""
    return [items[start : start + size] for start in range(0, len(items), size)]
