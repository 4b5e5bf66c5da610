"""The output of `python -m app`: its own lines and those of its processes, as text or JSON."""

import json
import sys
from datetime import UTC, datetime

from settings import settings

OURSELVES = "holdfast"


def say(text: str) -> None:
    """Print a line of the supervisor."""
    repeat(OURSELVES, text)


def repeat(process: str, text: str) -> None:
    """Print one line of a process's output."""
    sys.stdout.write((as_json(process, text) if settings().log_format == "json" else f"{process:<8}| {text}") + "\n")
    sys.stdout.flush()


def as_json(process: str, text: str) -> str:
    """Return the line as a JSON object with the process's name; a line that is not our log becomes its message."""
    try:
        line = json.loads(text)
    except ValueError:
        line = None
    if not isinstance(line, dict) or "message" not in line:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "INFO", "message": text}
    return json.dumps({**line, "process": process}, ensure_ascii=False)
