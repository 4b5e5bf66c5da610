"""A start and a backup where a file cannot be used end with one sentence that names it."""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app import __main__ as start
from app import backup
from app.supervisor import trial, update
from app.supervisor.single_instance import Lock, Running
from settings import settings


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (start.main, []), (backup.main, ["make"]), (backup.main, ["restore", "x.dump"]), (update.main, []),
        (trial.main, []),
    ],
    ids=["start", "backup", "restore", "update", "trial"],
)  # fmt: skip
def test_data_that_cannot_be_used_are_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    main: Callable[[], int], arguments: list[str],
) -> None:  # fmt: skip
    """A file in the data's place stands for a read-only file system, a full disk or the data of another user."""
    (tmp_path / "data").touch()
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["holdfast", *arguments])
    # A trial sets both for its web.
    monkeypatch.setenv("PORT", "3000")
    monkeypatch.setenv("BIND", "127.0.0.1")
    # An update keeps its journal beside the code, and ends by signals in its own way.
    monkeypatch.setattr(update, "ROOT", tmp_path)
    monkeypatch.setattr(update.STOP, "listen", lambda: None)
    assert main() == 1
    printed = capsys.readouterr()
    # A backup at night drops what it prints: only errors are mailed.
    said = (printed.err if main is backup.main else printed.out).splitlines()[-1]
    assert str(tmp_path / "data") in said
    assert "cannot be used: " in said


def test_a_start_that_fails_says_so_in_the_format_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").touch()
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOG_FORMAT", "json")
    monkeypatch.setattr(sys, "argv", ["holdfast"])
    settings.cache_clear()
    try:
        assert start.main() == 1
    finally:
        settings.cache_clear()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "cannot be used: " in lines[-1]["message"]


def test_a_lock_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A full disk's own error names no file."""
    (tmp_path / "supervisor.lock").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"supervisor\.lock") as fault:
        Lock(tmp_path).take(Running(1, "http://localhost:1"))
    assert fault.value.filename == str(tmp_path / "supervisor.lock")
    del fault
    gc.collect()  # a file that nobody closed would be a ResourceWarning, and so an error
