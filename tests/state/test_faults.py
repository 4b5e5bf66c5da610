"""What is told where a handler failed, and what of a browser's own faults is noted."""

import logging
from collections.abc import Iterator

import pytest

from services.errors import ServerNotFound
from state import faults
from state.faults import REPORTS_A_MINUTE, note_report, show_fault


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    faults._reported.clear()
    yield
    faults._reported.clear()


def test_a_fault_of_ours_is_in_the_log_and_not_on_the_screen(caplog: pytest.LogCaptureFixture) -> None:
    told = str(show_fault(RuntimeError("SELECT secret FROM place")))
    assert "Something went wrong on our side" in told
    assert "secret" not in told
    assert "SELECT secret FROM place" in caplog.text
    assert "Server not found" in str(show_fault(ServerNotFound())), "what a person can do something about is told"


def test_reports_of_browsers_are_short_single_lines_and_few(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "state.faults")
    for number in range(REPORTS_A_MINUTE + 5):
        note_report(Exception(f"{number} oops\r\nERROR forged\x1b[2J " + "x" * 9_000))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == REPORTS_A_MINUTE
    assert lines[0].startswith("A browser reports: 0 oops ERROR forged")
    assert all(line.isprintable() and len(line) < 1_100 for line in lines)
