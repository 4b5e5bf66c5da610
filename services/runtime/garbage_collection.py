"""Keep full garbage collections from blocking the event loop."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

COLLECT_SECONDS = 10.0
"""Longest delay of a full collection after work has ended."""
PUT_OFF = 1_000_000
"""Collections of the middle generation before a full one: too many to be reached."""

_busy = 0
_usual = gc.get_threshold()
_collected = monotonic()


def freeze() -> None:
    """Exempt all existing objects from collection, and enable it; call once, after the imports and before any work.

    A process disables it during imports: they create little garbage, and the search takes a quarter of their time.
    A full collection over the modules of web3, nextcord and Reflex blocks for a tenth of a second or more, and one runs
    whenever the new objects of a batch reach 25 % of the old ones.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


@contextmanager
def undisturbed() -> Generator[None]:
    """Defer full collections while the block runs, and make up for them afterwards.

    A full collection during the work on thousands of members visits all objects of that work and blocks the event loop;
    afterwards there is little left to visit.
    """
    global _busy, _usual, _collected
    if not _busy:
        _usual = gc.get_threshold()
        gc.set_threshold(*_usual[:2], PUT_OFF)
    _busy += 1
    try:
        yield
    finally:
        _busy -= 1
        if not _busy:
            gc.set_threshold(*_usual)
        if gc.get_count()[2] > _usual[2] and monotonic() - _collected >= COLLECT_SECONDS:
            gc.collect()
            _collected = monotonic()
