"""How long ago something was."""

from datetime import UTC, datetime, timedelta

import pytest

from services.core.relative_times import ago, in_seconds

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=9), "just now"),
        (timedelta(seconds=10), "10 seconds ago"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=2), "2 hours ago"),
        (timedelta(days=29), "29 days ago"),
        (timedelta(days=31), "on 6 February 2026"),
    ],
)
def test_ages_are_told_in_plain_words(past: timedelta, words: str) -> None:
    assert ago(NOW - past, NOW) == words


def test_how_soon_is_counted_in_words() -> None:
    assert (in_seconds(1), in_seconds(30)) == ("in 1 second", "in 30 seconds")
