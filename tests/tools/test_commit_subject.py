"""The commit messages that the hook accepts, and its messages about the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.commit_subject import complaints, main

ROOT = Path(__file__).resolve().parents[2]
FITS = "engine: " + "read the hash ".ljust(64, "x")


@pytest.mark.parametrize(
    "message",
    [
        "engine: read the settled hash before the logs",
        "engine: read the settled hash\n\nA reorganisation in between is found out.\n",
        "rate shares: keep what nobody wants",
        "set-up: install with uv",
        "channels: don't take unreadable messages for none",
        "events: bring the log's newest lines",
        "gateways: embed the chain's id",
        "docs: discuss the queue",
        "tests: read, follow and give roles beside real nodes",
        "models: focus the index on open grants",
        FITS,
        "Merge branch 'main' into queue",
        'Revert "engine: read the settled hash before the logs"',
        "fixup! engine: read the settled hash before the logs",
    ],
)
def test_a_subject_of_the_right_form_passes(message: str) -> None:
    assert list(complaints(message)) == []


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("", "form"),
        ("Read the settled hash before the logs", "form"),
        ("engine:read the hash", "form"),
        ("engine: read", "form"),
        ("Engine: read the hash", "form"),
        ("engine: Read the hash", "form"),
        ("engine/ledger: read the hash", "form"),
        ("engine: reads the hash", "imperative"),
        ("engine: reading the hash", "imperative"),
        ("engine: settled the hash", "imperative"),
        ("engine: read the hash.", "full stop"),
        ("engine: read the hash\nbefore the logs", "not empty"),
        (FITS + "x", "73 characters"),
    ],
)
def test_a_subject_of_another_form_is_refused_with_the_reason(message: str, about: str) -> None:
    (complaint,) = complaints(message)
    assert about in complaint


def test_everything_that_is_wrong_is_named_at_once() -> None:
    assert len(list(complaints("x" * 73 + ".\nbody"))) == 4


def test_what_git_adds_to_the_message_is_passed_over() -> None:
    added = "\n# Please enter the commit message\nengine: read the hash\n# On branch main\n"
    assert list(complaints(added)) == []
    below = "engine: read the hash\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n"
    assert list(complaints(below)) == []


def test_the_exit_code_decides_and_the_reason_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("engine: read the hash\n", encoding="utf-8")
    assert main([str(message)]) == 0
    message.write_text("engine: reads the hash – twice\n", encoding="utf-8")
    assert main([str(message)]) == 1
    assert "`reads` is not imperative" in capsys.readouterr().err
    assert main([]) == 2


def test_it_runs_on_a_bare_python(tmp_path: Path) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("Fixed it\n", encoding="utf-8")
    script = [sys.executable, "-I", "-S", str(ROOT / "tools" / "commit_subject.py"), str(message)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "area: verb object" in done.stderr
