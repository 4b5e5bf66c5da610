"""Limits of a request's size, and of the time in which it has to arrive."""

import asyncio
import re
from collections import Counter

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.requests.caller import known_caller
from app.http.caller_address import caller_address
from app.http.middleware import HttpMiddleware
from locales import _
from services.core.actors import Actor
from services.core.errors import NotSignedIn

LARGEST_BODY = 64 * 1024
"""Bytes; the largest rule has 40 leaves and takes a few thousand."""
LARGEST_LONG_BODY = 2 * 1024 * 1024
"""Bytes of a call that may contain a list of addresses, of which 20,000 take less than half, or a rules document."""
LISTS_AT_ONCE = 8
"""Calls beyond LARGEST_BODY whose bodies one process holds at a time."""
LISTS_OF_PERSON, LISTS_OF_ADDRESS = 2, 4
"""How many of them one person (with all tokens) and one address may have, so that slow bodies leave room for others."""
MOST_PARTS, MOST_VALUES = 2_000, 60_000
"""Objects and lists of a rule with a long body, and its commas: only its lists of addresses may be long. The largest
rule has a few hundred objects, and a body has room for fewer addresses."""
SLOWEST_BODY = 15.0
"""Seconds in which a body must arrive; a slower one would hold a place that others need."""
_RULE = re.compile(r"/api/verification-rules(?:/[0-9]{1,10}|/preview|/try|/reach)?")
_WITH_LONG_BODIES = re.compile(rf"{_RULE.pattern}|/api/servers/[0-9]{{1,10}}/(?:address-lists|import)")


class BodyLimit(HttpMiddleware):
    """Refuses a call whose body is larger than LARGEST_BODY, announced or not (413), or arrives too slowly (408).

    For signed-in people, calls that may contain a list of addresses or a document are read up to LARGEST_LONG_BODY.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._held = Counter[str]()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on while its body stays within the limit."""
        if not str(scope["path"]).startswith("/api/"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        is_number = announced.isascii() and announced.isdigit() and len(announced) <= 9
        length = int(announced) if is_number else LARGEST_LONG_BODY + 1
        if LARGEST_BODY < length <= LARGEST_LONG_BODY and (caller := await _with_long_body_from(scope)) is not None:
            await self._with_list(caller, scope, receive, send)
        elif length > LARGEST_BODY:
            await _too_large(LARGEST_BODY)(scope, receive, send)
        else:
            await self._within(LARGEST_BODY, scope, receive, send)

    async def _with_list(self, caller: Actor, scope: Scope, receive: Receive, send: Send) -> None:
        places = {
            "all": LISTS_AT_ONCE,
            f"user:{caller.user_id}": LISTS_OF_PERSON,
            f"address:{caller_address(scope)}": LISTS_OF_ADDRESS,
        }
        if any(self._held[key] >= most for key, most in places.items()):
            answer = {"message": _("Other lists are being read right now. Please try again in a few seconds.")}
            await JSONResponse(answer, status_code=429, headers={"Retry-After": "3"})(scope, receive, send)
            return
        self._held.update(places.keys())
        try:
            await self._within(LARGEST_LONG_BODY, scope, receive, send)
        finally:
            # The difference drops keys at 0, so the counter does not grow with each caller.
            self._held = self._held - Counter(places.keys())

    async def _within(self, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _too_large(most)
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                body = await _read(receive, most)
        except TimeoutError:
            body, refusal = None, JSONResponse({"message": _("The request took too long to arrive.")}, status_code=408)
        except _Unreadable:
            body, refusal = None, JSONResponse({"message": _("The request's body is malformed.")}, status_code=400)
        if body is not None and len(body) > LARGEST_BODY and _has_other_than_lists(str(scope["path"]), body):
            body, refusal = None, _too_large(LARGEST_BODY)
        if body is None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


class _Unreadable(Exception):
    """Raised when a body ended too early: its sender hung up, or it is not encoded as its headers say.

    The web server does not say which of the two. An answer to a sender who hung up is lost, but without any answer the
    web server sends its own, a 500 without a request id.
    """


def _too_large(most: int) -> JSONResponse:
    size = f"{most // 1024} KiB" if most < 1024 * 1024 else f"{most // 1024 // 1024} MiB"
    return JSONResponse({"message": _("The request is larger than {size}.").format(size=size)}, status_code=413)


def _has_other_than_lists(path: str, body: bytes) -> bool:
    """Return whether a rule is long by something else than its lists of addresses, before anything is parsed.

    Each of half a million values takes time in several steps, also for people who run no server.
    """
    if not _RULE.fullmatch(path):
        return False
    return body.count(b"[") + body.count(b"{") > MOST_PARTS or body.count(b",") > MOST_VALUES


async def _with_long_body_from(scope: Scope) -> Actor | None:
    """Return the caller if the call may contain a list of addresses or a document; None for any other call.

    Also None if the caller is not signed in.
    """
    if scope["method"] not in {"POST", "PATCH"} or not _WITH_LONG_BODIES.fullmatch(str(scope["path"])):
        return None
    try:
        return await known_caller(Request(scope))
    except NotSignedIn:
        return None


async def _read(receive: Receive, most: int) -> bytes | None:
    """Return the whole body, or None as soon as it is too large. Raises _Unreadable."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Unreadable
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that repeats the body that was read, and then passes on the rest."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
