"""Print what CHANGELOG.md says about a version, for its release: `python3 -m tools.release.notes VERSION`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class NotReleasable(Exception):
    """Raised when the files do not describe this version; the text says what is missing."""


def notes(version: str, changelog: str, project: str) -> str:
    """Return the changelog's section of a version, without its heading. Raises NotReleasable."""
    own = tomllib.loads(project)["project"]["version"]
    if own != version:
        raise NotReleasable(f"pyproject.toml has the version {own}, not {version}.")
    found = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if found is None or not found[1].strip():
        raise NotReleasable(f"CHANGELOG.md has no section `## [{version}] - <date>` with changes.")
    return found[1].strip() + "\n"


def main(arguments: list[str]) -> int:
    """Print the notes; return 1 with a sentence if there are none."""
    if len(arguments) != 1:
        print("Which version? python3 -m tools.release.notes 1.2.3", file=sys.stderr)
        return 2
    try:
        print(notes(arguments[0], (ROOT / "CHANGELOG.md").read_text(), (ROOT / "pyproject.toml").read_text()), end="")
    except NotReleasable as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
