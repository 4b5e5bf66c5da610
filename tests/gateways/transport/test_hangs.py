"""A server that hangs repeatedly, with more requests waiting than there are connections, costs no connection."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, cast

import httpcore
import httpx
import pytest

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc import failover
from gateways.evm.rpc.node import CONNECTIONS, Node
from gateways.evm.rpc.pool import NodePool
from gateways.marketplaces.client import MarketWire
from gateways.transport.connections import GatedClient, timeouts
from gateways.transport.errors import ProviderDown
from gateways.transport.fair_turns import FairGate, on_behalf_of
from gateways.transport.safe_fetch import Fetcher
from settings import settings

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":"0x1"}'
PATIENCE = 0.12
"""Seconds for a request: few, so that many hangs fit into a test."""


class Hanging:
    """A server that answers at once, or while it hangs accepts requests and never answers."""

    def __init__(self) -> None:
        self.url = ""
        self.well = asyncio.Event()
        self.asked = 0
        self.agents: set[bytes] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    lines = head.lower().split(b"\r\n")
                    length = next((line for line in lines if line.startswith(b"content-length:")), b":0")
                    await reader.readexactly(int(length.partition(b":")[2]))
                    self.asked += 1
                    self.agents |= {line for line in lines if line.startswith(b"user-agent:")}
                    await self.well.wait()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def wait_for(node: Node, seconds: float) -> None:
    """Let requests to this node take that long, in its HTTP client too."""
    node.request_seconds = seconds
    node._http.client.timeout = timeouts(seconds)


@pytest.fixture
async def hanging() -> AsyncIterator[Hanging]:
    made = Hanging()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield made
        await made.end()


@pytest.mark.parametrize(("waiting", "hangs"), [(12, 25), (24, 25), (32, 25), (100, 3)])
async def test_the_first_request_after_each_hang_of_a_node_is_answered(
    hanging: Hanging, waiting: int, hangs: int
) -> None:
    node = Node(CHAINS["base"], 0, hanging.url, request_seconds=PATIENCE)
    try:
        for _ in range(hangs):
            hanging.well.clear()
            asks = list[asyncio.Task[object]]()
            for _ in range(waiting):
                asks.append(asyncio.create_task(node.call("eth_chainId", ())))
                await asyncio.sleep(0.0005)
            failed = await asyncio.gather(*asks, return_exceptions=True)
            assert all(isinstance(one, ProviderDown) for one in failed)
            hanging.well.set()
            # On a busy machine an answer may take longer than the short PATIENCE.
            wait_for(node, 10.0)
            before = hanging.asked
            assert await node.call("eth_chainId", ()) == "0x1"
            assert hanging.asked == before + 1
            wait_for(node, PATIENCE)
        assert node._http.replaced == 0
        assert (node._http.gate.taken, node._http.gate.waiting) == (0, 0)
    finally:
        await node.close()


async def test_those_who_wait_for_a_node_that_hangs_are_sent_on_when_the_first_gets_no_answer(hanging: Hanging) -> None:
    node = Node(CHAINS["base"], 0, hanging.url, request_seconds=2.0)
    try:
        asks = [asyncio.create_task(node.call("eth_chainId", ())) for _ in range(60)]
        done, waiting = await asyncio.wait(asks, timeout=20)
        assert not waiting
        assert all(isinstance(task.exception(), ProviderDown) for task in done)
        # Six at a time, as the other two connections are reserved for urgent requests; the rest were not sent.
        assert hanging.asked == CONNECTIONS - 2
    finally:
        await node.close()


async def test_a_tenant_that_fills_its_share_of_a_node_does_not_keep_others_waiting(hanging: Hanging) -> None:
    node = Node(CHAINS["base"], 0, hanging.url, request_seconds=30.0)

    async def asked(number: int) -> None:
        async with asyncio.timeout(20):
            while hanging.asked < number:
                await asyncio.sleep(0.01)

    asks = list[asyncio.Task[object]]()
    try:
        with on_behalf_of("server:1"):
            asks += [asyncio.create_task(node.call("eth_chainId", ())) for _ in range(50)]
        await asked(4)
        with on_behalf_of("server:2"):
            asks += [asyncio.create_task(node.call("eth_chainId", ())) for _ in range(2)]
        await asked(6)
        with on_behalf_of("server:3", urgent=True):
            asks.append(asyncio.create_task(node.call("eth_chainId", ())))
        await asked(7)
        hanging.well.set()
        assert await asyncio.gather(*asks) == ["0x1"] * 53
    finally:
        await node.close()


class OneMachine(httpcore.AsyncNetworkBackend):
    """A network in which every name leads to the local server, without TLS."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self._real = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        return ("93.184.215.14",)

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return Plain(await self._real.connect_tcp("127.0.0.1", self._port))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Plain(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self.read, self.write, self.aclose = inner.read, inner.write, inner.aclose  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return self


@pytest.mark.parametrize(("links", "hangs"), [(48, 4), (200, 1)])
async def test_the_first_link_after_each_hang_of_a_host_is_read(hanging: Hanging, links: int, hangs: int) -> None:
    internet = OneMachine(hanging.url)
    fetcher = Fetcher(agent="test", deadline=PATIENCE, lookup=internet.lookup, network=internet)
    try:
        for _ in range(hangs):
            hanging.well.clear()
            with on_behalf_of("server:1"):
                asks = [asyncio.create_task(fetcher.get(f"https://cats{n % 50}.example/{n}")) for n in range(links)]
            failed = await asyncio.gather(*asks, return_exceptions=True)
            assert all(isinstance(one, ProviderDown) for one in failed)
            hanging.well.set()
            fetcher._deadline = 10.0
            assert await fetcher.get("https://cats.example/first") == ANSWER
            fetcher._deadline = PATIENCE
        assert fetcher._pools.replaced == 0
    finally:
        await fetcher.close()


async def test_links_to_a_host_that_hangs_leave_places_for_those_of_others(hanging: Hanging) -> None:
    internet = OneMachine(hanging.url)
    fetcher = Fetcher(agent="test", deadline=30.0, lookup=internet.lookup, network=internet)
    try:
        slow = [asyncio.create_task(fetcher.get(f"https://hostile.example/{n}")) for n in range(100)]
        async with asyncio.timeout(20):
            while hanging.asked < 8:
                await asyncio.sleep(0.01)
        good = asyncio.create_task(fetcher.get("https://cats.example/1"))
        async with asyncio.timeout(20):
            while hanging.asked < 9:
                await asyncio.sleep(0.01)
        hanging.well.set()
        assert await good == ANSWER
        assert await asyncio.gather(*slow) == [ANSWER] * 100
    finally:
        await fetcher.close()


async def test_the_first_question_after_each_hang_of_a_marketplace_is_answered(hanging: Hanging) -> None:
    market = MarketWire("OpenSea", {}, deadline=PATIENCE)
    try:
        for _ in range(5):
            hanging.well.clear()
            asks = [asyncio.create_task(market.read(hanging.url, "token")) for _ in range(120)]
            failed = await asyncio.gather(*asks, return_exceptions=True)
            assert all(isinstance(one, ProviderDown) for one in failed)
            hanging.well.set()
            market._deadline = 10.0
            market._http.client.timeout = timeouts(10.0)
            assert await market.read(hanging.url, "token")
            market._deadline = PATIENCE
            market._http.client.timeout = timeouts(PATIENCE)
        assert market._http.replaced == 0
    finally:
        await market.close()


async def test_a_client_whose_connections_are_lost_is_replaced(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    def make() -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=timeouts(10.0), limits=httpx.Limits(max_connections=2))

    made = GatedClient("node", make, FairGate(2))
    lost = made.client
    pool: Any = lost._transport
    # As httpcore 1.0.9 loses them: in the pool, but neither idle nor closed.
    for _ in range(2):
        pool._pool._connections.append(pool._pool.create_connection(httpcore.URL(hanging.url).origin))
    hanging.well.set()
    try:
        answers = await asyncio.gather(*(made.run(lambda http: http.get(hanging.url), 10.0) for _ in range(5)))
        assert [answer.status_code for answer in answers] == [200] * 5
        assert made.replaced == 1
        async with asyncio.timeout(10):
            while not lost.is_closed:
                await asyncio.sleep(0.01)
        assert "replaced an HTTP client client=node" in caplog.text
    finally:
        await made.close()


@pytest.mark.parametrize("fault", [ssl.SSLError(1, "bad record"), httpx.InvalidURL("no address")])
async def test_what_the_libraries_do_not_name_is_a_lost_connection(fault: Exception) -> None:
    """A server may break TLS after the handshake, or redirect to a word instead of an address."""

    async def exchange(_: httpx.AsyncClient) -> None:
        raise fault

    client = GatedClient("a server", httpx.AsyncClient, FairGate(1))
    with pytest.raises(httpx.TransportError):
        await client.run(exchange, 10.0)
    assert client.gate.taken == 0
    await client.close()


async def test_an_exchange_that_never_ends_keeps_no_place(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.transport.connections.OVERDUE_SECONDS", 0.05)
    made = GatedClient("node", httpx.AsyncClient, FairGate(1))
    end = asyncio.Event()

    async def endless(_: httpx.AsyncClient) -> None:
        while not end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await end.wait()

    stuck = asyncio.create_task(made.run(endless, 0.05))
    hanging.well.set()
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            answer = await made.run(lambda http: http.get(hanging.url), 10.0)
        assert (answer.status_code, made.replaced) == (200, 1)
    finally:
        end.set()
        await asyncio.gather(stuck, return_exceptions=True)
        await made.close()


async def test_an_exchange_is_not_late_because_its_loop_stood_still(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.transport.connections.OVERDUE_SECONDS", 1.0)
    made = GatedClient("node", httpx.AsyncClient, FairGate(1))
    ask = asyncio.create_task(made.run(lambda http: http.get(hanging.url), 1.0))
    try:
        while not hanging.asked:
            await asyncio.sleep(0)
        time.sleep(2.5)  # noqa: ASYNC251 - this blocks the loop, as a slow machine does
        with pytest.raises(TimeoutError):
            await ask
        assert made.replaced == 0
    finally:
        await made.close()


async def test_who_does_not_wait_for_long_is_told_so(hanging: Hanging) -> None:
    made = GatedClient("Discord", httpx.AsyncClient, FairGate(1))
    first = asyncio.create_task(made.run(lambda http: http.get(hanging.url), 30.0))
    try:
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await made.run(lambda http: http.get(hanging.url), 30.0, within=0.05)
        assert made.gate.waiting == 0
        hanging.well.set()
        assert (await first).status_code == 200
    finally:
        await made.close()


async def test_a_caller_who_leaves_the_queue_has_sent_nothing(hanging: Hanging) -> None:
    node = Node(CHAINS["base"], 0, hanging.url, request_seconds=30.0)
    asks = [asyncio.create_task(node.call("eth_chainId", ())) for _ in range(40)]
    try:
        async with asyncio.timeout(20):
            while hanging.asked < 6:
                await asyncio.sleep(0.01)
        for ask in asks[10:]:
            ask.cancel()
        await asyncio.gather(*asks[10:], return_exceptions=True)
        hanging.well.set()
        assert await asyncio.gather(*asks[:10]) == ["0x1"] * 10
        assert hanging.asked == 10
    finally:
        await node.close()


async def test_servers_are_told_who_asks(hanging: Hanging) -> None:
    hanging.well.set()
    node = Node(CHAINS["base"], 0, hanging.url, request_seconds=10.0)
    market = MarketWire("OpenSea", {})
    try:
        await node.call("eth_chainId", ())
        await market.read(hanging.url, "token")
    finally:
        await node.close()
        await market.close()
    chosen = settings()
    assert hanging.agents == {f"user-agent: {chosen.product_name} (+{chosen.public_url})".lower().encode()}


async def test_after_a_hang_of_all_nodes_of_a_chain_each_of_them_is_asked_for_real(hanging: Hanging) -> None:
    nodes = [f"{hanging.url}/1", f"{hanging.url}/2"]
    # Enough time to give up both nodes on a busy machine too; a question that ends earlier leaves the second unpaused.
    pool = NodePool({"base": nodes}, request_seconds=PATIENCE, deadline=30 * PATIENCE)

    def ask(node: Node) -> Awaitable[object]:
        return node.call("eth_chainId", ())

    try:
        for _ in range(4):
            hanging.well.clear()
            asks = [asyncio.create_task(pool.first("base", ask)) for _ in range(100)]
            failed = await asyncio.gather(*asks, return_exceptions=True)
            assert all(isinstance(one, ProviderDown) for one in failed)
            hanging.well.set()
            loop = asyncio.get_running_loop()
            for node in pool.all():
                assert node.resting_until > loop.time()
                wait_for(node, 10.0)
            for endpoint in (None, 0, 1):
                assert await pool.first("base", ask, endpoint=endpoint, deadline=loop.time() + 20) == "0x1"
            for node in pool.all():
                wait_for(node, PATIENCE)
        assert [node._http.replaced for node in pool.all()] == [0, 0]
    finally:
        await pool.close()


async def test_a_chain_is_silent_while_no_node_that_is_asked_answers_anybody(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "SILENT_AFTER", 0.05)
    pool = NodePool({"base": [hanging.url, hanging.url], "polygon": [hanging.url]}, request_seconds=30.0)
    first, second = (node for node in pool.all() if node.chain.key == "base")

    async def until(silent: bool) -> None:
        async with asyncio.timeout(20):
            while pool.is_silent("base") is not silent:
                await asyncio.sleep(0.005)

    try:
        assert not pool.is_silent("base"), "nobody asks"
        hanging.well.clear()
        one = asyncio.create_task(first.call("eth_chainId", ()))
        await until(silent=True)
        assert not pool.is_silent("polygon")
        hanging.well.set()
        await one
        assert not pool.is_silent("base")
        hanging.well.clear()
        asks = [asyncio.create_task(node.call("eth_chainId", ())) for node in (first, second)]
        await until(silent=True)
        hanging.well.set()
        await asyncio.gather(*asks)
        assert not pool.is_silent("base")
    finally:
        await pool.close()


async def test_silence_goes_on_from_one_request_that_fails_to_the_next(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "SILENT_AFTER", PATIENCE)
    pool = NodePool({"base": [hanging.url]}, request_seconds=PATIENCE)
    (node,) = pool.all()
    try:
        hanging.well.clear()
        with pytest.raises(ProviderDown):
            await node.call("eth_chainId", ())
        assert not pool.is_silent("base"), "nobody asks"
        wait_for(node, 30.0)
        asking = asyncio.create_task(node.call("eth_chainId", ()))
        before = hanging.asked
        async with asyncio.timeout(20):
            while hanging.asked == before:
                await asyncio.sleep(0)
        assert pool.is_silent("base")
        hanging.well.set()
        await asyncio.gather(asking, return_exceptions=True)
    finally:
        await pool.close()
