"""Every program ends with the sentence of settings that are refused, and without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import __main__ as start
from settings import ROOT


@pytest.mark.parametrize("module", ["app", "app.doctor", "app.supervisor.web", "jobs"])
def test_a_program_whose_settings_are_refused_says_only_why(tmp_path: Path, module: str) -> None:
    (tmp_path / ".env").write_text("this is no setting\n")
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT, env=os.environ | {"HOLDFAST_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"{tmp_path}/.env has a line that is not NAME=value" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_root_is_told_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["app"])
    for name in ("DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISCORD_CLIENT_ID", "1")
    assert start.main() == 1
    assert "holdfast| A live start needs all of Discord's credentials." in capsys.readouterr().out


@pytest.mark.parametrize("module", ["bot", "jobs"])
def test_bot_and_jobs_alone_say_that_they_need_a_database(tmp_path: Path, module: str) -> None:
    """Without an address they would ask libpq's usual one, again and again."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT, env=environment | {"HOLDFAST_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "DATABASE_URL is not set" in done.stderr
    assert "Traceback" not in done.stderr
