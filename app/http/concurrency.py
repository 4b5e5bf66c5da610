"""Limits how many requests of one address run at once."""

import asyncio

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http import languages
from app.http.caller_address import caller_address
from app.http.headers import SecurityHeaders
from app.http.middleware import HttpMiddleware
from gateways.transport.fair_turns import FairGate, on_behalf_of
from locales import _
from services.accounts import sessions

AT_ONCE = 4
"""Requests of one address that run at once; all other people compete with them for processor and database."""
OF_ONE_SESSION = 3
"""How many of them one session may have, so that one person cannot block others behind the same address."""
MOST_WAITING = 1_000
"""Waiting requests of one address; each keeps a body, nearly always of at most 64 KiB."""
TURN_SECONDS = 1.0
"""A request that takes longer is waiting for another service, and frees its place."""


class AddressConcurrency(HttpMiddleware):
    """Runs AT_ONCE requests of an address at a time, so that a thousand parallel ones delay nobody else.

    The rest wait; sessions at an address take turns. Beyond MOST_WAITING the answer is 429 with Retry-After. Requests
    without a body wait in the outermost middleware (`WithoutBody`), before they cost anything. Requests with a body
    wait inside the body limit (`WithBody`), so that a slow upload takes no place.
    """

    bodies: bool

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._addresses: dict[str, FairGate] = {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it has a place."""
        if _has_body(scope) != self.bodies:
            await self._app(scope, receive, send)
            return
        name = caller_address(scope)
        gate = self._addresses.setdefault(name, FairGate(AT_ONCE, OF_ONE_SESSION))
        if gate.waiting >= MOST_WAITING:
            await _refusal(scope)(scope, receive, send)
            return
        try:
            with on_behalf_of(_session(scope)):
                place = await gate.take()
            timer = asyncio.get_running_loop().call_later(TURN_SECONDS, place.give_back)
            try:
                # Many answers never wait: without this step, one burst of requests would run before anybody else's.
                await asyncio.sleep(0)
                await self._app(scope, receive, send)
            finally:
                timer.cancel()
                place.give_back()
        finally:
            if not gate.taken and not gate.waiting and self._addresses.get(name) is gate:
                del self._addresses[name]


class WithoutBody(AddressConcurrency):
    """Limits requests that are complete on arrival."""

    bodies = False


class WithBody(AddressConcurrency):
    """Limits requests whose body has been read."""

    bodies = True


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _refusal(scope: Scope) -> ASGIApp:
    with languages.of_request(Headers(scope=scope)):
        answer = {"message": _("Too many requests at once. Please try again in a second.")}
    return SecurityHeaders(JSONResponse(answer, status_code=429, headers={"Retry-After": "1"}))


def _session(scope: Scope) -> str:
    """Return the key that separates sessions. An invented one only gets turns within its own address."""
    headers = Headers(scope=scope)
    shown = headers.get(sessions.HEADER) or sessions.session_id_from_cookie_header(headers.get("cookie"))
    return f"session:{shown}" if shown else "nobody"
