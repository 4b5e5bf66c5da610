"""Snowflakes: Discord's ids, which carry their own time."""

import time
from datetime import UTC, datetime

EPOCH_MS = 1_420_070_400_000


class Snowflakes:
    """Ids that only grow, also across restarts, as long as the clock does."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> str:
        """Return a new id as text."""
        now = (int(time.time() * 1000) - EPOCH_MS) << 22
        self._last = max(self._last + 1, now)
        return str(self._last)

    def next_of(self, count: int) -> str:
        """Return the first of `count` new ids in a row."""
        first = self.next()
        self._last += count - 1
        return first


def made_at(snowflake: str) -> datetime:
    """Return when the id was made (aware, UTC)."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + EPOCH_MS) / 1000, UTC)


def iso(moment: datetime) -> str:
    """Return a time as Discord writes it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def now_iso() -> str:
    """Return the present time as Discord writes it."""
    return iso(datetime.now(UTC))
