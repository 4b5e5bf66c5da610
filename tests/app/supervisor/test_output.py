"""The supervisor's output: characters that its encoding lacks, and how the end of a program is described."""

import io
import json
import sys
from pathlib import Path

import pytest

from app.supervisor import output
from app.supervisor.child_process import describe
from app.supervisor.supervisor import StartFailed, Supervisor
from settings import settings
from tests.app.supervisor.test_supervisor import plan


@pytest.mark.parametrize(
    ("encoding", "printed"), [("iso-8859-1", b"L\xf6we \\u2713"), ("utf-8", b"L\xc3\xb6we \xe2\x9c\x93")]
)
def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch, encoding: str, printed: bytes) -> None:
    """An error would end the reading of a process's output, and that process could print nothing any more."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    output.repeat("web", "Löwe ✓")
    assert written.getvalue() == b"web     | " + printed + b"\n"


def test_a_line_that_is_nested_too_deep_to_be_read_is_repeated_as_it_is() -> None:
    line = "[" * 100_000
    assert json.loads(output.as_json("web", line))["message"] == line


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (3, "exit code 3"),
        (-9, "SIGKILL, as when memory runs out"),
        (-15, "SIGTERM"),
        (-35, "signal 35"),
        (-127, "signal 127"),
    ],
)
def test_every_end_of_a_program_is_described(code: int, said: str) -> None:
    """An error here would end the task that starts the program again."""
    assert describe(code) == said


async def test_what_a_migration_says_is_written_as_every_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOG_FORMAT", "json")
    settings.cache_clear()
    code = "import sys; print('a table is in use', flush=True); sys.exit('not let in\\nis it running?')"
    supervisor = Supervisor(plan(tmp_path, migrate=(sys.executable, "-c", code)), say=output.say)
    try:
        with pytest.raises(StartFailed):
            await supervisor.run()
    finally:
        settings.cache_clear()
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["process"], line["message"]) for line in written if line["process"] == "migrate"] == [
        ("migrate", "a table is in use"), ("migrate", "not let in"), ("migrate", "is it running?"),
    ]  # fmt: skip
