"""How many requests of one address are worked on at once."""

import asyncio
from collections import deque

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.proxies import caller_address

AT_ONCE = 6
"""As many as a browser has connections; the database has 40 for everybody."""
MOST_WAITING = 1_000
"""Requests of one address that wait for their turn; a body of at most 64 KiB is kept of each."""
TURN_SECONDS = 1.0
"""A request that takes longer waits for somebody else than us, and gives its place on."""


class _Address:
    """The places of one address, and those who wait for one in the order in which they came."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: deque[asyncio.Future[None]] = deque()

    def give_back(self) -> None:
        """Let the next in."""
        self.taken -= 1
        while self.waiting and self.taken < AT_ONCE:
            waiter = self.waiting.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)


class _Place:
    """The right to be worked on, given back once: at the end, or when a turn is over."""

    def __init__(self, address: _Address) -> None:
        self._address: _Address | None = address
        self._timer = asyncio.get_running_loop().call_later(TURN_SECONDS, self.give_back)

    def give_back(self) -> None:
        """Let the next in, unless that was done before."""
        self._timer.cancel()
        address, self._address = self._address, None
        if address is not None:
            address.give_back()


class AddressConcurrency:
    """Works on AT_ONCE requests of an address at a time, so that nobody's thousand parallel ones delay the others'.

    The rest waits, and beyond MOST_WAITING is refused (429, Retry-After). It stands inside the body's limit: who sends
    a body slowly takes no place.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._addresses: dict[str, _Address] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its turn has come."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = caller_address(scope)
        address = self._addresses.setdefault(name, _Address())
        if len(address.waiting) >= MOST_WAITING:
            refusal = {"message": "Too many requests at once. Please try again in a second."}
            await JSONResponse(refusal, status_code=429, headers={"Retry-After": "1"})(scope, receive, send)
            return
        try:
            place = await _place(address)
            try:
                await self._app(scope, receive, send)
            finally:
                place.give_back()
        finally:
            if not address.taken and not address.waiting and self._addresses.get(name) is address:
                del self._addresses[name]


async def _place(address: _Address) -> _Place:
    """Wait for a place."""
    if address.taken < AT_ONCE:
        address.taken += 1
        return _Place(address)
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    address.waiting.append(waiter)
    try:
        await waiter
    except asyncio.CancelledError:
        if waiter.done() and not waiter.cancelled():
            address.give_back()
        elif waiter in address.waiting:
            address.waiting.remove(waiter)
        raise
    return _Place(address)
