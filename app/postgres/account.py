"""The system account that runs PostgreSQL (which refuses to run as root), and its access to the files it needs."""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACCOUNT = "holdfast-db"
FALLBACKS = ("postgres", "nobody")

Say = Callable[[str], None]


class NoDatabaseAccount(Exception):
    """Raised when we run as root and no account can run PostgreSQL."""


@dataclass(frozen=True)
class DatabaseAccount:
    """The account that runs PostgreSQL; `switch` is true if it differs from this process's."""

    name: str
    uid: int
    gid: int
    switch: bool

    @property
    def identity(self) -> dict[str, object]:
        """Keyword arguments for subprocess that run a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}


def account_for(directory: Path, say: Say) -> DatabaseAccount:
    """Return the account to run the PostgreSQL in `directory`.

    An ordinary user runs it under their own account. Root uses the owner of existing files, otherwise a separate
    account that is created on the first start. Raises NoDatabaseAccount when none can be found or created.
    """
    if os.geteuid() != 0:
        return DatabaseAccount(_name(os.geteuid()), os.geteuid(), os.getegid(), switch=False)
    cluster = directory / "cluster"
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return DatabaseAccount(_name(owner.st_uid), owner.st_uid, owner.st_gid, switch=True)
    if not _exists(ACCOUNT):
        with _alone():
            if not _exists(ACCOUNT):
                _create(ACCOUNT, say)
    for name in (ACCOUNT, *FALLBACKS):
        if _exists(name):
            entry = pwd.getpwnam(name)
            return DatabaseAccount(name, entry.pw_uid, entry.pw_gid, switch=True)
    raise NoDatabaseAccount(
        f"PostgreSQL refuses to run as root, and the account {ACCOUNT!r} could not be created. "
        "Run as an ordinary user, or set DATABASE_URL to a PostgreSQL of your own."
    )


def give(directory: Path, account: DatabaseAccount) -> None:
    """Make a private directory (mode 0700) owned by the account."""
    directory.mkdir(parents=True, exist_ok=True)
    if account.switch:
        os.chown(directory, account.uid, account.gid)
    directory.chmod(0o700)


def open_way(path: Path, say: Say) -> None:
    """Let other accounts pass through the directories above `path`: add o+x where it is missing, nothing else."""
    for directory in reversed(path.resolve().parents):
        mode = directory.stat().st_mode
        if not mode & stat.S_IXOTH:
            directory.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
            say(f"added o+x to {directory}, so that the database's account can pass through (it cannot list it)")


def open_programs(directories: list[Path], say: Say) -> None:
    """Let other accounts read and run PostgreSQL's programs, which a strict umask at installation may prevent."""
    for directory in directories:
        open_way(directory, say)
        for path in [directory, *directory.rglob("*")]:
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
            if wanted != mode and not path.is_symlink():
                path.chmod(wanted)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process of ours creates the account.

    Two simultaneous `useradd` of one name may both succeed. The second then replaces the user id of the first, and a
    process that has read that id runs as no existing account. The lock is on the directory of the accounts, so no file
    is left behind.
    """
    directory = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _create(name: str, say: Say) -> None:
    """Create a system account without home and login. If that fails (a read-only /etc), a fallback is used."""
    if program := shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        command = [program, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    elif program := shutil.which("adduser", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        command = [program, "-S", "-D", "-H", "-s", "/sbin/nologin", name]  # BusyBox's form
    else:
        return
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        say(f"created the system account {name}, which owns the database's files (PostgreSQL refuses to run as root)")
