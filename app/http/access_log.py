"""A log line for each request, with the request id that the answer carries as X-Request-Id."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware import HttpMiddleware
from services.core import request_ids
from services.runtime import rejected_requests
from services.runtime.logs import printable, redact

LONGEST = 300
"""Characters of a URL that a line shows."""
LONGEST_METHOD = 20
"""Characters of a method; a client may invent one of any length."""
HEALTH = "/health"
_access = logging.getLogger("holdfast.access")


class AccessLog(HttpMiddleware):
    """Gives each request an id, or keeps the one a proxy gave it; logs method, path, status, milliseconds.

    A check of the health has a line only when its status changes: supervisors and monitors repeat it every few seconds,
    and while something is wrong these lines would hide what the processes say about it.
    """

    _health: int | None = None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and log its result. Refused requests with long URLs are only counted."""
        name = request_ids.begin(request_ids.usable(Headers(scope=scope).get("x-request-id")))
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
            # Cut before redacting and again before writing, so that a long URL costs little.
            asked = (scope["path"] + (f"?{query}" if query else ""))[: 10 * LONGEST]
            if len(asked) > LONGEST and 400 <= status < 500:
                # None of our links is so long, and a stranger must not fill the log with such URLs.
                rejected_requests.count("request refused: a long address")
            elif asked != HEALTH or self._is_news(status):
                asked = printable(redact(asked))[:LONGEST]
                # A 503 has been logged where it arose.
                level = logging.WARNING if status >= 500 and status != 503 else logging.INFO
                method = scope["method"][:LONGEST_METHOD]
                _access.log(level, "%s %s %s %.0f ms", method, asked, status, milliseconds)

    def _is_news(self, status: int) -> bool:
        """Note the status of a check of the health; return whether the one before had another."""
        before, self._health = self._health, status
        return status != before
