"""Garbage collection skips everything that is imported when a process begins, and nothing else."""

import gc
import weakref

import pytest

from services.runtime import garbage_collection


class Ring:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


def test_what_is_there_is_set_aside_and_what_comes_later_is_collected() -> None:
    before, there, kept = weakref.ref(Ring()), gc.get_freeze_count(), [Ring() for _ in range(10_000)]
    garbage_collection.freeze()
    assert before() is None, "garbage was set aside with the rest"
    assert gc.get_freeze_count() >= there + len(kept)
    after = weakref.ref(Ring())
    gc.collect()
    assert after() is None


def test_a_process_that_disabled_collection_for_its_imports_collects_from_then_on() -> None:
    gc.disable()
    try:
        garbage_collection.freeze()
        assert gc.isenabled()
    finally:
        gc.enable()


def test_full_collections_wait_until_work_is_no_longer_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "COLLECT_SECONDS", 0.0)
    usual = gc.get_threshold()
    old = Ring()
    garbage = weakref.ref(old)
    gc.collect()  # now it is in the oldest generation
    del old
    with garbage_collection.undisturbed(), garbage_collection.undisturbed():
        for _ in range(usual[2] + 2):
            gc.collect(1)
        assert gc.get_threshold()[2] > 100 * usual[2]
        assert garbage() is not None
    assert garbage() is None, "what was put off is made up for"
    assert gc.get_threshold() == usual
