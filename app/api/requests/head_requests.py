"""HEAD for the calls that GET reads: the same answer without its body (RFC 9110, section 9.3.2)."""

import re
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware import HttpMiddleware

ACTS = re.compile(
    r"/api/auth/(?:discord|discord/connect|discord/callback|logout)|/api/wallet-challenge"
    r"|/api/servers/[^/]+/(?:export|members\.csv|payout\.csv|rules\.json|events/[^/]+/undo)"
)
"""Paths whose GET does more than read: it signs somebody in or out, watches a wallet, locks rows, or puts into the
log that somebody has downloaded a file. HEAD, which people and programs take for harmless, gets a 405 there."""
_WITHOUT_BODY = "holdfast.without_body"
_ELSEWHERE = frozenset({"/health", "/health/deep", "/metrics"})


def is_read(path: str) -> bool:
    """Return whether HEAD is answered as GET at this path, if there is a call."""
    return (path.startswith("/api/") or path in _ELSEWHERE) and ACTS.fullmatch(path) is None


def wants_body(request: HTTPConnection) -> bool:
    """Return whether the body of the answer is sent: not for HEAD, where a call may leave out what only fills it."""
    return not request.scope.get(_WITHOUT_BODY, False)


class HeadRequests(HttpMiddleware):
    """Runs the GET call for HEAD, with its rights and limits, and sends the status and the headers alone.

    An answer without a length is read page by page while it is sent: such a call is left before its first page.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, HEAD as GET."""
        if scope["method"] != "HEAD" or not is_read(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] != "http.response.start":
                return
            await send(message)
            await send({"type": "http.response.body", "body": b""})
            if "content-length" not in Headers(raw=message["headers"]):
                raise _Answered

        with suppress(_Answered):
            await self._app({**scope, "method": "GET", _WITHOUT_BODY: True}, receive, without_body)


class _Answered(Exception):
    """Raised inside a call whose body nobody wants, once its headers are sent."""
