"""Times relative to now, in words."""

import math
from datetime import datetime

from models import now

MONTH = 30 * 86_400


def length(seconds: float) -> str:
    """Return `12 seconds`, `5 minutes`, `3 hours` or `2 days`, rounded down."""
    size, name = next(
        (step for step in ((86_400, "day"), (3_600, "hour"), (60, "minute")) if seconds >= step[0]), (1, "second")
    )
    count = max(0, int(seconds // size))
    return f"{count} {name}{'' if count == 1 else 's'}"


def ago(moment: datetime, at: datetime | None = None) -> str:
    """Return `just now`, `3 minutes ago` or `2 days ago`, and the date after 30 days. `at` defaults to now."""
    seconds = int(((at or now()) - moment).total_seconds())
    if seconds < 10:
        return "just now"
    return f"{length(seconds)} ago" if seconds < MONTH else f"on {moment:%-d %B %Y}"


def in_time(seconds: float) -> str:
    """Return `in 30 seconds` or `in 12 minutes`, rounded up; minutes start at 91 seconds."""
    if seconds <= 90:
        return in_seconds(math.ceil(seconds))
    return f"in {math.ceil(seconds / 60)} minutes"


def in_seconds(count: int) -> str:
    """Return `in 1 second` or `in 30 seconds`."""
    return f"in {count} second{'' if count == 1 else 's'}"
