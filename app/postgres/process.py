"""PostgreSQL processes on this machine, and whether a `postmaster.pid` is still true."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Postmaster:
    """The contents of a `postmaster.pid`: the server's process id, its port, the directory of its socket, its state."""

    pid: int
    port: int
    socket_dir: Path
    state: str = ""


def read_pid_file(cluster: Path) -> Postmaster | None:
    """Read this cluster's `postmaster.pid`; None if it is missing or half written.

    The lines are those of PostgreSQL's `miscadmin.h`: pid, data directory, start time, port, socket directory, ...
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        state = lines[7].strip() if len(lines) > 7 else ""  # the server adds this line last
        return Postmaster(pid=abs(int(lines[0])), port=int(lines[3]), socket_dir=Path(lines[4]), state=state)
    except (FileNotFoundError, ValueError, IndexError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether the process is running; a zombie, for which its parent has yet to wait, is not."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def serves(pid: int, cluster: Path) -> bool:
    """Return whether this process is alive and is a PostgreSQL server of exactly this cluster."""
    if not is_alive(pid):
        return False
    try:
        return Path(os.readlink(PROC / str(pid) / "cwd")) == cluster.resolve() and _is_postgres(pid)
    except PermissionError:
        # Another user's process: only its command line is readable.
        return _is_postgres(pid) and str(cluster).encode() in _command_line(pid).split(b"\0")
    except OSError:
        return False


def orphans(cluster: Path) -> list[int]:
    """Return the ids of all PostgreSQL processes of this cluster, servers and left-over backends."""
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if serves(pid, cluster)]


def end_orphans(cluster: Path, patience: float = 3.0) -> list[int]:
    """Wait for backends of a killed server to end, then kill the rest; return the ids of those killed.

    A new server must not touch the files while an old backend still may. PostgreSQL's own check for this is lost with a
    stale `postmaster.pid`.
    """
    deadline = time.monotonic() + patience
    while (left := orphans(cluster)) and time.monotonic() < deadline:
        time.sleep(0.05)
    killed = list(left)
    for pid in killed:
        _kill(pid)
    while orphans(cluster):
        time.sleep(0.02)
    return killed


def remove_stale_files(cluster: Path, said: Postmaster | None, socket_dir: Path) -> None:
    """Remove the pid file of a dead server, with its socket and the socket's lock file."""
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    directories = {socket_dir} | ({said.socket_dir} if said else set())
    for directory in directories:
        name = f".s.PGSQL.{said.port if said else 5432}"
        (directory / name).unlink(missing_ok=True)
        (directory / f"{name}.lock").unlink(missing_ok=True)


def _command_line(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _is_postgres(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "comm").read_text().strip() == "postgres"
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
