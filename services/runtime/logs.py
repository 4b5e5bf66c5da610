"""The log of every process: text or JSON lines with the request's id, and with secrets redacted."""

import json
import logging
import re
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from gateways.transport.errors import ACCOUNTS
from services.core import request_ids
from settings import settings, version

_SECRET = "session|code|state|access_token|refresh_token|client_secret|code_verifier"
# Personal data: a member's wallet, and the text that an admin searches for in the list of members.
_PERSONAL = "address|wallet|query"
_PARAMETERS = re.compile(rf"""\b((?:{_SECRET}|{_PERSONAL})=)(?!\[redacted\])[^\s&"'#;,)}}\]]+""", re.I)
_COOKIES = re.compile(r"\b((?:__Host-)?hf_(?:session|login)=)[^\s;\"',]+", re.I)
# In a header dump: `cookie: a=b; c=d`, `'cookie': 'a=b; c=d'`, `(b"cookie", b"a=b; c=d")`, `"cookie":"a=\"b\""`.
_HEADERS = re.compile(
    r"""((?:set-)?cookie|(?:proxy-)?authorization|x-session-id)(\\?["']?\s*[:=,]\s*)(?:b?(\\?["'])(?:(?!\3).)*\3|[^\r\n]*)""",
    re.I,
)
# An API token or a webhook's secret, which a program may put anywhere, an address for example.
_TOKENS = re.compile(r"\b(hf_|whsec_)[A-Za-z0-9_-]{43}")
_SCHEMES = re.compile(r"\b((?:Bearer|Bot|Basic)\s+)[A-Za-z0-9._~+/=-]{16,}")
LOGGED_EVERY = 600.0
"""Seconds between two lines about a failure that comes again and again; Health shows the newest at once."""


def set_up() -> None:
    """Write this process's log to standard error in the format LOG_FORMAT, replacing earlier handlers."""
    redact_every_log()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings().log_format == "json" else Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # These log every request or tick; we log the ones that matter.
    for chatty in ("apscheduler", "nextcord", "httpx", "httpcore", "web3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Without a level these add a handler of their own, which writes each line once more and without our format.
    for own in ("engineio.server", "socketio.server"):
        logging.getLogger(own).setLevel(logging.ERROR)


def note_start(part: str) -> None:
    """Log that a process has started, with the product's version."""
    logging.getLogger("holdfast").info("started %s version=%s", part, version())


def redact(text: str) -> str:
    """Return the text with session ids, OAuth codes and states, cookies, tokens and wallets in URLs redacted."""
    text = _HEADERS.sub(r"\1\2[redacted]", text)
    text = _COOKIES.sub(r"\1[redacted]", text)
    text = _PARAMETERS.sub(r"\1[redacted]", text)
    text = _TOKENS.sub(r"\1[redacted]", text)
    return _SCHEMES.sub(r"\1[redacted]", text)


def without_addresses(text: str) -> str:
    """Return the text with every EVM and Solana address replaced: a fault's message may quote a member's wallet."""
    return ACCOUNTS.sub("[address]", text)


def printable(text: str) -> str:
    """Return the text with control and invisible characters escaped, line breaks included."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def redact_every_log() -> None:
    """Redact secrets in every log record of this process, and wallets in tracebacks. Safe to call twice.

    Records are redacted at creation, because a logger's filters miss the records of its children, and other packages
    log whole events with their cookies.
    """
    present = logging.getLogRecordFactory()
    if getattr(present, "redacts", False):
        return

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = present(*args, **kwargs)
        with suppress(TypeError, ValueError):  # the format does not fit its values: the handler reports that
            record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and record.exc_info[1] is not None:
            lines = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
            record.exc_text = without_addresses(redact(lines))
        record.request_id = request_ids.current()
        return record

    make.redacts = True  # pyright: ignore[reportFunctionMemberAccess]
    logging.setLogRecordFactory(make)


class Lines(logging.Formatter):
    """Text lines for people: level, logger, message, and the request's id in brackets if there is one."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line that precedes any traceback."""
        name = getattr(record, "request_id", None)
        return super().formatMessage(record) + (f" [{name}]" if name else "")


class JsonLines(logging.Formatter):
    """One JSON object a line: time (ISO 8601), level, logger, message, requestId and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON line."""
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


class RareWarnings:
    """The failures of one kind in one part; the first is logged, and then one of them in each LOGGED_EVERY seconds.

    While a provider is down for a day, all polls of it fail, up to one a second.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log: logging.Logger = log
        self._logged_at = float("-inf")
        self._count = 0

    def add(self, said: str, *arguments: object) -> None:
        """Count a failure; when a line is due, log it with the number of failures since the last line."""
        self._count += 1
        if monotonic() - self._logged_at >= LOGGED_EVERY:
            self._log.warning(f"{said} times=%d", *arguments, self._count)
            self._logged_at, self._count = monotonic(), 0

    def logged(self) -> None:
        """Note that the failure was just logged elsewhere, in full."""
        self._logged_at, self._count = monotonic(), 0
