"""The database's clock: the one clock for all stored times and comparisons with them."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MEASURED_EVERY = 60.0
"""Seconds after which the difference between this machine's clock and the database's is measured again."""
STEP = 1.0
"""The step of this machine's clock, in seconds, after which the difference is measured again at once."""
QUESTION = "SELECT clock_timestamp()"


@dataclass(slots=True)
class _Measured:
    """The database clock's lead over this machine's, and when it was measured, by both clocks of this machine."""

    ahead: timedelta = timedelta(0)
    wall: float = 0.0
    ticks: float = -MEASURED_EVERY


_last = _Measured()


def now() -> datetime:
    """Return the present time by the database's clock, aware, in UTC."""
    return datetime.now(UTC) + _last.ahead


def corrected(moment: datetime) -> datetime:
    """Convert a time of this machine's clock to the database's."""
    return moment + _last.ahead


def is_due() -> bool:
    """Return whether to measure now; after True, False follows until the next measurement is due."""
    wall, ticks = datetime.now(UTC).timestamp(), time.monotonic()
    passed = ticks - _last.ticks
    if passed < MEASURED_EVERY and abs(wall - _last.wall - passed) < STEP:
        return False
    _last.wall, _last.ticks = wall, ticks
    return True


def measured(said: datetime, seconds: float) -> None:
    """Record the database's time, which was requested `seconds` ago.

    A difference smaller than the round trip counts as none, so that two equal clocks are never adjusted.
    """
    way = timedelta(seconds=seconds)
    ahead = said - (datetime.now(UTC) - way / 2)
    if abs(ahead - _last.ahead) > way:
        _last.ahead = ahead if abs(ahead) > way else timedelta(0)


def forget() -> None:
    """Forget the measurement, because another database is used from now on."""
    global _last
    _last = _Measured()
