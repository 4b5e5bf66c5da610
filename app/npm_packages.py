"""Fetches the screens' npm packages in parallel with other set-up steps: `python3 -m app.npm_packages`.

Needs no Python package. Reflex recreates `.web` before it installs packages there, so they are fetched elsewhere and
moved in when Reflex gets to them. Reflex installs whatever is missing then.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator  # noqa: UP035  (also run by Pythons that are too old)

ROOT = Path(__file__).resolve().parents[1]


def fetch(npm: Path, root: Path = ROOT) -> bool:
    """Fetch what `reflex.lock` pins unless the screens have packages already; return whether anything was fetched."""
    home = root / "data" / "tools" / "screens"
    with _alone(root):
        if (root / ".web" / "node_modules").exists() or _is_whole(root):
            return False
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for file in (*_locks(root), root / ".npmrc"):
            shutil.copy(file, home)
        path = f"{npm.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        argv = [str(npm), "ci", "--legacy-peer-deps", "--prefer-offline"]
        subprocess.run(argv, cwd=home, env={**os.environ, "PATH": path}, check=True)
        (home / "fetched").write_text(_digest(root))
        return True


def move(root: Path = ROOT) -> bool:
    """Move the fetched packages into the build, waiting for a running fetch; return whether anything was moved."""
    home, there = root / "data" / "tools" / "screens", root / ".web" / "node_modules"
    if there.exists() or not there.parent.exists():
        return False
    with _alone(root):
        if not _is_whole(root):
            return False
        shutil.move(home / "node_modules", there)
        shutil.rmtree(home)
        return True


def _is_whole(root: Path) -> bool:
    stamp = root / "data" / "tools" / "screens" / "fetched"
    return stamp.exists() and stamp.read_text() == _digest(root)


def _digest(root: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in _locks(root))).hexdigest()


def _locks(root: Path) -> list[Path]:
    return [root / "reflex.lock" / "package.json", root / "reflex.lock" / "package-lock.json"]


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    lock = root / "data" / "tools" / "screens.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
