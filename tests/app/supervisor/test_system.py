"""On systems other than Linux, each way to start the product ends with the same message before it does anything.

Under every locale a command says what it has to say.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from app import __main__ as app
from settings import ROOT
from tools import launcher, prepare

STARTS: dict[str, Callable[[], int]] = {
    "make run": lambda: prepare.main("run", []),
    "make test": lambda: prepare.main("test", []),
    "python -m app, which reflex run becomes": app.main,
    "holdfast run": lambda: launcher.main(["run"]),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_macos_is_refused_in_one_sentence(
    start: Callable[[], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sys, "argv", ["app"])
    assert start() == 1
    said = capsys.readouterr().out.removeprefix("holdfast| ")
    assert said == "Holdfast runs on Linux and not on darwin; on Windows, WSL is one.\n"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("app.doctor",), "\\u2192 Make an application"),
        (("tools.prepare", "restore"), "Which backup? make restore FILE=data/backups/\\u2026.dump"),
        (("app",), "PUBLIC_URL must be http(s)://host[:port] without a path, not 'https://\\u2192'"),
    ],
    ids=["doctor", "make restore", "start"],
)  # fmt: skip
def test_a_locale_whose_encoding_lacks_a_sign_stops_no_command(command: tuple[str, ...], says: str) -> None:
    """As with LANG=en_US.ISO-8859-1, which few machines have installed."""
    environment = {name: value for name, value in os.environ.items() if name not in {"FILE", "DATABASE_URL"}}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**environment, "PYTHONIOENCODING": "latin-1", "PUBLIC_URL": "https://→"},
    )  # fmt: skip
    assert done.returncode == 1
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
