"""Times relative to now, in words."""

import math
from datetime import datetime

from locales import _, day, ngettext
from models import now

MONTH = 30 * 86_400


def length(seconds: float) -> str:
    """Return `12 seconds`, `5 minutes`, `3 hours` or `2 days`, rounded down."""
    size = next((size for size in (86_400, 3_600, 60) if seconds >= size), 1)
    count = max(0, int(seconds // size))
    match size:
        case 86_400:
            said = ngettext("{count} day", "{count} days", count)
        case 3_600:
            said = ngettext("{count} hour", "{count} hours", count)
        case 60:
            said = ngettext("{count} minute", "{count} minutes", count)
        case _:
            said = ngettext("{count} second", "{count} seconds", count)
    return said.format(count=count)


def ago(moment: datetime, at: datetime | None = None) -> str:
    """Return `just now`, `3 minutes ago` or `2 days ago`, and the date after 30 days. `at` defaults to now."""
    seconds = int(((at or now()) - moment).total_seconds())
    if seconds < 10:
        return _("just now")
    if seconds < MONTH:
        # Translators: {length} is such as "3 minutes".
        return _("{length} ago").format(length=length(seconds))
    # Translators: {date} is such as "3 May 2026".
    return _("on {date}").format(date=day(moment))


def in_time(seconds: float) -> str:
    """Return `in 30 seconds` or `in 12 minutes`, rounded up; minutes start at 91 seconds."""
    if seconds <= 90:
        return in_seconds(math.ceil(seconds))
    minutes = math.ceil(seconds / 60)
    return ngettext("in {count} minute", "in {count} minutes", minutes).format(count=minutes)


def in_seconds(count: int) -> str:
    """Return `in 1 second` or `in 30 seconds`."""
    return ngettext("in {count} second", "in {count} seconds", count).format(count=count)
