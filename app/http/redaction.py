"""Logs without secrets: a line per request, and every record of every logger with its secrets blacked out."""

import logging
import re
import secrets
import time
import traceback
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Names the request under way, in its log lines and in the answer's X-Request-Id."""

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
_access = logging.getLogger("holdfast.access")


def redact(text: str) -> str:
    """The text with session ids, OAuth codes and states, cookies and credentials replaced by `[redacted]`."""
    text = _HEADERS.sub(r"\1\2[redacted]", text)
    text = _COOKIES.sub(r"\1[redacted]", text)
    text = _PARAMETERS.sub(r"\1[redacted]", text)
    return _SCHEMES.sub(r"\1[redacted]", text)


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
        record.request_id = request_id.get()
        return record

    make.redacts = True  # pyright: ignore[reportFunctionMemberAccess]
    logging.setLogRecordFactory(make)


class AccessLog:
    """Gives each request a name and logs one line about it: method, path, status, milliseconds."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and log how it ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = secrets.token_hex(6)
        token = request_id.set(name)
        status, began = 500, time.perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = name
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            milliseconds = (time.perf_counter() - began) * 1000
            query = scope.get("query_string", b"").decode("latin-1")
            asked = redact(scope["path"] + (f"?{query}" if query else ""))
            # 503 says that somebody else is away: whoever noticed has logged it, and /health repeats it by the second.
            level = logging.WARNING if status >= 500 and status != 503 else logging.INFO
            _access.log(level, "%s %s %s %.0f ms [%s]", scope["method"], asked, status, milliseconds, name)
            request_id.reset(token)
