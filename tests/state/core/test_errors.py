"""What a person sees when a handler failed, and which of the browser's own errors are logged."""

import logging
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from services.core.errors import ServerNotFound
from services.runtime.logs import redact_every_log
from state.core import errors
from state.core.errors import REPORTS_A_MINUTE, UNREADABLE, note_report, show_fault


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    errors._reported.clear()
    yield
    errors._reported.clear()


def test_a_fault_of_ours_is_in_the_log_and_not_on_the_screen(caplog: pytest.LogCaptureFixture) -> None:
    told = str(show_fault(RuntimeError("SELECT secret FROM place")))
    assert "Something went wrong on our side" in told
    assert "secret" not in told
    assert "SELECT secret FROM place" in caplog.text
    assert "Server not found" in str(show_fault(ServerNotFound())), "what a person can do something about is told"


def test_a_wallet_in_a_fault_of_ours_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    present, wallet = logging.getLogRecordFactory(), f"0x{'ab' * 20}"
    try:
        redact_every_log()
        show_fault(RuntimeError(f"Key (family, address)=(evm, {wallet}) already exists."))
    finally:
        logging.setLogRecordFactory(present)
    assert "already exists" in caplog.text
    assert wallet not in caplog.text


def test_an_absent_database_is_told_on_the_screen_and_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    fault = OperationalError("SELECT secret", None, psycopg.OperationalError("the connection is lost\nfor good"))
    assert "database does not answer" in str(show_fault(fault))
    (record,) = caplog.records
    assert record.getMessage() == "database did not answer a handler reason=the connection is lost"
    assert record.exc_info is None


def test_a_pool_without_a_free_connection_is_told_like_an_absent_database(caplog: pytest.LogCaptureFixture) -> None:
    assert "database does not answer" in str(show_fault(NoneFree("no connection became free")))
    (record,) = caplog.records
    assert record.getMessage() == "database did not answer a handler reason=no connection became free"
    assert NoneFree in UNREADABLE, "a screen that could not be read offers to read again"


def test_reports_of_browsers_are_short_single_lines_and_few(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "state.core.errors")
    for number in range(REPORTS_A_MINUTE + 5):
        note_report(Exception(f"{number} oops\r\nERROR forged\x1b[2J " + "x" * 9_000))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == REPORTS_A_MINUTE
    assert lines[0].startswith("browser report text=0 oops ERROR forged")
    assert all(line.isprintable() and len(line) < 1_100 for line in lines)
