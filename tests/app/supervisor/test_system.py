"""On systems other than Linux, each way to start the product ends with the same message before it does anything."""

import sys
from collections.abc import Callable

import pytest

from app import __main__ as app
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
