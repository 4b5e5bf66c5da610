"""HTTP clients whose connections cannot run out: requests wait at our own gate, never inside httpcore's pool."""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import cache, cached_property
from typing import Generic, Protocol, TypeVar

import httpcore
import httpx

from gateways.transport import question_time
from gateways.transport.exchanges import to_its_end
from gateways.transport.fair_turns import FairGate
from gateways.transport.plain_text import one_line
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

POOL_SECONDS = 1.0
"""Seconds that a request with a place at the gate waits for a connection. The time may be short, because a request has
to wait only when connections are lost."""
SILENCE_FORGOTTEN = 30.0
"""Seconds without a request after which a server's earlier silence is forgotten."""
USUAL_NAME = "Holdfast"
"""The name in the User-Agent of a product whose own has no ASCII character."""
OVERDUE_SECONDS = 5.0
"""Seconds after its deadline at which an exchange that has not ended loses its place at the gate."""


class Closable(Protocol):
    """An HTTP client or connection pool."""

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class TurnedAway(TimeoutError):
    """The request was not sent, because the server answers nobody.

    Waiting longer would leave the caller no time to ask another server.
    """


class BrokenTls(httpx.ReadError, httpcore.ReadError):
    """The server broke or ended TLS after the handshake.

    httpcore 1.0 lets ssl's exception pass there, and callers expect the exceptions of httpx or httpcore.
    """


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


@cache
def tls() -> ssl.SSLContext:
    """Return the TLS context of all clients, which checks the usual certificates.

    It is made once, because that takes tens of milliseconds.
    """
    return httpx.create_ssl_context()


@cache
def agent() -> str:
    """Return the User-Agent of our clients; some public nodes refuse a library's default.

    Of the product's name it has what a header may have: no letters outside ASCII, and no space in front.
    """
    chosen = settings()
    name = one_line(chosen.product_name.encode("ascii", "ignore").decode())
    return f"{name or USUAL_NAME} (+{chosen.public_url})"


def timeouts(seconds: float) -> httpx.Timeout:
    """Return the timeouts of a gated client whose requests take at most `seconds`."""
    return httpx.Timeout(seconds, pool=POOL_SECONDS)


async def read_at_most(answer: httpx.Response, largest: int) -> bytes | None:
    """Read a streamed answer and return its unpacked body; None as soon as it has more than `largest` bytes.

    Raises httpx.DecodingError for an answer that is packed more than once: httpx unpacks as much as comes at once, so
    some kilobytes would become gigabytes before their size could be checked.
    """
    if "," in answer.headers.get("content-encoding", ""):
        raise httpx.DecodingError("it is packed more than once", request=answer.request)
    content = bytearray()
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > largest:
            return None
    return bytes(content)


class GatedClient(Generic[C]):
    """An HTTP client behind a gate with as many places as the client has connections.

    httpcore 1.0 loses a connection when a request that waits in its pool is cancelled at the moment when it is given a
    new connection. Once all connections are lost, nothing is sent any more. With a gate, no request waits in the pool.
    If one has to wait there anyway, or does not end at its deadline, the client is replaced. The new client takes over
    at once, and the old one is closed when its last exchange has ended.

    With `one_server`, a request that gets no answer, while no other request gets one either, turns away all requests
    that wait at the gate.
    """

    def __init__(self, name: str, make: Callable[[], C], gate: FairGate, *, one_server: bool = False) -> None:
        self.name = name
        self.gate = gate
        self.replaced = 0
        """The number of times that the client was replaced."""
        self._make = make
        self._one_server = one_server
        self._answered = 0.0
        self.silent = False
        """Whether the server answered nobody when an exchange last ended without an answer."""
        self._under_way = 0
        self._asked_at = self._silent_since = 0.0
        self._running: Counter[int] = Counter()
        self._closing: set[asyncio.Task[None]] = set()

    @cached_property
    def client(self) -> C:
        """The client in use; it is made for the first request, since most processes never ask most servers."""
        return self._make()

    async def run(
        self, exchange: Callable[[C], Coroutine[object, object, T]], seconds: float, *, within: float | None = None
    ) -> T:
        """Return the exchange's result; it has `seconds` from when its turn comes. Raises TimeoutError, TurnedAway.

        `within` bounds the seconds for waiting and exchange together. A caller that is cancelled while it waits leaves
        the queue. If it is cancelled later, the exchange continues without it and keeps its place until it ends.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.timeout(within):
            place = await self.gate.take()
        if within is not None:
            seconds = min(seconds, begun + within - loop.time())
        client = self.client

        def expired() -> None:
            # Counted from when this loop notices the deadline: a loop that was blocked has not ended the exchange yet.
            nonlocal watchdog
            watchdog = loop.call_later(OVERDUE_SECONDS, overdue)

        def overdue() -> None:
            self._replace(client, "an exchange did not end")
            place.give_back()

        watchdog = loop.call_later(max(0.0, seconds), expired)
        turn = loop.time()
        self._begun(turn)

        def ended() -> None:
            watchdog.cancel()
            self._under_way -= 1
            self._asked_at = loop.time()
            self.silent = self._answered < turn and loop.time() >= turn + seconds - 0.01
            if self._one_server and self.silent:
                self.gate.turn_away(lambda: TurnedAway(f"{self.name} answers nobody"))
            place.give_back()

        with question_time.running():
            return await to_its_end(self._exchange(exchange), seconds, ended)

    @property
    def silent_for(self) -> float | None:
        """The seconds for which the server has answered no request; None while no request is under way."""
        if not self._under_way:
            return None
        return asyncio.get_running_loop().time() - max(self._answered, self._silent_since)

    def _begun(self, moment: float) -> None:
        if not self._under_way and (
            self._answered >= self._silent_since or moment - self._asked_at > SILENCE_FORGOTTEN
        ):
            self._silent_since = moment
        self._under_way += 1

    async def close(self) -> None:
        """Close the connections."""
        if "client" in vars(self):
            await self.client.aclose()
        await asyncio.gather(*self._closing)

    async def _exchange(self, exchange: Callable[[C], Coroutine[object, object, T]]) -> T:
        client = self.client
        try:
            return await self._with(client, exchange)
        except (httpx.PoolTimeout, httpcore.PoolTimeout):
            # Nothing was sent.
            self._replace(client, "its connections are lost")
        return await self._with(self.client, exchange)

    async def _with(self, client: C, exchange: Callable[[C], Coroutine[object, object, T]]) -> T:
        self._running[id(client)] += 1
        try:
            answer = await exchange(client)
            self._answered = asyncio.get_running_loop().time()
            return answer
        except ssl.SSLError as fault:
            raise BrokenTls(str(fault)) from fault
        except httpx.InvalidURL as fault:
            # httpx also reads the address of a redirect that it does not follow.
            raise httpx.RemoteProtocolError(str(fault)) from fault
        finally:
            self._running[id(client)] -= 1
            if not self._running[id(client)]:
                del self._running[id(client)]
                if client is not self.client:
                    self._close(client)

    def _replace(self, client: C, reason: str) -> None:
        if client is not self.client:
            return
        log.warning("replaced an HTTP client client=%s reason=%r", self.name, reason)
        self.client = self._make()
        self.replaced += 1
        if not self._running[id(client)]:
            self._close(client)

    def _close(self, client: C) -> None:
        task = asyncio.ensure_future(client.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
