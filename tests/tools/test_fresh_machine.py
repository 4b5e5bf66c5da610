"""How `make fresh` reads its commands' output, which files a machine gets, and the table that it prints."""

import os
import tempfile
from pathlib import Path

import pytest

from tools.fresh import machine as fresh_machine
from tools.fresh.machine import Machine, carried, run, table


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine("12", tmp_path / "debian-12", (), {"PATH": "/usr/bin"}, tmp_path / "debian-12.log")


def test_the_steps_of_set_up_are_read_with_their_time(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    said = (
        "[1/4] Virtual environment ...\n[1/4] Virtual environment: made with Python 3.11.2 (1.5 s)\n"
        "[4/4] Screens ... Building the screens: 25 s. Compiling, 30 s\n[4/4] Screens: up to date\n"
        "[5/5] Tests: begin\n"
    )
    machine.read_steps("make run", said)
    assert machine.steps == [
        ("make run: Virtual environment", "made with Python 3.11.2", 1.5),
        ("make run: Screens", "up to date", 0.0),
    ]
    assert "Debian 12: make run: Screens: up to date (0.0 s)" in capsys.readouterr().out


def test_the_table_has_a_column_a_machine(machine: Machine, tmp_path: Path) -> None:
    other = Machine("13", tmp_path, (), {}, tmp_path / "log", [("git clone", "done", 2.0)])
    machine.steps += [("git clone", "done", 1.0), ("make test", "passed", 60.0)]
    assert table([machine, other]).splitlines() == [
        "| | Debian 12 | Debian 13 |",
        "|---|---|---|",
        "| git clone | 1.0 s | 2.0 s |",
        "| make test | 60.0 s |  |",
    ]


def test_settings_of_packages_go_along_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    (packages / "simple").mkdir(parents=True)
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nextra-index-url = file://{packages}/simple\n")
    monkeypatch.setattr(fresh_machine, "PIP_FILES", (settings,))
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("DISCORD_BOT_TOKEN", "secret")
    files, directories, environment = carried(tmp_path / "debian-12")
    assert settings in files
    assert packages in directories
    assert environment["PIP_INDEX_URL"] == "https://mirror.example/simple"
    assert environment["HTTPS_PROXY"] == "http://proxy.example"
    assert "DISCORD_BOT_TOKEN" not in environment


@pytest.mark.parametrize("said", ["Traceback (most recent call last):", "[INFO] Killing worker-1", "panicked at"])
def test_a_stop_that_is_not_clean_is_seen(said: str) -> None:
    assert fresh_machine.UNCLEAN.search(said)


@pytest.mark.parametrize("kept", [True, False])
def test_each_release_is_tried_until_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kept: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def try_out(number: str, home: Path) -> Machine:
        root = home / f"debian-{number}"
        root.mkdir(parents=True)
        if number == "14":
            raise fresh_machine.FreshFailed("Debian 14: it did not start.")
        return Machine(number, root, (), {}, home / f"{number}.log", [("start", "healthy", 1.0)])

    where = tmp_path / "kept" if kept else None
    assert fresh_machine.on_each(["12", "13"], where, "fresh-", try_out) == 0
    said = capsys.readouterr().out
    assert "| | Debian 12 | Debian 13 |" in said
    assert fresh_machine.on_each(["14"], where, "fresh-", try_out) == 1
    assert capsys.readouterr().out == "Debian 14: it did not start.\n"
    assert len(list(tmp_path.rglob("debian-*"))) == (3 if kept else 0)


def test_what_is_carried_reaches_a_command_without_being_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every account of this machine can read arguments, and the address of an index may have a password."""
    monkeypatch.setenv("DISCORD_BOT_TOKEN", "not-carried")
    carries = {"PIP_INDEX_URL": "https://ada:secret@mirror.example/simple", "PATH": os.environ["PATH"]}
    machine = Machine("13", tmp_path / "debian-13", (), carries, tmp_path / "debian-13.log")
    assert "secret" not in " ".join(machine.argv("make", "run"))
    said, _ = run(machine, ["env"])
    assert f"PIP_INDEX_URL={carries['PIP_INDEX_URL']}\n" in said
    assert "not-carried" not in said
