"""The steps of set-up: virtual environment, packages, tools, screens, browser. Needs nothing but a bare Python."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator  # noqa: UP035  (read by Pythons too old for the product, to say so)

from app.browser import find_browser
from app.telling import StepFailed, Teller, start

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TOOLS = ROOT / "data" / "tools"
LOG = ROOT / "data" / "setup.log"
OLDEST = (3, 11)


class SetUp:
    """One set-up at a time: a second one waits for the first, and then finds everything done."""

    def __enter__(self) -> None:
        (ROOT / "data").mkdir(exist_ok=True)
        self._file = (ROOT / "data" / "setup.lock").open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is under way here: waiting for it.", flush=True)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        LOG.unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def environment(teller: Teller) -> None:
    """The virtual environment in .venv, made again when it is broken, too old, or was moved here."""
    teller.begin("Virtual environment")
    if usable(VENV):
        teller.done("up to date")
        return
    try:
        import ensurepip  # noqa: F401  (Debian packs it apart)
        import venv  # noqa: F401
    except ImportError:
        raise StepFailed("Python cannot make virtual environments: apt-get install python3-venv") from None
    teller.run([sys.executable, "-m", "venv", "--clear", str(VENV)], os.environ)
    teller.done(f"made with Python {sys.version.split()[0]}")


def usable(venv: Path) -> bool:
    """Whether this virtual environment works here: its scripts carry its path, and its Python starts."""
    script = venv / "bin" / "pip"
    if not script.exists() or f"{venv}/bin/python" not in script.read_text()[:1000]:
        return False
    code = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.run([str(venv / "bin" / "python"), "-c", code], check=False).returncode == 0
    except OSError:
        return False


def packages(teller: Teller, requirements: str) -> None:
    """The pinned Python packages, installed when the pins changed since."""
    teller.begin("Python packages")
    pins = read_pins(ROOT / requirements)
    stamp = VENV / f".installed-{requirements}"
    digest = hashlib.sha256("\n".join(sorted(pins)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        teller.done("up to date")
        return
    seen: set[str] = set()

    def measure(line: str) -> str:
        match = re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line)
        if match:
            seen.add(match[1].lower())
        if line.startswith("Installing collected"):
            return f"unpacking {len(seen)}"
        return f"{len(seen)} of {len(pins)} found"

    options = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "10"]
    pip = [str(PYTHON), "-m", "pip", "--require-virtualenv", "install"]
    teller.run([*pip, *options, "-r", requirements], inside(), measure)
    stamp.write_text(digest)
    if requirements != "requirements.txt" and versions(read_pins(ROOT / "requirements.txt")) <= versions(pins):
        product = hashlib.sha256("\n".join(sorted(read_pins(ROOT / "requirements.txt"))).encode()).hexdigest()
        (VENV / ".installed-requirements.txt").write_text(product)
    teller.done(f"{len(seen)} installed")


def versions(pins: set[str]) -> set[str]:
    """What is pinned, without the machines that it is for: another package may want it on more of them."""
    return {pin.partition(";")[0].strip() for pin in pins}


def read_pins(path: Path) -> set[str]:
    """The pinned requirements of a compiled file, without comments."""
    return {
        line.strip() for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")
    }


def tools(teller: Teller) -> None:
    """What the sandbox needs from npm (the local EVM node)."""
    teller.begin("Sandbox tools")
    teller.run([str(PYTHON), "-m", "sandbox.tools", str(TOOLS)], inside())
    teller.done("ready")


def build(teller: Teller) -> None:
    """The screens, compiled when anything they are made from changed."""
    teller.begin("Screens")
    teller.run([str(PYTHON), "-m", "app.build"], inside())
    teller.done("ready")


def browser(teller: Teller) -> None:
    """A browser for the tests: found, installed or fetched."""
    teller.begin("Browser for the tests")
    teller.done(find_browser(TOOLS, VENV / "bin" / "npm", inside(), teller))


def second_client(teller: Teller) -> None:
    """A Discord client of another library, with which the tests look at the sandbox."""
    teller.begin("Second Discord client for the tests")
    teller.run([str(PYTHON), "-m", "app.second_client", str(TOOLS)], inside())
    teller.done("ready")


def peers(teller: Teller) -> None:
    """The libraries beside which the benchmarks measure."""
    teller.begin("Peers for the benchmarks")
    teller.run([str(PYTHON), "-m", "benchmarks.set_up"], inside())
    teller.done("ready")


def read_tests(teller: Teller) -> None:
    """Every test is found once, while only the types are looked at: then each worker finds all of it compiled."""
    teller.begin("Tests read")
    teller.run([str(PYTHON), "-m", "pytest", "-q", "-n", "0", "--collect-only"], inside())
    teller.done("ready")


@contextmanager
def types_beside() -> Iterator[subprocess.Popen[bytes]]:
    """The types of everything, looked at beside what is done within: that takes one core a minute. For `checks`."""
    process = start([str(VENV / "bin" / "basedpyright")], inside(), apart=True)
    try:
        yield process
    finally:
        if process.poll() is None:  # a step failed, or somebody does not want to wait
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def checks(teller: Teller, typed: subprocess.Popen[bytes]) -> None:
    """Style and types of everything."""
    teller.begin("Style and types")
    teller.run([str(PYTHON), "-m", "ruff", "check", "."], inside())
    teller.run([str(PYTHON), "-m", "ruff", "format", "--check", "."], inside())
    teller.follow(typed)
    teller.done("clean")


def inside() -> dict[str, str]:
    """The environment for programs of the virtual environment: its node and npm before any of the machine's."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV), "REFLEX_USE_NPM": "1", "PYTHONUNBUFFERED": "1"}


def become(*arguments: str) -> int:
    """Let the virtual environment's Python take this process's place, so that signals reach it directly."""
    sys.stdout.flush()
    os.execve(str(PYTHON), [str(PYTHON), *arguments], inside())
