"""Keeps tests that compare one day with another from starting around midnight."""

import time

import pytest

DAY, BEFORE, AFTER = 86_400, 120, 5
"""Seconds of a day, and those before midnight (UTC) in which such a test waits, until AFTER seconds past midnight."""
OF_A_DAY = (
    "tests/services/servers/test_analytics.py",
    "tests/services/privacy/test_log_partitions.py",
    "tests/jobs/counting/test_reach_by_day.py",
    "tests/jobs/writing/test_moves.py",
    "tests/state/server/test_move.py",
    "tests/app/api/server/moving/test_left_out.py",
    "tests/models/test_log_upgrade.py",
    "tests/system/browser/account/test_account.py",
)


def seconds_to_wait(now: float) -> float:
    """Return the seconds from `now` (since the epoch) until a test of days may start."""
    left = DAY - now % DAY
    return left + AFTER if left < BEFORE else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wait until midnight is past if the test could run into it."""
    if item.nodeid.startswith(OF_A_DAY):
        time.sleep(seconds_to_wait(time.time()))
