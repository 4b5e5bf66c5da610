"""Every program ends with the sentence of settings that are refused, and without a traceback."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import settings
from app import __main__ as start
from bot import __main__ as bot
from jobs import __main__ as jobs
from services.runtime import garbage_collection, logs
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


@pytest.mark.parametrize("program", [bot, jobs])
def test_bot_and_jobs_alone_say_that_they_need_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: ModuleType
) -> None:
    """Without an address they would ask libpq's usual one, again and again."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(settings, "ENV_FILE", tmp_path / ".env")
    monkeypatch.setattr(sys, "argv", ["program"])
    for module, name in ((garbage_collection, "freeze"), (logs, "set_up")):
        monkeypatch.setattr(module, name, lambda: None)  # they would change the process of all tests
    settings.settings.cache_clear()
    with pytest.raises(SystemExit, match="DATABASE_URL is not set"):
        program.main()
    settings.settings.cache_clear()
