"""Names of workers, by which a process sees that the holder of a lease no longer exists."""

import os
import secrets
import socket


def worker_name() -> str:
    """Return a name that no other process has, even after a restart with the same process id."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def is_dead(worker: str) -> bool:
    """Return whether the worker was a process of this machine that no longer exists."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return int(rest) == os.getpid()
