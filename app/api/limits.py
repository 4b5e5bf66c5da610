"""How much a request may send."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 * 1024
"""Bytes; the largest rule has 40 leaves and takes a few thousand."""


class BodyLimit:
    """Refuses (413) a call whose body is larger than LARGEST_BODY, announced or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on while its body stays within the limit."""
        if scope["type"] != "http" or not str(scope["path"]).startswith("/api/"):
            await self._app(scope, receive, send)
            return
        refusal = JSONResponse({"message": "The request is larger than 64 KiB."}, status_code=413)
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdigit() or len(announced) > 9 or int(announced) > LARGEST_BODY:
            await refusal(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > LARGEST_BODY:
                await refusal(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        await self._app(scope, _replayed(bytes(body), receive), send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once more; afterwards whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
