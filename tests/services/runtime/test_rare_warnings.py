"""Polls that fail for long are logged rarely, and the log says how many failed."""

import logging

import pytest

from services.runtime import logs
from services.runtime.logs import LOGGED_EVERY, RareWarnings


def test_polls_that_fail_all_day_write_few_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = 0.0
    monkeypatch.setattr(logs, "monotonic", lambda: seconds)
    faults = RareWarnings(logging.getLogger("polls"))
    while seconds < 3 * LOGGED_EVERY:
        faults.add("failed to poll cursor=%s", "base")
        seconds += 2.0
    assert [one.getMessage() for one in caplog.records] == [
        "failed to poll cursor=base times=1",
        "failed to poll cursor=base times=300",
        "failed to poll cursor=base times=300",
    ]
