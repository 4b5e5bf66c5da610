"""What is imported when a process begins is set aside from garbage collection, and nothing else is."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from services import heap


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


class Ring:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


def test_what_is_there_is_set_aside_and_what_comes_later_is_collected() -> None:
    before = weakref.ref(Ring())
    heap.settle()
    assert before() is None, "garbage was set aside with the rest"
    assert gc.get_freeze_count() > 10_000
    after = weakref.ref(Ring())
    gc.collect()
    assert after() is None
