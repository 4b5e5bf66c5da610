"""Directories with short paths, in memory where there is room, that are removed even if the test run is killed.

Run as a program, it is the watchdog that removes them then: one process for all directories of a test process.
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

import pytest

from app.postgres.memory import memory_bytes
from app.supervisor.single_instance import end_survivors

ROOT = Path(__file__).resolve().parents[3]
ROOM_BYTES = 12 * 2**30
"""Memory that the machine and its `/dev/shm` must have for the tests' directories to be put there."""


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """An empty directory with a short path that other accounts can be given access to (pytest's own cannot)."""
    with temporary_dir() as directory:
        yield directory


@contextmanager
def temporary_dir() -> Iterator[Path]:
    """Yield a directory that is removed afterwards, even if this process is killed; a database in it is ended first."""
    directory, watchdog = Path(tempfile.mkdtemp(prefix="hf-", dir=_place())), _watchdog()
    print(f"+{directory}", file=watchdog, flush=True)
    try:
        yield directory
    finally:
        remove(directory)
        print(f"-{directory}", file=watchdog, flush=True)


def remove(directory: Path) -> None:
    """End the processes that were started for a directory and its database, and remove it."""
    with suppress(OSError):  # a system without /proc
        end_survivors(directory, patience=2)
    with suppress(OSError, ValueError):
        with (directory / "db" / "cluster" / "postmaster.pid").open() as file:
            server = int(file.readline())
        os.kill(server, signal.SIGQUIT)
    shutil.rmtree(directory, ignore_errors=True)


@cache
def _place() -> Path:
    """Return where temporary directories go: in memory if there is enough, since databases create many files."""
    disk, memory = Path("/tmp"), Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        return disk
    there = os.statvfs(memory)
    roomy = min(there.f_bavail * there.f_frsize, memory_bytes()) >= ROOM_BYTES
    return memory if roomy and not there.f_flag & os.ST_NOEXEC else disk


@cache
def _watchdog() -> IO[str]:
    """Start this process's watchdog, and return its input."""
    watchdog = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, text=True, start_new_session=True
    )
    atexit.register(watchdog.communicate)
    assert watchdog.stdin is not None
    return watchdog.stdin


def watch(said: IO[str]) -> None:
    """Read which directories are in use (`+…`) and which are removed (`-…`); at the end, remove those left."""
    left = set[str]()
    for line in said:
        (left.add if line[0] == "+" else left.discard)(line[1:].rstrip("\n"))
    for directory in left:
        remove(Path(directory))


if __name__ == "__main__":
    watch(sys.stdin)
