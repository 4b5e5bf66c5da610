"""How much a request may send, in which time, and how often one address may call."""

import asyncio

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.requests.problems import told
from app.api.requests.rates import limits_of_address
from app.http.proxies import caller_address
from services.core.errors import TooMany
from services.runtime import rate_limits
from services.runtime.rate_limits import SIGN_INS

LARGEST_BODY = 64 * 1024
"""Bytes; the largest rule has 40 leaves and takes a few thousand."""
SLOWEST_BODY = 15.0
"""Seconds; a body that takes longer holds a place that others need."""
_LEAVING = frozenset({"/api/auth/discord", "/api/auth/discord/connect"})
_RETURNING = "/api/auth/discord/callback"


class BodyLimit:
    """Refuses (413) a call whose body is larger than LARGEST_BODY, announced or not, or (408) too slow to come."""

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
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                body = await _read(receive)
        except TimeoutError:
            body, refusal = None, JSONResponse({"message": "The request took too long to arrive."}, status_code=408)
        except _Unreadable:
            body, refusal = None, JSONResponse({"message": "The request's body is malformed."}, status_code=400)
        if body is None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


class _Unreadable(Exception):
    """The body has ended too early: its sender hung up, or it is not encoded as its headers say.

    The server below does not say which of the two. What is answered to somebody who hung up goes nowhere; without an
    answer the server makes one of its own, a 500 without a number.
    """


async def _read(receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it is too large. Raises _Unreadable."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Unreadable
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once more; afterwards whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


class AddressLimits:
    """Refuses (429, Retry-After) what comes too often from one address, before anything of it is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the request, and pass it on unless it was one too many."""
        path: str = scope.get("path", "")
        if scope["type"] == "http" and path.startswith("/api/"):
            try:
                await _count(scope["method"], path, caller_address(scope))
            except TooMany as refused:
                await told(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _count(method: str, path: str, address: str) -> None:
    if path in _LEAVING:
        await rate_limits.spend_for_address(SIGN_INS, address, share=1)
    elif path == _RETURNING:
        await rate_limits.spend_for_address(SIGN_INS, f"{address} back", share=1)
    for limit in limits_of_address(method, path):
        await rate_limits.spend_for_address(limit, address)
