"""Replaces `reflex run`, the command of Reflex's documentation, by the whole product."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class _Quiet(argparse.ArgumentParser):
    """A parser that leaves error messages to Reflex."""

    def error(self, message: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Raise ValueError instead of ending the process."""
        raise ValueError(message)


def replacement(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the arguments for this Python that run the whole product, and what to add to the environment.

    None unless `argv` is a `reflex run` of a whole app that no supervisor started.
    Reflex's development server uses one port for the screens and another for the API, but our sessions need one origin.
    It would also start without bot, jobs and database.
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
    """Replace this process by the supervisor if it is a `reflex run`; otherwise return."""
    found = replacement(sys.argv, os.environ)
    if found is None:
        return
    arguments, added = found
    print(f"holdfast| reflex run: running the whole product instead (python {' '.join(arguments)})", flush=True)
    os.chdir(Path(__file__).resolve().parents[2])
    os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, **added})
