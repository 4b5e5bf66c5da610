"""Times relative to now, in words."""

import math
from datetime import datetime

from models import now

_STEPS = ((60, 1, "second"), (3600, 60, "minute"), (86400, 3600, "hour"), (30 * 86400, 86400, "day"))


def ago(moment: datetime, at: datetime | None = None) -> str:
    """Return `just now`, `3 minutes ago` or `2 days ago`, and the date after 30 days. `at` defaults to now."""
    seconds = max(0, int(((at or now()) - moment).total_seconds()))
    if seconds < 10:
        return "just now"
    for below, unit, name in _STEPS:
        if seconds < below:
            count = seconds // unit
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return f"on {moment:%-d %B %Y}"


def in_time(seconds: float) -> str:
    """Return `in 30 seconds` or `in 12 minutes`, rounded up; minutes start at 91 seconds."""
    if seconds <= 90:
        return in_seconds(math.ceil(seconds))
    return f"in {math.ceil(seconds / 60)} minutes"


def in_seconds(count: int) -> str:
    """Return `in 1 second` or `in 30 seconds`."""
    return f"in {count} second{'' if count == 1 else 's'}"
