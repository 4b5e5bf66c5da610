"""The output of `python -m app`: its own lines and those of its processes, as text or JSON."""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime

from app.supervisor.system import NO_READER, discard_output
from settings import settings

OURSELVES = "holdfast"


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
            if fault.errno in NO_READER:
                discard_output()


def as_json(process: str, text: str) -> str:
    """Return the line as a JSON object with the process's name; a line that is not our log becomes its message."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or "message" not in line:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "INFO", "message": text}
    return json.dumps({**line, "process": process}, ensure_ascii=False)
