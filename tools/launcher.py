"""The command `holdfast` of an installed wheel, where this file is `holdfast/__main__.py`.

Settings are read from `.env` in the present directory, and everything that changes is kept in `data` beside it, or in
the directory that DATA_DIR names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dotenv import dotenv_values

HOME = Path(__file__).resolve().parent / "product"
COMMANDS = {
    "run": (("app",), "start everything on this machine, until Ctrl+C"),
    "doctor": (("app.doctor",), "what a start still lacks, and how to get it"),
    "live-check": (("app.live_check",), "ask the real Discord, OpenSea and nodes with your keys, reading only"),
    "backup": (("app.backup", "make"), "the database in one file, in data/backups or at FILE"),
    "restore": (("app.backup", "restore"), "the database of such a FILE; --force puts the present one aside"),
    "psql": (("app.backup", "psql"), "PostgreSQL's prompt on the database, also while nothing runs"),
    "update": (
        ("app.supervisor.update",),
        "the wheel at FILE or its URL instead of this, and back if it does not work",
    ),
    "sweep": (("jobs", "sweep", "--now"), "a sweep over everybody, at once"),
}
FILES = frozenset({"backup", "restore", "update"})
"""Commands whose arguments name files, relative to the directory where the command is typed."""


def main(arguments: list[str] | None = None) -> int:
    """Replace this process by the requested command; return 2 with a help text if it is unknown, 1 if it cannot run."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["help"]
    if name not in COMMANDS:
        print("holdfast COMMAND, in a directory with your .env:\n")
        print("\n".join(f"  {command:<11} {text}" for command, (_, text) in COMMANDS.items()))
        return 0 if name in {"help", "--help", "-h"} else 2
    if not sys.platform.startswith("linux"):
        print(f"Holdfast runs on Linux and not on {sys.platform}; on Windows, WSL is one.")
        return 1
    if name in FILES:
        rest = [_absolute(word) for word in rest]
    if name == "backup" and rest and not rest[0].startswith("-"):
        rest = ["--to", *rest]
    here = Path.cwd()
    try:
        usual, named = here / "data", _data_dir(here / ".env")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        print(f"{here / '.env'} cannot be read: {reason}.")
        return 1
    data = _in_a_home(here, os.environ.get("DATA_DIR") or named or str(usual))
    # Earlier versions did not read DATA_DIR in `.env`: do not start without the data that they left in `data`.
    if not os.environ.get("DATA_DIR") and (usual / "live").exists() and not (data / "live").exists():
        print(f"DATA_DIR in .env is {data}, but your data is in {usual}: move it there, or take DATA_DIR out of .env.")
        return 1
    # Under a locale with Latin-1 the built screens would be read wrongly.
    own = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    environment = {**own, **os.environ, "DATA_DIR": str(data), "HOLDFAST_HOME": str(here)}
    os.chdir(HOME)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", *COMMANDS[name][0], *rest], environment)
    return 0  # for tests, which replace nothing


def _absolute(word: str) -> str:
    """Return an argument with its file's absolute path, also in `--to=FILE`; options and URLs stay as they are."""
    option, equals, file = word.partition("=") if word.startswith("--") else ("", "", word)
    if not file or file.startswith("-") or "://" in file:
        return word
    return f"{option}{equals}{Path(file).absolute()}"


def _in_a_home(here: Path, named: str) -> Path:
    """Return an absolute path, with `~` as a home directory unless there is a directory of that name (settings.py)."""
    return here / (named if (here / named).exists() else os.path.expanduser(named))


def _data_dir(file: Path) -> str:
    """Return DATA_DIR of an env file, read as the settings read it; an empty text if it is not set there."""
    return {name.upper(): value for name, value in dotenv_values(file).items()}.get("DATA_DIR") or ""


if __name__ == "__main__":
    sys.exit(main())
