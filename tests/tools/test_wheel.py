"""The command of an installed wheel, and the requirements that the wheel declares."""

import os
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.pages import ROOT
from tools import launcher, wheel


@pytest.fixture
def becomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """The arguments of the program that replaces the command, in a directory of the operator's."""
    found: list[tuple[list[str], dict[str, str]]] = []
    (tmp_path / "product").mkdir()
    monkeypatch.setattr(launcher, "HOME", tmp_path / "product")
    monkeypatch.setattr(os, "execve", lambda _, argv, environment: found.append((argv, environment)))
    monkeypatch.delenv("DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return found


def test_settings_and_data_are_those_of_the_present_directory(
    becomes: list[tuple[list[str], dict[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.main(["run"])
    ((argv, environment),) = becomes
    assert argv == [sys.executable, "-m", "app"]
    assert (environment["HOLDFAST_HOME"], environment["DATA_DIR"]) == (str(tmp_path), str(tmp_path / "data"))
    assert environment["PYTHONUTF8"] == "1", "in a locale with Latin-1 the screens would be read wrongly"
    assert Path.cwd() == tmp_path / "product"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", "/elsewhere")
    launcher.main(["run"])
    assert becomes[1][1]["DATA_DIR"] == "/elsewhere"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("DATA_DIR=/srv/holdfast", "/srv/holdfast"),
        ("export data_dir = '/srv/holdfast'  ", "/srv/holdfast"),
        ("DATA_DIR=kept # not data", "{here}/kept"),
        ("DATA_DIR=", "{here}/data"),
        ("# DATA_DIR=/srv/holdfast", "{here}/data"),
    ],
)
def test_the_directory_of_the_data_may_be_named_in_the_env_file(
    becomes: list[tuple[list[str], dict[str, str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    named: str,
) -> None:
    (tmp_path / ".env").write_text(f"PORT=3000\n{line}\n")
    launcher.main(["run"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", "/elsewhere")
    launcher.main(["run"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", "")
    launcher.main(["run"])
    here = named.format(here=tmp_path)
    assert [environment["DATA_DIR"] for _, environment in becomes] == [here, "/elsewhere", here]


def test_a_tilde_is_the_home_directory_unless_data_lie_under_that_name(
    becomes: list[tuple[list[str], dict[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("DATA_DIR=~/roles\n")
    monkeypatch.setenv("HOME", "/homes/somebody")
    launcher.main(["run"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~" / "roles").mkdir(parents=True)
    launcher.main(["run"])
    assert [environment["DATA_DIR"] for _, environment in becomes] == ["/homes/somebody/roles", f"{tmp_path}/~/roles"]


def test_data_that_a_named_directory_would_hide_stop_the_command(
    becomes: list[tuple[list[str], dict[str, str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "live").mkdir(parents=True)
    (tmp_path / ".env").write_text("DATA_DIR=kept\n")
    assert launcher.main(["run"]) == 1
    assert becomes == []
    said = capsys.readouterr().out
    assert f"{tmp_path}/data" in said
    assert f"{tmp_path}/kept" in said
    (tmp_path / "kept" / "live").mkdir(parents=True)
    launcher.main(["run"])
    assert becomes[0][1]["DATA_DIR"] == f"{tmp_path}/kept"


def test_an_env_file_that_cannot_be_read_stops_the_command_in_a_sentence(
    becomes: list[tuple[list[str], dict[str, str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_bytes("PORT=3000\nPRODUCT_NAME=Schlüssel\n".encode("latin-1"))
    assert launcher.main(["run"]) == 1
    assert becomes == []
    assert str(tmp_path / ".env") in capsys.readouterr().out


def test_files_count_from_where_the_command_is_typed(
    becomes: list[tuple[list[str], dict[str, str]]], tmp_path: Path
) -> None:
    launcher.main(["restore", "data/x.dump", "--force"])
    launcher.main(["backup", "x.dump"])
    launcher.main(["backup"])
    launcher.main(["update", "new.whl", "--restore", "x.dump"])
    launcher.main(["update", "https://example.com/new.whl"])
    assert [argv[2:] for argv, _ in becomes] == [
        ["app.backup", "restore", str(tmp_path / "data" / "x.dump"), "--force"],
        ["app.backup", "make", "--to", str(tmp_path / "product" / "x.dump")],
        ["app.backup", "make"],
        [
            "app.supervisor.update",
            str(tmp_path / "product" / "new.whl"),
            "--restore",
            str(tmp_path / "product" / "x.dump"),
        ],
        ["app.supervisor.update", "https://example.com/new.whl"],
    ]


def test_every_command_is_a_module_of_the_copy(capsys: pytest.CaptureFixture[str]) -> None:
    for (module, *_), _ in launcher.COMMANDS.values():
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
        assert module.partition(".")[0] in wheel.bundle.CODE
    assert launcher.main(["nonsense"]) == 2
    assert launcher.main(["--help"]) == 0
    assert "holdfast COMMAND" in capsys.readouterr().out


def test_another_system_is_refused_in_a_sentence(
    becomes: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert launcher.main(["run"]) == 1
    assert "runs on Linux and not on darwin" in capsys.readouterr().out
    assert becomes == []


def test_the_wheel_needs_the_pinned_packages_but_no_node() -> None:
    made = tomllib.loads(wheel.project("1.2.3", wheel.pins()))["project"]
    assert made["version"] == "1.2.3"
    assert any(pin.startswith("reflex==") for pin in made["dependencies"])
    assert not any("nodejs" in pin for pin in made["dependencies"])
    assert len(made["dependencies"]) > 50
