"""One instance for each data directory: the lock, its holder's published state, and processes that outlived it."""

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from app.postgres.process import is_alive

# Every process under a supervisor has this variable; its value is the data directory.
MARK = "HOLDFAST_RUN"


@dataclass(frozen=True)
class Running:
    """A supervisor's published state: process id, URL, its database's URL once that is migrated, and whether it has a
    web process.

    A restore or an update of the data publishes what it is in place of a URL: `a restore`, `an update`.
    """

    pid: int
    url: str
    database_url: str | None = None
    has_web: bool = True


class AlreadyRunning(Exception):
    """Raised when another supervisor, a restore or an update works on the same data directory."""

    def __init__(self, running: Running | None) -> None:
        self.running = running
        if running is None:
            said = "Holdfast already runs on the same data."
        elif "://" in running.url:
            said = f"Holdfast already runs at {running.url} (process {running.pid})."
        else:
            said = f"{running.url.capitalize()} is under way on the same data (process {running.pid})."
        super().__init__(said)


class Lock:
    """The lock on a data directory; the kernel releases it when the holder dies."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "supervisor.lock"
        self._file: IO[str] | None = None

    def take(self, running: Running, patience: float = 0.5) -> None:
        """Take the lock and publish our state. Raises AlreadyRunning; waits out the short lock of running()."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+")
        deadline = time.monotonic() + patience
        while not _locked(file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = _parse(file.read())
                file.close()
                raise AlreadyRunning(holder)
            time.sleep(0.02)
        self._file = file
        try:
            self.say(running)
        except OSError:
            with suppress(OSError):  # what could not be written fails again
                self.release()
            raise

    def say(self, running: Running) -> None:
        """Replace the published state. Raises OSError with the file's name, which a full disk's own error lacks."""
        assert self._file is not None, "take() comes first"
        try:
            self._file.seek(0)
            self._file.truncate()
            json.dump(asdict(running), self._file)
            self._file.flush()
        except OSError as fault:
            raise OSError(fault.errno, fault.strerror, str(self._path)) from None

    def release(self) -> None:
        """Release the lock."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def running(data_dir: Path) -> Running | None:
    """Return the state of the supervisor that works on this data directory; None if there is none.

    A supervisor that has not published its state yet is process 0 with an empty URL.
    """
    try:
        with (data_dir / "supervisor.lock").open("r+") as file:
            return None if _locked(file, fcntl.LOCK_SH) else _parse(file.read()) or Running(0, "")
    except FileNotFoundError:
        return None


def end_survivors(data_dir: Path, patience: float = 5.0) -> int:
    """End every process of an earlier run on this data directory; return how many there were.

    Call it only with the lock held: any process with the mark has then lost its supervisor.
    """
    mark = f"{MARK}={data_dir}".encode()
    first = _marked(mark)
    _signal(first, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(left, signal.SIGKILL)
    # A dying process loses its environment, by which `_marked` finds it, before its ports and files.
    while _marked(mark) or any(is_alive(pid) for pid in {*first, *left}):
        time.sleep(0.02)
    return len(first)


def _marked(mark: bytes) -> list[int]:
    """Return the ids of living processes (except this one) that have the mark in their environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it ended, or belongs to another account
            continue
    return found


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _locked(file: IO[str], how: int) -> bool:
    """Try to lock without waiting."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(text: str) -> Running | None:
    """Read a published state; None while it is being written."""
    try:
        return Running(**json.loads(text))
    except (ValueError, TypeError):
        return None
