"""The log of every process: for people or for programs, with the request's name and without secrets."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest
import socketio

from app.supervisor import output
from services.core import request_ids
from services.runtime import logs
from settings import settings


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[str]]]:
    """A function that returns the lines written to standard error; logging is restored afterwards."""
    root, factory = logging.getLogger(), logging.getLogRecordFactory()
    handlers, level = root.handlers[:], root.level
    yield lambda: capsys.readouterr().err.splitlines()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.setLogRecordFactory(factory)


def in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings().model_copy(update={"log_format": "json"})
    monkeypatch.setattr("services.runtime.logs.settings", lambda: chosen)
    monkeypatch.setattr("app.supervisor.output.settings", lambda: chosen)


def test_text_has_the_requests_name_at_the_end_where_there_is_one(written: Callable[[], list[str]]) -> None:
    logs.set_up()
    with request_ids.under("r-12345678"):
        logging.getLogger("holdfast.x").warning("cookie: hf_session=abc")
    logging.getLogger("holdfast.x").info("by itself")
    assert written() == ["WARNING holdfast.x: cookie: [redacted] [r-12345678]", "INFO holdfast.x: by itself"]


def test_json_is_one_object_a_line_also_with_a_traceback(
    written: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_json(monkeypatch)
    logs.set_up()
    with request_ids.under("r-12345678"):
        try:
            raise ValueError("x\n?session=abc")
        except ValueError:
            logging.getLogger("holdfast.x").exception('said "%s"', "no\nyes")
    (text,) = written()
    line = json.loads(text)
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "holdfast.x", 'said "no\nyes"')
    assert line["requestId"] == "r-12345678"
    assert "ValueError" in line["traceback"]
    assert "abc" not in text
    assert line["time"].endswith("+00:00")


def test_a_fault_of_the_sockets_library_is_written_once(
    written: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loggers = [logging.getLogger(name) for name in ("engineio.server", "socketio.server")]
    for logger in loggers:
        monkeypatch.setattr(logger, "level", logging.NOTSET)
        monkeypatch.setattr(logger, "handlers", [])
    logs.set_up()
    socketio.AsyncServer(async_mode="asgi")
    for logger in loggers:
        logger.error("failed")
    assert written() == ["ERROR engineio.server: failed", "ERROR socketio.server: failed"]


def test_the_supervisor_keeps_json_lines_whole_and_makes_one_of_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = json.loads(output.as_json("jobs", '{"message": "hello", "level": "WARNING"}'))
    assert (kept["process"], kept["level"], kept["message"]) == ("jobs", "WARNING", "hello")
    for text in ("plain words", "[1]", '"x"', "{}", ""):
        made = json.loads(output.as_json("web", text))
        assert (made["process"], made["message"]) == ("web", text)


@pytest.mark.parametrize("said", ["abcdefgh", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "a.b-c_d.0123"])
def test_a_proxys_name_for_a_request_is_kept(said: str) -> None:
    assert request_ids.usable(said) == said


@pytest.mark.parametrize(
    "said", [None, "", "short", "a b c d e f", "x" * 65, "abc\r\nSet-Cookie: x", "ä" * 10, "-" * 9]
)
def test_what_could_spoil_a_log_is_no_name(said: str | None) -> None:
    assert request_ids.usable(said) is None
