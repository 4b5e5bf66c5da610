"""`reflex run`, as Reflex's documentation shows it: what somebody who types it in this repository gets."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class _Quiet(argparse.ArgumentParser):
    """A parser that leaves complaints to Reflex."""

    def error(self, message: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Raise ValueError instead of ending the process."""
        raise ValueError(message)


def replacement(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the arguments for this Python that run the whole product, and what to add to the environment.

    None where `argv` is no `reflex run` of a whole app: a supervisor's own child, another command, one half alone.
    Reflex's own development server answers with the screens on one port and with the API on another, while a session,
    the API and the screens need one origin here; and its web process alone would lack bot, jobs and database.
    """
    by_name = argv and (Path(argv[0]).name == "reflex" or Path(argv[0]).parts[-2:] == ("reflex", "__main__.py"))
    if not by_name or list(argv[1:2]) != ["run"] or environment.get("HOLDFAST_SUPERVISED"):
        return None
    parser = _Quiet(add_help=False)
    parser.add_argument("--env", default="dev", type=str.lower)
    parser.add_argument("--frontend-port", "--backend-port", dest="port", type=int)
    parser.add_argument("--loglevel")
    parser.add_argument("--frontend-only", "--backend-only", dest="half", action="store_true")
    try:
        given, _ = parser.parse_known_args(argv[2:])
    except ValueError:
        return None
    if given.half or environment.get("REFLEX_FRONTEND_ONLY") or environment.get("REFLEX_BACKEND_ONLY"):
        return None
    added = {"PORT": str(given.port)} if given.port else {}
    if given.loglevel:
        added["LOGLEVEL"] = given.loglevel
    return ["-m", "app", "--build" if given.env == "prod" else "--dev"], added


def take_over() -> None:
    """Let the supervisor take this process's place where it is a `reflex run`; else return."""
    found = replacement(sys.argv, os.environ)
    if found is None:
        return
    arguments, added = found
    print(f"holdfast| reflex run: running the whole product instead (python {' '.join(arguments)})", flush=True)
    os.chdir(Path(__file__).resolve().parents[2])
    os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, **added})
