"""Fetching of links that strangers chose (token metadata and similar), only from public addresses."""

import zlib
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import cast

import httpcore
import httpx

from gateways.transport.connections import POOL_SECONDS, GatedClient, tls
from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderRefused,
    no_answer,
    seconds_to_wait,
)
from gateways.transport.fair_turns import FairGate, caller, on_behalf_of
from gateways.transport.public_addresses import is_discord, is_public, resolve

DEADLINE = 10.0
"""Seconds for one link from when its turn comes, redirects included."""
LARGEST = 1_000_000
"""The largest answer in bytes, before and after unpacking."""
MOST_REDIRECTS = 3
LONGEST_LINK = 4_000
CONNECTIONS, MOST_FOR_ONE = 32, 8
"""Links at a time, and how many of them for one tenant, or for one host where no tenant is named."""
HTTPS_PORT = 443

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class LinkForbidden(ProviderRefused):
    """The link leads to a place that we do not contact; nothing was sent there."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(provider, reason, status=0)


@dataclass(frozen=True, slots=True)
class _Step:
    """One of the requests that lead to a document."""

    method: str
    url: httpx.URL
    body: bytes | None = None


class Fetcher:
    """The client for every link that a stranger chose (docs/facts.md#ccip-read).

    It uses only https on port 443, and never asks Discord. Every address of a host name must be public, and the
    connection is made to the very address that was checked. The same is true for every redirect. There are no
    credentials, cookies or proxies, and at most `largest` bytes and `deadline` seconds. `trusted` are links that an
    operator chose: a link that begins with one of them may lead to this machine. With `own_machine`, for the sandbox,
    any link may. Errors name the link's host, never the link.
    """

    def __init__(
        self,
        *,
        agent: str,
        trusted: Iterable[str] = (),
        own_machine: bool = False,
        deadline: float = DEADLINE,
        lookup: Resolve = resolve,
        certificates: SSLContext | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._deadline = deadline
        self._trusted = [httpx.URL(link) for link in trusted]
        self._own_machine = own_machine
        self._headers = {
            "User-Agent": agent.encode("ascii", "ignore").decode(),
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": "gzip",
        }
        dial = network or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
        certificates = certificates or tls()

        def pools() -> _Pools:
            return _Pools(
                _pool(certificates, _Guard(dial, lookup, only_public=True)),
                _pool(certificates, _Guard(dial, lookup, only_public=False)),
            )

        self._pools = GatedClient("links", pools, FairGate(CONNECTIONS, MOST_FOR_ONE))

    async def close(self) -> None:
        """Close the connections."""
        await self._pools.close()

    async def get(self, link: str, *, largest: int = LARGEST) -> bytes:
        """Return the document behind the link, after at most three redirects.

        Raises LinkForbidden (nothing was sent), NotThere, ProviderBusy, ProviderDown, ProviderRefused, and
        ProviderConfused for a document that is too large or packed in a way that we did not ask for.
        """
        return await self._fetch("GET", link, None, largest)

    async def post(self, link: str, body: bytes, *, largest: int = LARGEST) -> bytes:
        """Return the answer to a JSON body; raises as `get` does, and ProviderConfused for a redirect."""
        return await self._fetch("POST", link, body, largest)

    async def _fetch(self, method: str, link: str, body: bytes | None, largest: int) -> bytes:
        at = [_Step(method, _url(link), body)]

        async def follow(pools: _Pools) -> bytes:
            del at[1:]
            for _ in range(MOST_REDIRECTS + 1):
                outcome = await self._take(pools, at[-1], largest)
                if isinstance(outcome, bytes):
                    return outcome
                at.append(outcome)
            raise ProviderConfused(_name(at[-1].url), f"it redirects more than {MOST_REDIRECTS} times")

        # Strangers choose the links, so without a named tenant each host gets a tenant's share.
        tenant = caller().tenant or ("" if self._is_trusted(at[0].url) else f"host:{_name(at[0].url)}")
        with on_behalf_of(tenant), self._no_answer(lambda: at[-1].url):
            return await self._pools.run(follow, self._deadline)

    async def deliver(self, link: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post a JSON body and return the answer's status; its body is not read and no redirect is followed.

        Raises LinkForbidden (nothing was sent), ProviderDown.
        """
        url = _url(link)

        async def send(pools: _Pools) -> int:
            async with self._sent(pools, _Step("POST", url, body), headers) as answer:
                return answer.status

        with on_behalf_of(f"host:{_name(url)}"), self._no_answer(lambda: url):
            return await self._pools.run(send, self._deadline)

    @contextmanager
    def _no_answer(self, at: Callable[[], httpx.URL]) -> Generator[None]:
        """Turn the connection's exceptions into ProviderDown, which names the host."""
        try:
            yield
        except TimeoutError:
            raise ProviderDown(_name(at()), f"no answer within {self._deadline:g} s") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as fault:
            raise ProviderDown(_name(at()), no_answer(fault)) from None

    async def _take(self, pools: "_Pools", step: _Step, largest: int) -> "bytes | _Step":
        """Send one request and return the document, or the next request after a redirect."""
        async with self._sent(pools, step) as answer:
            told = httpx.Headers(answer.headers)
            if answer.status in {301, 302, 303, 307, 308} and step.body is None:
                return self._onward(step.url, told)
            _check(step.url, answer.status, told)
            return await _content(step.url, answer, told, largest)

    def _sent(
        self, pools: "_Pools", step: _Step, more: Mapping[str, str] = {}
    ) -> AbstractAsyncContextManager[httpcore.Response]:
        """Send one request, with these headers besides the usual ones. Raises LinkForbidden."""
        url, kind = step.url, {} if step.body is None else {"Content-Type": "application/json"}
        at = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        headers = {"Host": url.netloc.decode(), **self._headers, **kind, **more}
        timeout = dict.fromkeys(("connect", "read", "write"), self._deadline) | {"pool": POOL_SECONDS}
        return self._pool_for(pools, url).stream(
            step.method, at, headers=list(headers.items()), content=step.body, extensions={"timeout": timeout}
        )

    def _is_trusted(self, url: httpx.URL) -> bool:
        if self._own_machine and url.host in {"localhost", "127.0.0.1"}:
            return True
        return any(_begins_with(url, trusted) for trusted in self._trusted)

    def _pool_for(self, pools: "_Pools", url: httpx.URL) -> httpcore.AsyncConnectionPool:
        """Return the pool for a link. Raises LinkForbidden for a link that is neither https nor the operator's."""
        if url.userinfo:
            raise LinkForbidden(_name(url), "the link carries a name or a password")
        if self._is_trusted(url):
            return pools.own
        if url.scheme != "https":
            raise LinkForbidden(_name(url), "only https links are followed")
        if url.port not in {None, HTTPS_PORT}:
            raise LinkForbidden(_name(url), f"only port {HTTPS_PORT} is asked")
        if is_discord(url.raw_host.decode("ascii", "replace")):
            raise LinkForbidden(_name(url), "no link leads to Discord")
        return pools.guarded

    def _onward(self, url: httpx.URL, told: Mapping[str, str]) -> _Step:
        target = told.get("location", "")
        if not target or len(target) > LONGEST_LINK:
            raise ProviderConfused(_name(url), "it redirects to nowhere")
        try:
            return _Step("GET", url.join(target).copy_with(fragment=None))
        except (httpx.InvalidURL, ValueError):
            raise ProviderConfused(_name(url), "it redirects to nowhere") from None


@dataclass(frozen=True, slots=True)
class _Pools:
    """The connections to strangers' hosts, and to hosts that the operator chose."""

    guarded: httpcore.AsyncConnectionPool
    own: httpcore.AsyncConnectionPool

    async def aclose(self) -> None:
        await self.guarded.aclose()
        await self.own.aclose()


def _pool(certificates: SSLContext, guard: "_Guard") -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(
        ssl_context=certificates, max_connections=CONNECTIONS, keepalive_expiry=5, network_backend=guard
    )


class _Guard(httpcore.AsyncNetworkBackend):
    """A network backend that connects to a host only when all its addresses are public.

    It connects to an address that it has checked. A host name that resolves differently the next time gains nothing,
    because it is not resolved again between check and connection.
    """

    def __init__(self, inner: httpcore.AsyncNetworkBackend, lookup: Resolve, *, only_public: bool) -> None:
        self._inner, self._lookup, self._only_public = inner, lookup, only_public

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to the first of the host's addresses that accepts one."""
        addresses = await self._lookup(host, port)
        if not addresses:
            raise httpcore.ConnectError("there is no such host")
        if self._only_public and not all(is_public(address) for address in addresses):
            raise LinkForbidden(host[:100], "its address is not a public one")
        fault: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                fault = refused
        raise fault or httpcore.ConnectError("no address took the connection")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Raise ConnectError: no link leads to a Unix socket."""
        raise httpcore.ConnectError("sockets of this machine are not asked")

    async def sleep(self, seconds: float) -> None:
        """Sleep as the inner backend does."""
        await self._inner.sleep(seconds)


def _url(link: str) -> httpx.URL:
    if len(link) > LONGEST_LINK:
        raise LinkForbidden("The link", "it is too long")
    try:
        url = httpx.URL(link.strip())
        if not url.host:
            raise LinkForbidden("The link", "it names no host")
        return url.copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise LinkForbidden("The link", "it cannot be read") from None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    usual = {"https": HTTPS_PORT, "http": 80}.get(url.scheme, 0)
    return url.scheme, url.raw_host.decode("ascii", "replace"), url.port or usual


def _begins_with(url: httpx.URL, trusted: httpx.URL) -> bool:
    """Return whether a link lies below another; never for one with dots that a server may take for a parent folder."""
    if _origin(url) != _origin(trusted):
        return False
    below = url.path == trusted.path or url.path.startswith(f"{trusted.path.rstrip('/')}/")
    return below and not any(part.strip(".") == "" and part for part in url.path.replace("\\", "/").split("/"))


def _name(url: httpx.URL) -> str:
    """Return the host as a name for people; it never contains a path or a password."""
    return url.raw_host.decode("ascii", "replace")[:100] or "The link"


def _check(url: httpx.URL, status: int, told: Mapping[str, str]) -> None:
    name = _name(url)
    if status == 429:
        raise ProviderBusy(name, "too many requests", retry_after=seconds_to_wait(told.get("retry-after")))
    if status in {404, 410}:
        raise NotThere(name, f"nothing is there (HTTP {status})", status=status)
    if status >= 500:
        raise ProviderDown(name, f"HTTP {status}")
    if status >= 400:
        raise ProviderRefused(name, f"HTTP {status}", status=status)
    if status != 200:
        raise ProviderConfused(name, f"HTTP {status}")


async def _content(url: httpx.URL, answer: httpcore.Response, told: Mapping[str, str], largest: int) -> bytes:
    """Return the unpacked body. At most about `largest` bytes are kept, both before and after unpacking."""
    declared = told.get("content-length", "")
    if declared.isascii() and declared.isdigit() and len(declared) < 20 and int(declared) > largest:
        raise ProviderConfused(_name(url), "the answer is too large")
    packing = told.get("content-encoding", "identity").strip().lower()
    if packing not in {"identity", "", "gzip", "x-gzip"}:
        raise ProviderConfused(_name(url), "the answer is packed in a way that was not asked for")
    unpack = zlib.decompressobj(wbits=31) if packing.endswith("gzip") else None
    content, came = bytearray(), 0
    async for piece in answer.aiter_stream():
        came += len(piece)
        try:
            content += piece if unpack is None else unpack.decompress(piece, largest + 1 - len(content))
        except zlib.error:
            raise ProviderConfused(_name(url), "the answer cannot be unpacked") from None
        if max(came, len(content)) > largest or (unpack is not None and unpack.unconsumed_tail):
            raise ProviderConfused(_name(url), "the answer is too large")
    if unpack is not None and not unpack.eof:
        raise ProviderConfused(_name(url), "the answer ends too early")
    return bytes(content)
