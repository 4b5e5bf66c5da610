"""What time it is by the database's clock, the one clock for whatever is stored or compared with what is stored."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MEASURED_EVERY = 60.0
"""Seconds after which the difference between this machine's clock and the database's is measured again."""
STEP = 1.0
"""Seconds by which somebody has set this machine's clock when it has to be measured at once."""
QUESTION = "SELECT clock_timestamp()"


@dataclass(slots=True)
class _Measured:
    """How far the database's clock is ahead of this machine's, and when that was measured: by both of our clocks."""

    ahead: timedelta = timedelta(0)
    wall: float = 0.0
    ticks: float = -MEASURED_EVERY


_last = _Measured()


def now() -> datetime:
    """Return the present moment by the database's clock, aware, in UTC."""
    return datetime.now(UTC) + _last.ahead


def corrected(moment: datetime) -> datetime:
    """Return a moment that was read from this machine's clock as the database's clock had it."""
    return moment + _last.ahead


def is_due() -> bool:
    """Return whether to measure now; says so to one caller only for a while."""
    wall, ticks = datetime.now(UTC).timestamp(), time.monotonic()
    passed = ticks - _last.ticks
    if passed < MEASURED_EVERY and abs(wall - _last.wall - passed) < STEP:
        return False
    _last.wall, _last.ticks = wall, ticks
    return True


def measured(said: datetime, seconds: float) -> None:
    """Note what the database's clock said; it was asked `seconds` ago.

    A difference that the time on the way explains is none, so that two clocks that agree never move against each other.
    """
    way = timedelta(seconds=seconds)
    ahead = said - (datetime.now(UTC) - way / 2)
    if abs(ahead - _last.ahead) > way:
        _last.ahead = ahead if abs(ahead) > way else timedelta(0)


def forget() -> None:
    """Forget what was measured: another database is used from now on."""
    global _last
    _last = _Measured()
