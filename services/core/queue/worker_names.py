"""Names of workers, from which a process can tell that the holder of a lease no longer exists."""

import hashlib
import os
import secrets
import socket
from functools import cache
from pathlib import Path

_PLACES = (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid"))
"""Their contents differ between machines with the same host name, and between containers on one machine."""
_OURS: set[str] = set()
"""The names that this process has made: one process runs several workers."""


@cache
def machine() -> str:
    """Return an identifier of the machine or container within which process ids are unique."""
    seen = [socket.gethostname()]
    for path in _PLACES:
        try:
            seen.append(os.readlink(path) if path.is_symlink() else path.read_text())
        except OSError:
            seen.append("")
    return hashlib.sha256("|".join(seen).encode()).hexdigest()[:16]


def worker_name() -> str:
    """Return a name that no other process has, even after a restart with the same process id."""
    name = f"{machine()}:{os.getpid()}:{secrets.token_hex(4)}"
    _OURS.add(name)
    return name


def is_dead(worker: str) -> bool:
    """Return whether the worker was in a process of this machine that no longer exists.

    A worker with the id of the current process and a name that this process did not make is dead: it belonged to an
    earlier process with that id.
    """
    place, _, rest = worker.rpartition(":")[0].rpartition(":")
    if place != machine() or not rest.isdigit():
        return False
    if int(rest) == os.getpid():
        return worker not in _OURS
    return not is_running(int(rest))


def is_running(pid: int) -> bool:
    """Return whether this machine has a process with that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
