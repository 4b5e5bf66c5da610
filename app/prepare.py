"""`make` in Python: each target with all of its own set-up. Runs on a bare Python, before anything is installed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from app.browser import find_browser
from app.telling import StepFailed, Teller

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TOOLS = ROOT / "data" / "tools"
LOG = ROOT / "data" / "setup.log"
OLDEST = (3, 11)
MADE = (".venv", ".web", ".states", ".pytest_cache", ".ruff_cache", ".hypothesis")


def main(target: str, arguments: list[str]) -> int:
    """Do one target of the Makefile; returns the exit code unless another program took this one's place."""
    targets = {
        "run": run, "dev": dev, "test": test, "check": check, "screenshots": screenshots, "lighthouse": lighthouse,
        "soak": soak, "lock": lock, "clean": clean,
    }  # fmt: skip
    if target not in targets:
        print(f"Unknown target {target!r}: one of {', '.join(targets)}.")
        return 2
    os.chdir(ROOT)
    try:
        use_a_new_enough_python(target, arguments)
        return targets[target](arguments)
    except StepFailed as failed:
        print(failed)
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
        return 130


def run(arguments: list[str]) -> int:
    """`make run`: everything the product needs, then the product."""
    teller = Teller(4, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements.txt")
        tools(teller)
        build(teller)
    return become("-m", "app", *arguments)


def dev(arguments: list[str]) -> int:
    """`make dev`: the same with hot reload; the web process builds the screens by itself."""
    teller = Teller(3, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements.txt")
        tools(teller)
        # Hot reload writes its own screens over the built ones, which are stale from then on.
        (ROOT / ".web" / "holdfast.stamp").unlink(missing_ok=True)
    return become("-m", "app", "--dev", *arguments)


def test(arguments: list[str]) -> int:
    """`make test`: everything the tests need, then the checks, then every test."""
    teller = Teller(7, LOG)
    what_tests_need(teller)
    checks(teller)
    teller.begin("Tests")
    teller.done("begin")
    # Every core has its own share; who asks for some tests only, or says `-n` themselves, gets just that.
    return become("-m", "pytest", *(arguments or ["-n", str(os.cpu_count() or 1)]))


def screenshots(arguments: list[str]) -> int:
    """`make screenshots`: pictures of every screen in data/screenshots."""
    what_tests_need(Teller(5, LOG))
    return become("-m", "tests.screenshots", *arguments)


def lighthouse(arguments: list[str]) -> int:
    """`make lighthouse`: Lighthouse's scores of the public pages."""
    what_tests_need(Teller(5, LOG))
    return become("-m", "tests.lighthouse", *arguments)


def soak(arguments: list[str]) -> int:
    """`make soak`: many seeds of a world in which everything goes wrong."""
    teller = Teller(3, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements-dev.txt")
        tools(teller)
    return become("-m", "tests.soak.run", *arguments)


def what_tests_need(teller: Teller) -> None:
    """The product, what checks it, and a browser."""
    with SetUp():
        environment(teller)
        packages(teller, "requirements-dev.txt")
        tools(teller)
        build(teller)
        browser(teller)


def check(_: list[str]) -> int:
    """`make check`: style and types."""
    teller = Teller(3, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements-dev.txt")
    checks(teller)
    return 0


def lock(arguments: list[str]) -> int:
    """`make lock`: pin what the .in files ask for, for every Python from 3.11; `ARGS=--upgrade` takes newer ones."""
    teller = Teller(4, LOG)
    with SetUp():
        environment(teller)
        teller.begin("Compiler of requirements (uv)")
        uv = VENV / "bin" / "uv"
        if not uv.exists():
            teller.run([str(PYTHON), "-m", "pip", "--require-virtualenv", "install", "uv"], inside())
        teller.done("ready")
        compiler = [str(uv), "pip", "compile", "--universal", "--python-version", "3.11"]
        options = ["--no-header", "--no-emit-index-url", "-q", *arguments]
        for name, bound in (("requirements", []), ("requirements-dev", ["-c", "requirements.txt"])):
            teller.begin(f"{name}.txt")
            teller.run([*compiler, *options, *bound, f"{name}.in", "-o", f"{name}.txt"], inside())
            teller.done("compiled")
    return 0


def clean(_: list[str]) -> int:
    """`make clean`: remove what was made, but not data/."""
    caches = [path for path in ROOT.rglob("__pycache__") if VENV not in path.parents]
    for path in [*(ROOT / name for name in MADE), *caches]:
        if path.exists():
            print(f"removing {path.relative_to(ROOT)}")
            shutil.rmtree(path, ignore_errors=True)
    return 0


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


def use_a_new_enough_python(target: str, arguments: list[str]) -> None:
    """Go on with another Python of this machine when this one is too old. Raises StepFailed when there is none."""
    if sys.version_info >= OLDEST:
        return
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        path = shutil.which(name)
        if path:
            os.execv(path, [path, "-m", "app.prepare", target, *arguments])
    raise StepFailed(
        f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}. Install one "
        "(Debian, Ubuntu: apt-get install python3 python3-venv), or name it: make run PYTHON=/path/to/python3"
    )


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
    if requirements != "requirements.txt" and read_pins(ROOT / "requirements.txt") <= pins:
        product = hashlib.sha256("\n".join(sorted(read_pins(ROOT / "requirements.txt"))).encode()).hexdigest()
        (VENV / ".installed-requirements.txt").write_text(product)
    teller.done(f"{len(seen)} installed")


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


def checks(teller: Teller) -> None:
    """Style and types of everything."""
    teller.begin("Style and types")
    teller.run([str(PYTHON), "-m", "ruff", "check", "."], inside())
    teller.run([str(PYTHON), "-m", "ruff", "format", "--check", "."], inside())
    teller.run([str(VENV / "bin" / "basedpyright")], inside())
    teller.done("clean")


def inside() -> dict[str, str]:
    """The environment for programs of the virtual environment: its node and npm before any of the machine's."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV), "REFLEX_USE_NPM": "1", "PYTHONUNBUFFERED": "1"}


def become(*arguments: str) -> int:
    """Let the virtual environment's Python take this process's place, so that signals reach it directly."""
    sys.stdout.flush()
    os.execve(str(PYTHON), [str(PYTHON), *arguments], inside())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "run", sys.argv[2:]))
