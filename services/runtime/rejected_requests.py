"""Count rejected requests from strangers and log one summary a minute, so that nobody can flood the log."""

import asyncio
import logging
from collections import Counter
from threading import Lock

_log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
MOST_KINDS = 200
"""How many kinds are counted separately in a minute; further kinds count as OTHERS."""
SHOWN = 10
"""How many kinds a line names, the most frequent first."""
OTHERS = "others"

_counts: Counter[str] = Counter()
_lock = Lock()


def count(kind: str) -> None:
    """Count one rejection; `kind` describes it in a few words, without its content. Thread-safe."""
    with _lock:
        _counts[kind if kind in _counts or len(_counts) < MOST_KINDS else OTHERS] += 1


def write() -> None:
    """Log the counts since the last call as one line, if there are any."""
    with _lock:
        counted = _counts.copy()
        _counts.clear()
    if not counted:
        return
    named = [f"{number}x {kind!r}" for kind, number in counted.most_common(SHOWN)]
    _log.warning("rejected total=%d kinds=%d most=[%s]", counted.total(), len(counted), ", ".join(named))


async def write_on() -> None:
    """Log every minute until cancelled, and once more on cancellation."""
    try:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            write()
    finally:
        write()
