"""An update of a wheel copies its environment, and installs without a network."""

from pathlib import Path

import pytest

from app.supervisor.installed import UpdateFailed, Wheel


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
