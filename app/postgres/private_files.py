"""Files and directories that only this account can read. Standard library only."""

import os
import stat
from pathlib import Path

UMASK = 0o077
_READ_OR_WRITTEN_BY_OTHERS = 0o066


def opener(path: str, flags: int) -> int:
    """Open a file for its owner alone, even if an earlier version made it readable; for `open(opener=…)`."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def directory(path: Path) -> None:
    """Make a directory that others cannot list; they can still pass through it if they could before.

    The account that runs PostgreSQL for root has to pass through.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _READ_OR_WRITTEN_BY_OTHERS:
        path.chmod(mode & ~_READ_OR_WRITTEN_BY_OTHERS)
