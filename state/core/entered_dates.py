"""Dates that people enter in a form."""

from datetime import UTC, datetime, time, timedelta

from locales import _
from services.core.errors import FieldRefused


def start_of_day(value: str, field: str) -> datetime | None:
    """Return the first moment of the day in UTC, or None for an empty text. Raises FieldRefused for any other text."""
    if not value:
        return None
    try:
        return datetime.combine(datetime.strptime(value, "%Y-%m-%d").date(), time.min, UTC)  # noqa: DTZ007 - a date
    except ValueError:
        raise FieldRefused(field, _("This is not a date.")) from None


def end_of_day(value: str, field: str) -> datetime | None:
    """Return the last second of the day in UTC, or None for an empty text. Raises FieldRefused for any other text."""
    start = start_of_day(value, field)
    return None if start is None else start + timedelta(seconds=86_399)
