"""An update of a wheel copies its environment, and installs without a network; and what updates of both kinds need."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.supervisor.installed import Checkout, Journal, UpdateFailed, Wheel
from settings import ROOT


def test_a_wheels_environment_is_copied_and_its_steps_need_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    wheels = tmp_path / "wheels"

    def run(command: list[str], **_: object) -> None:
        ran.append(command)
        if "wheel" in command:
            wheels.mkdir()
            (wheels / "holdfast-0.2.0-py3-none-any.whl").touch()
            (wheels / "reflex-1.0-py3-none-any.whl").touch()

    monkeypatch.setattr("app.supervisor.installed.run", run)
    installed = Wheel(tmp_path / "venv", "0.1.0", wheels)
    assert installed.copied == (tmp_path / "venv",)
    with pytest.raises(UpdateFailed, match="Which version"):
        installed.fetch("")
    assert installed.fetch("holdfast-0.2.0-py3-none-any.whl") == "0.2.0"
    installed.install()
    assert "--no-index" in ran[-1]
    assert ran[-1][-1] == "holdfast==0.2.0"
    assert not wheels.exists()
    assert Wheel(tmp_path / "venv", "0.2.0", wheels).fetch("holdfast-0.2.0-py3-none-any.whl") == ""


def test_a_wheels_environment_behind_a_link_is_copied_itself(tmp_path: Path) -> None:
    """Its name may be `current`, a link to the directory of a version."""
    (tmp_path / "venv-1").mkdir()
    (tmp_path / "current").symlink_to("venv-1")
    installed = Wheel(tmp_path / "current", "0.1.0", tmp_path / "wheels")
    assert installed.copied == (tmp_path / "venv-1",)
    assert installed.python == tmp_path / "current" / "bin" / "python"


def test_the_note_of_an_update_is_private_because_it_has_the_databases_password(tmp_path: Path) -> None:
    note = Journal(tmp_path / "update.json")
    before = os.umask(0o022)
    try:
        note.write({"url": "postgresql://holdfast:secret@db/holdfast"})
    finally:
        os.umask(before)
    assert note.path.stat().st_mode & 0o777 == 0o600


def test_it_is_read_by_a_python_that_has_nothing_installed() -> None:
    command = [sys.executable, "-S", "-c", "import app.supervisor.update"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["app.backup", "app.build", "app.supervisor.trial"])
def test_a_module_that_earlier_versions_start_has_kept_its_name(module: str) -> None:
    """The old version carries out an update, and the new version carries out the way back."""
    assert find_spec(module) is not None


def test_git_itself_says_why_it_cannot_read_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for root, where the clone belongs to the account that runs the product."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UpdateFailed, match=f"git cannot read {tmp_path}.*\nfatal: not a git repository"):
        Checkout(tmp_path)
