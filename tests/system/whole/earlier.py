"""An earlier version of the product from the repository's history, to run beside the present one."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

CLAIMING = "services/guilds/gateway/shards.py"
"""Versions without this file have a bot that claims no interactions."""


def earlier_version(directory: Path) -> Path:
    """Unpack an earlier version below the directory and return its root; skip the test where there is no history.

    It is the newest release before the present commit, or else the last version whose bot claims no interactions.
    """
    commit = _commit()
    if commit is None:
        pytest.skip("the history has no earlier version: this is not a clone, or one without its older commits")
    root = directory / "earlier"
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    root.mkdir()
    # Python's own module unpacks without a warning only from 3.11.4 on.
    subprocess.run(["tar", "--extract", "--directory", str(root)], input=packed, check=True)
    return root


def _commit() -> str | None:
    released = _git("tag", "--list", "v[0-9]*", "--sort=-version:refname", "--merged", "HEAD^").split()
    if released:
        return released[0]
    added = _git("log", "--diff-filter=A", "--format=%H", "--", CLAIMING).split()
    return (_git("rev-parse", "--verify", "--quiet", f"{added[-1]}^").strip() or None) if added else None


def _git(*arguments: str) -> str:
    """Return git's output, or nothing when it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True).stdout
