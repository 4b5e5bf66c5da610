"""Paths that no route has: one with a line break is answered like any other, and one that is too long is refused."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.headers import refusal
from locales import N_
from services.runtime import rejected_requests

LONGEST = 8 * 1024
"""Bytes of a path and its query, of which ours have a quarter at most: a file is looked for by each part of a path."""


class OddPaths:
    """Keeps line breaks in paths percent-encoded ("%0A"), and refuses what is longer than LONGEST (414).

    It wraps Reflex's outermost router, whose route patterns end at a line, and whose bare refusal would lack our
    headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it before its path or query is read."""
        if _length(scope) > LONGEST:
            rejected_requests.count(f"{scope['type']} refused: a long address")
            answer = refusal(scope, 414, N_("The request is larger than {size}."), size=f"{LONGEST // 1024} KiB")
            # Its path may say of a page that it is a call, so the headers of neither are left to it.
            await answer({**scope, "path": "/", "query_string": b""}, receive, send)
            return
        path = scope.get("path", "")
        await self._app({**scope, "path": path.replace("\n", "%0A")} if "\n" in path else scope, receive, send)


def _length(scope: Scope) -> int:
    return len(scope.get("raw_path") or scope.get("path", "")) + len(scope.get("query_string", b""))
