"""How many requests of one address are worked on at once."""

import asyncio

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.headers import SecurityHeaders
from app.http.proxies import caller_address
from gateways.transport.fair_turns import FairGate, on_behalf_of
from services.accounts import sessions

AT_ONCE = 4
"""Everybody else waits behind each of these, again and again: for the processor, and for the database."""
OF_ONE_SESSION = 3
"""Of these, so that one person behind an address keeps nobody else there waiting."""
MOST_WAITING = 1_000
"""Requests of one address that wait for their turn; a body of at most 64 KiB is kept of each."""
TURN_SECONDS = 1.0
"""A request that takes longer waits for somebody else than us, and gives its place on."""


class AddressConcurrency:
    """Works on AT_ONCE requests of an address at a time, so that nobody's thousand parallel ones delay the others'.

    The rest waits, the sessions at an address in turns, and beyond MOST_WAITING is refused (429, Retry-After). A
    request without a body waits at the very outside (`WithoutBody`), before it costs anything; one with a body inside
    of the body's limit (`WithBody`): who sends a body slowly takes no place.
    """

    bodies: bool

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._addresses: dict[str, FairGate] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its turn has come."""
        if scope["type"] != "http" or _has_body(scope) != self.bodies:
            await self._app(scope, receive, send)
            return
        name = caller_address(scope)
        gate = self._addresses.setdefault(name, FairGate(AT_ONCE, OF_ONE_SESSION))
        if gate.waiting >= MOST_WAITING:
            await _refusal()(scope, receive, send)
            return
        try:
            with on_behalf_of(_session(scope)):
                place = await gate.take()
            timer = asyncio.get_running_loop().call_later(TURN_SECONDS, place.give_back)
            try:
                await self._app(scope, receive, send)
            finally:
                timer.cancel()
                place.give_back()
        finally:
            if not gate.taken and not gate.waiting and self._addresses.get(name) is gate:
                del self._addresses[name]


class WithoutBody(AddressConcurrency):
    """For requests that are complete when they come."""

    bodies = False


class WithBody(AddressConcurrency):
    """For requests whose body has been read."""

    bodies = True


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _refusal() -> ASGIApp:
    answer = {"message": "Too many requests at once. Please try again in a second."}
    return SecurityHeaders(JSONResponse(answer, status_code=429, headers={"Retry-After": "1"}))


def _session(scope: Scope) -> str:
    """Return what tells sessions apart; a made-up one gets no more than turns among the requests of its address."""
    headers = Headers(scope=scope)
    shown = headers.get(sessions.HEADER) or sessions.session_id_from_cookie_header(headers.get("cookie"))
    return f"session:{shown}" if shown else "nobody"
