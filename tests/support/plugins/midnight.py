"""Tests that compare a day with a day: they begin when the day is not about to end."""

import time

import pytest

DAY, BEFORE, AFTER = 86_400, 120, 5
"""Seconds of a day, and those before and after midnight (UTC) in which such a test does not begin."""
OF_A_DAY = (
    "tests/services/servers/test_analytics.py",
    "tests/services/privacy/test_log_partitions.py",
    "tests/jobs/counting/test_days.py",
    "tests/system/browser/account/test_account.py",
)


def seconds_to_wait(now: float) -> float:
    """Return the seconds from `now` (since the epoch) until a test of a day may begin."""
    left = DAY - now % DAY
    return left + AFTER if left < BEFORE else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wait for the next day where a test would meet its beginning."""
    if item.nodeid.startswith(OF_A_DAY):
        time.sleep(seconds_to_wait(time.time()))
