"""How the product is installed here (from a clone of its repository or a wheel), and how another version replaces it.

Imports only the standard library, because the files of the product change while these classes work.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from app.postgres import private_files

NUMBERS = re.compile(r"\d+\.\d+\.\d+")
WHEEL = re.compile(r"holdfast-([^-]+)-.*\.whl")
STOP_SECONDS = 60.0


class UpdateFailed(Exception):
    """Raised when a step of an update failed; the text says which, and why as far as that is known."""


class Installation(Protocol):
    """One way to be installed.

    `present` is the name of what is installed before an update. `install` makes the paths in `moved` new, after the
    caller has moved them away, and changes those in `copied`, which the caller has copied. `python` runs the product's
    modules.
    """

    present: str
    moved: tuple[Path, ...]
    copied: tuple[Path, ...]
    python: Path

    def fetch(self, wanted: str) -> str:
        """Download a version and return its name, empty if there is none newer. The installation does not change."""
        ...

    def install(self) -> None:
        """Put the fetched version in place."""
        ...

    def put_back(self, before: str) -> None:
        """Put back what `present` named, after the caller has put back `moved` and `copied`."""
        ...


class Checkout:
    """A clone of the repository, with the virtual environment and the built screens in it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._commit = ""
        branch = _said("git", "symbolic-ref", "--quiet", "--short", "HEAD", cwd=root)
        self.present = branch or _said("git", "rev-parse", "HEAD", cwd=root)
        if not self.present:
            raise UpdateFailed(f"git cannot read {root}, so nothing is updated from there:\n{_complaint(root)}")
        self.moved: tuple[Path, ...] = (root / ".venv", root / ".web")
        self.copied: tuple[Path, ...] = ()
        self.python = root / ".venv" / "bin" / "python"

    def fetch(self, wanted: str) -> str:
        """Fetch all tags and branches. If no version is wanted, take the newest release that is not in this one."""
        if changed := _said("git", "status", "--porcelain", "--untracked-files=no", cwd=self._root):
            raise UpdateFailed(f"These files are changed here, and an update would lose that:\n{changed}")
        run(["git", "fetch", "--quiet", "--tags", "origin"], cwd=self._root, foreground=True)
        name = f"v{wanted}" if NUMBERS.fullmatch(wanted) else wanted or self._newest()
        self._commit = _said("git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", cwd=self._root)
        if not self._commit:
            raise UpdateFailed(f"There is no version {name} in the repository that this is a clone of.")
        has = ["git", "merge-base", "--is-ancestor", self._commit, "HEAD"]
        here = not wanted and subprocess.run(has, cwd=self._root, check=False, capture_output=True).returncode == 0
        return "" if here or self._commit == _said("git", "rev-parse", "HEAD", cwd=self._root) else name

    def install(self) -> None:
        """Check the version out, and set up what it needs."""
        run(["git", "checkout", "--quiet", "--detach", self._commit], cwd=self._root)
        # This creates the virtual environment again, so it runs on the Python from which the present one was created.
        run([str(getattr(sys, "_base_executable", sys.executable)), "-m", "tools.prepare", "set-up"], cwd=self._root)

    def put_back(self, before: str) -> None:
        """Check out the branch or the commit from before."""
        run(["git", "checkout", "--quiet", "--force", before, "--"], cwd=self._root, stoppable=False)

    def _newest(self) -> str:
        tags = _said("git", "tag", "--list", "v*", cwd=self._root).split()
        numbered = [tag for tag in tags if NUMBERS.fullmatch(tag[1:])]
        if not numbered:
            raise UpdateFailed("There is no release yet. To take a branch instead: make update VERSION=origin/main")
        return max(numbered, key=lambda tag: tuple(map(int, tag[1:].split("."))))


class Wheel:
    """A wheel that pip installed into a virtual environment."""

    def __init__(self, prefix: Path, present: str, wheels: Path) -> None:
        self.present = present
        self.moved: tuple[Path, ...] = ()
        # Behind a link, which would otherwise be copied in place of the environment.
        self.copied: tuple[Path, ...] = (prefix.resolve(),)
        self.python = prefix / "bin" / "python"
        self._wheels = wheels
        self._version = ""

    def fetch(self, wanted: str) -> str:
        """Get the wheel at a path or URL, and wheels of everything that it needs."""
        if not wanted:
            raise UpdateFailed("Which version? holdfast update holdfast-1.2.3-py3-none-any.whl, or its URL")
        shutil.rmtree(self._wheels, ignore_errors=True)
        self._pip("wheel", "--wheel-dir", str(self._wheels), wanted)
        found = [match[1] for path in self._wheels.iterdir() if (match := WHEEL.fullmatch(path.name))]
        if len(found) != 1:
            raise UpdateFailed(f"{wanted} is not a wheel of this product.")
        self._version = found[0]
        return "" if self._version == self.present else self._version

    def install(self) -> None:
        """Install the fetched wheels, without a network."""
        self._pip("install", "--no-index", "--find-links", str(self._wheels), f"holdfast=={self._version}")
        shutil.rmtree(self._wheels, ignore_errors=True)

    def put_back(self, before: str) -> None:
        """Do nothing: the caller has put back the virtual environment, which is all there is."""

    def _pip(self, command: str, *arguments: str) -> None:
        quiet = ("--quiet", "--no-input", "--disable-pip-version-check")
        # Not in the product's own directory, which pip replaces.
        run([str(self.python), "-m", "pip", command, *quiet, *arguments], cwd=Path("/"))


class Stop:
    """Remembers a request to stop the update. A running step reacts to it; work between steps is never interrupted."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Take Ctrl+C, SIGTERM and SIGHUP as such a request, except for those that are ignored, as by nohup."""
        for number in self.SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


STOP = Stop()


def run(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None, foreground: bool = False,
    stoppable: bool = True,
) -> None:  # fmt: skip
    """Run a step. Raises UpdateFailed if it fails, and KeyboardInterrupt after ending it on a request to stop.

    In the foreground it shares our terminal, and may ask for a password there.
    """
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, start_new_session=not foreground,
            stdin=None if foreground else subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as fault:
        raise UpdateFailed(f"{Path(command[0]).name} does not start: {fault.strerror}.") from None
    while True:
        try:
            code = process.wait(0.1)
        except subprocess.TimeoutExpired:
            code = None
        if stoppable and STOP.asked:
            _end(process, foreground)
            raise KeyboardInterrupt
        if code is not None:
            break
    if code != 0:
        raise UpdateFailed(f"`{' '.join([Path(command[0]).name, *command[1:]])}` failed; the reason is above.")


def _end(process: subprocess.Popen[bytes], foreground: bool) -> None:
    """End a step with SIGTERM, which stops the product in order; kill what is left of it a minute later."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if not foreground:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _said(*command: str, cwd: Path) -> str:
    """Return the output of a git command, empty if it printed none. Raises UpdateFailed if git is missing."""
    try:
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False).stdout.rstrip()
    except OSError:
        raise UpdateFailed("An update of a clone needs git.") from None


def _complaint(root: Path) -> str:
    """Return why git cannot read a directory: there is no clone, or it belongs to another account."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return asked.stderr.strip()


def command_of(root: Path, target: str) -> str | None:
    """Return the command with which a person runs a target, such as `update`; None in an image, which has none.

    HOLDFAST_HOME does not tell a wheel, whose command sets it, from the others, for which it may name a `.env`.
    """
    if (root / ".git").exists() or (root / "Makefile").exists():
        return f"make {target}"
    # pip puts the files of a wheel into its environment; those of an image are beside one.
    return f"holdfast {target}" if root.resolve().is_relative_to(Path(sys.prefix).resolve()) else None


def check_of(root: Path, target: str) -> str:
    """Return the command with which a person runs the target `doctor` or `live-check`, in an image too."""
    return command_of(root, target) or f"python -m app.{target.replace('-', '_')}"


def update_under_way(root: Path) -> str:
    """Return the sentences that say that an update is under way, and how one that was cut short is taken back."""
    if command := command_of(root, "update"):
        return f"An update is under way. If it was cut short, `{command}` takes it back."
    return "An update of another installation with this data is under way. If it was cut short, update there again."


class Journal:
    """A file that records what an update has changed so far, so that a start after a power cut can say what to do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, str]:
        """Return the recorded state; empty unless an update is under way or was interrupted."""
        try:
            return dict(json.loads(self.path.read_text()))
        except (FileNotFoundError, ValueError):
            return {}

    def write(self, state: Mapping[str, str]) -> None:
        """Replace the recorded state; it is on the disk when this returns."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        half = self.path.with_suffix(".part")
        # The address of a database contains a password.
        with open(half, "w", opener=private_files.opener) as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        half.replace(self.path)

    @property
    def open(self) -> bool:
        """Whether there is something to put back."""
        return self.read().get("phase", "done") != "done"

    @property
    def lock(self) -> Path:
        """The file that an update has open and locked while it runs."""
        return self.path.with_suffix(".lock")

    def clear(self) -> None:
        """Remove the file: nothing is left to put back."""
        self.path.unlink(missing_ok=True)


def journal(root: Path) -> Journal:
    """Return the journal of updates. It is found without settings, which a broken installation cannot read."""
    # The command of an installed wheel sets both.
    installed = os.environ.get("DATA_DIR") if os.environ.get("HOLDFAST_HOME") else None
    return Journal((Path(installed) if installed else root / "data") / "update.json")
