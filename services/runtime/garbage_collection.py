"""What a process has imported stays for its life: the garbage collector need not walk it again and again."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

COLLECT_SECONDS = 10.0
"""How long a full collection is put off at most once work has ended."""
PUT_OFF = 1_000_000
"""Collections of the middle generation before a full one: so many never come."""

_busy = 0
_usual = gc.get_threshold()
_collected = monotonic()


def settle() -> None:
    """Set aside all that is there now; call it once, when everything is imported and nothing has begun.

    A full collection over the modules of web3, nextcord and Reflex takes a tenth of a second or more, in which nothing
    else runs, and one comes whenever a batch has made a quarter as many objects anew.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def undisturbed() -> Generator[None]:
    """Put full collections off while the block lasts, and make up for them at its end.

    One in the middle of the work on thousands of members walks all that is in hand, and holds the event loop for as
    long; afterwards there is little left to walk.
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
