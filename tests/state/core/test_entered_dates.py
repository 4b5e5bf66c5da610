"""Dates that people enter: a day's first and last second in UTC, the last possible day, and invalid dates."""

from datetime import UTC, datetime

import pytest

from services.core.errors import FieldRefused
from state.core.entered_dates import end_of_day, start_of_day


@pytest.mark.parametrize("day", ["2026-02-28", "2028-02-29", "9999-12-31"])
def test_a_day_has_a_first_and_a_last_second(day: str) -> None:
    year, month, number = map(int, day.split("-"))
    assert start_of_day(day, "until") == datetime(year, month, number, tzinfo=UTC)
    assert end_of_day(day, "until") == datetime(year, month, number, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-02-29", "tomorrow", "10000-01-01", "2026-1"])
def test_what_is_no_date_is_refused_at_its_field(text: str) -> None:
    for read in (start_of_day, end_of_day):
        with pytest.raises(FieldRefused) as refused:
            read(text, "beginsAt")
        assert refused.value.field == "beginsAt"


def test_no_date_is_none() -> None:
    assert (start_of_day("", "until"), end_of_day("", "until")) == (None, None)
