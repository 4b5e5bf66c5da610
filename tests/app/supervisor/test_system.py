"""On systems other than Linux, each way to start the product ends with the same message before it does anything.

Under every locale a command says what it has to say, and does its work if nobody reads it. The commands that it names
are those of this installation.
"""

import ast
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app import __main__ as app
from app import backup, doctor, live_check
from app.supervisor.installed import command_of, journal, update_under_way
from app.supervisor.single_instance import AlreadyRunning, Running
from settings import ROOT
from tests.app.test_backup import cut_short as cut_short
from tests.app.test_backup import make_one as make_one
from tests.app.test_backup import mark_in
from tools import bundle, launcher, prepare

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
        (("tools.prepare", "restore"), "Which backup? make restore FILE=data/backups/\\u2026.dump"),
        (("app",), "PUBLIC_URL must be http(s)://host[:port] without a path, not 'https://\\u2192'"),
    ],
    ids=["make restore", "start"],
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


def test_a_locale_whose_encoding_lacks_a_sign_does_not_stop_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISCORD_CLIENT_ID", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="latin-1", write_through=True))
    assert doctor.main() == 1
    assert b"\\u2192 Make an application" in shown.getvalue()


def test_a_restore_whose_reader_has_gone_succeeds_when_it_has_restored(cut_short: Path) -> None:
    journal(ROOT).clear()
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "app.backup", "restore", str(cut_short.parents[1] / "old.dump"), "--force"]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert mark_in(cut_short) == "old"


@pytest.fixture
def installations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """The roots of a clone, a wheel and an image."""
    environment, clone, image = tmp_path / ".venv", tmp_path / "clone", tmp_path / "image"
    wheel = environment / "lib" / "holdfast" / "product"
    for directory in (wheel, clone, image):
        directory.mkdir(parents=True)
    (clone / "Makefile").touch()
    monkeypatch.setattr(sys, "prefix", str(environment))
    return clone, wheel, image


@pytest.mark.parametrize("home", ["", "/srv/elsewhere"], ids=["without HOLDFAST_HOME", "with HOLDFAST_HOME"])
def test_the_commands_named_are_those_of_the_installation(
    installations: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    if home:
        monkeypatch.setenv("HOLDFAST_HOME", home)
    else:
        monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    said = {}
    for root in installations:
        monkeypatch.setattr(backup, "ROOT", root)
        said[root.name] = (command_of(root, "update"), backup._restoring(Path("x.dump")))
    assert said == {
        "clone": ("make update", "make restore FILE=x.dump"),
        "product": ("holdfast update", "holdfast restore x.dump"),
        "image": (None, "python -m app.backup restore x.dump"),
    }
    _, wheel, image = installations
    assert "`holdfast update` takes it back" in update_under_way(wheel)
    assert "update there again" in update_under_way(image)


def test_the_checks_before_a_start_name_each_other_as_they_are_run_there(
    installations: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {}
    for root in installations:
        for module in (doctor, live_check):
            monkeypatch.setattr(module, "ROOT", root)
        found = [*doctor.examine({}), *doctor.examine({"MEMBERS_INTENT": "on"})]
        texts = [*(one.text for one in found), doctor.conclusion(0, refused=False), live_check.refusal("It is unset.")]
        said[root.name] = set(re.findall(r"`(.+?)`", " ".join(texts)))
    assert said == {
        "clone": {"make doctor", "make live-check"},
        "product": {"holdfast doctor", "holdfast live-check"},
        "image": {"python -m app.doctor", "python -m app.live_check"},
    }


def test_the_address_that_an_image_listens_on_itself_is_no_mistake(
    installations: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    advised = {}
    for root in installations:
        monkeypatch.setattr(doctor, "ROOT", root)
        advised[root.name] = any(one.name == "Interface" for one in doctor.examine({"BIND": "0.0.0.0"}))
    assert advised == {"clone": True, "product": True, "image": False}


def test_an_image_is_not_told_that_the_proxy_beside_it_is_its_own_machine(
    installations: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {}
    for root in installations:
        monkeypatch.setattr(doctor, "ROOT", root)
        (how,) = [one.how for one in doctor.examine({}) if one.name == "Proxy"]
        said[root.name] = ("127.0.0.1" in how, "docker network inspect" in how)
    assert said == {"clone": (True, False), "product": (True, False), "image": (False, True)}


OF_A_CLONE = re.compile(r"\bmake (?:run|dev|doctor|live-check|psql|backup|restore|update)\b")


def test_no_text_of_an_image_or_a_wheel_names_a_command_of_a_clone_alone() -> None:
    found = set[tuple[str, str]]()
    files = [one for name in bundle.CODE for one in (ROOT / name).rglob("*.py")]
    for path in files:
        if path.name == "installed.py" or not OF_A_CLONE.search(source := path.read_text()):
            continue  # it knows which installation it is in
        tree = ast.parse(source)
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Constant) and id(node) not in told else None
            if isinstance(value, str) and OF_A_CLONE.search(value) and "holdfast" not in value:
                found.add((str(path.relative_to(ROOT)), value))
    assert files
    assert found == set()


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (Running(7, "http://localhost:3000"), "Holdfast already runs at http://localhost:3000 (process 7)."),
        (Running(7, "a restore"), "A restore is under way on the same data (process 7)."),
        (Running(7, "an update"), "An update is under way on the same data (process 7)."),
        (None, "Holdfast already runs on the same data."),
    ],
)
def test_who_has_the_data_is_named(running: Running | None, said: str) -> None:
    assert str(AlreadyRunning(running)) == said
