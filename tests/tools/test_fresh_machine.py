"""How `make fresh` reads its commands' output, which files a machine gets, and the table that it prints."""

from pathlib import Path

import pytest

from tools.fresh import machine as fresh_machine
from tools.fresh.machine import Machine, carried, table


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
