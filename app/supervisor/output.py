"""The output of `python -m app`: its own lines and those of its processes, as text or JSON."""

import errno
import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

from settings import settings

OURSELVES = "holdfast"
_NO_READER = frozenset({errno.EPIPE, errno.EIO})
"""The errors of an output that nobody reads any more: a pipe, and a terminal that was closed."""


def say(text: str) -> None:
    """Print a line of the supervisor."""
    repeat(OURSELVES, text)


def repeat(process: str, text: str) -> None:
    """Print one line of a process's output. A line that cannot be printed is lost.

    What the output's encoding lacks is escaped: an error here would stop the reading of that process's output.
    """
    line = as_json(process, text) if settings().log_format == "json" else f"{process:<8}| {text}"
    encoding = sys.stdout.encoding or "utf-8"
    line = line.encode(encoding, "backslashreplace").decode(encoding)
    with suppress(OSError):
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except OSError as fault:
            if fault.errno in _NO_READER:
                _print_nowhere()


def _print_nowhere() -> None:
    """Discard the output, whose reader is gone: what is still buffered, later output, and that of later children."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def as_json(process: str, text: str) -> str:
    """Return the line as a JSON object with the process's name; a line that is not our log becomes its message."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or "message" not in line:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "INFO", "message": text}
    return json.dumps({**line, "process": process}, ensure_ascii=False)
