"""Pauses between attempts, each twice the one before."""

from collections.abc import Generator


def backoff(first: float, longest: float) -> Generator[float]:
    """Yield pauses in seconds without end: `first`, then each twice the one before, up to `longest`."""
    while True:
        yield first
        first = min(2 * first, longest)


def doubled(first: float, times: int, longest: float) -> float:
    """Return a pause of `first` seconds doubled `times` times, at most `longest`; `times` has no limit."""
    # An unlimited number of attempts must not overflow the power.
    return min(first * 2.0 ** min(times, 60), longest)
