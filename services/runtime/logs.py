"""How every process writes its log: as text or JSON lines, with the request's name, and with secrets blacked out."""

import json
import logging
import re
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from services.core import request_ids
from settings import settings

_PARAMETERS = re.compile(
    r"""\b((?:session|code|state|access_token|refresh_token|client_secret|code_verifier)=)(?!\[redacted\])[^\s&"'#;,)}\]]+""",
    re.I,
)
_COOKIES = re.compile(r"\b((?:__Host-)?hf_(?:session|login)=)[^\s;\"',]+", re.I)
# In a header dump: `cookie: a=b; c=d`, `'cookie': 'a=b; c=d'`, `(b"cookie", b"a=b; c=d")`, `"cookie":"a=\"b\""`.
_HEADERS = re.compile(
    r"""((?:set-)?cookie|(?:proxy-)?authorization|x-session-id)(\\?["']?\s*[:=,]\s*)(?:b?(\\?["'])(?:(?!\3).)*\3|[^\r\n]*)""",
    re.I,
)
_SCHEMES = re.compile(r"\b((?:Bearer|Bot|Basic)\s+)[A-Za-z0-9._~+/=-]{16,}")


def set_up() -> None:
    """Write this process's log as LOG_FORMAT says, to its standard error; whatever wrote it before does no more."""
    redact_every_log()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings().log_format == "json" else Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # They tell of each single request or tick; what matters of it we say ourselves.
    for chatty in ("apscheduler", "nextcord", "httpx", "httpcore", "web3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def redact(text: str) -> str:
    """The text with session ids, OAuth codes and states, cookies and credentials replaced by `[redacted]`."""
    text = _HEADERS.sub(r"\1\2[redacted]", text)
    text = _COOKIES.sub(r"\1[redacted]", text)
    text = _PARAMETERS.sub(r"\1[redacted]", text)
    return _SCHEMES.sub(r"\1[redacted]", text)


def printable(text: str) -> str:
    """Return the text with every character escaped that a terminal would obey or hide, line breaks included."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def redact_every_log() -> None:
    """Black secrets out of all records of this process as they are made, tracebacks included. Safe to call twice.

    At the making, because filters of a logger do not see the records of its children, and other people's packages
    log whole events with their cookies.
    """
    present = logging.getLogRecordFactory()
    if getattr(present, "redacts", False):
        return

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = present(*args, **kwargs)
        with suppress(TypeError, ValueError):  # a format that does not fit its values: the handler says so itself
            record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = redact("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        record.request_id = request_ids.current()
        return record

    make.redacts = True  # pyright: ignore[reportFunctionMemberAccess]
    logging.setLogRecordFactory(make)


class Lines(logging.Formatter):
    """For people: level, logger, message, and the request's name in brackets where there is one."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line before any traceback."""
        name = getattr(record, "request_id", None)
        return super().formatMessage(record) + (f" [{name}]" if name else "")


class JsonLines(logging.Formatter):
    """For programs: one JSON object a line with time (ISO 8601), level, logger, message, requestId and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if name := getattr(record, "request_id", None):
            line["requestId"] = name
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)
