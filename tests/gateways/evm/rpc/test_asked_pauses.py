"""Nodes that ask for a pause by Retry-After: after a long one nothing is sent to them until it has passed."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc import node as nodes
from gateways.evm.rpc.failover import all_silent
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.pool import NodePool
from gateways.solana.node import SolanaNode
from gateways.transport import provider_reports
from gateways.transport.connections import GatedClient
from gateways.transport.errors import ProviderBusy, ProviderDown, ProviderError
from gateways.transport.fair_turns import FairGate
from tests.gateways import clockwork
from tests.gateways.wire import Wire

ANSWER = web.json_response({"jsonrpc": "2.0", "id": 1, "result": "0x1"})
REFUSALS = {
    429: web.json_response({"jsonrpc": "2.0", "id": 1, "error": {"code": 429, "message": "slow down"}}, status=429),
    503: web.Response(status=503, text="maintenance"),
}


def asking(status: int, seconds: str) -> web.Response:
    """A refusal that asks for a pause."""
    refusal = REFUSALS[status]
    return web.Response(status=status, body=refusal.body, headers={"Retry-After": seconds})


def evm(url: str) -> Node:
    return Node(CHAINS["base"], 0, url, request_seconds=10)


def solana(url: str) -> SolanaNode:
    return SolanaNode(0, url, request_seconds=10)


@pytest.fixture(params=[evm, solana])
async def node(server: Wire, request: pytest.FixtureRequest) -> AsyncIterator[Node]:
    make: Callable[[str], Node] = request.param
    made = make(server.url)
    yield made
    await made.close()


@pytest.mark.parametrize(("status", "kind"), [(429, ProviderBusy), (503, ProviderDown)])
async def test_a_node_is_left_alone_for_the_pause_that_it_asks_for(
    server: Wire, node: Node, status: int, kind: type[ProviderError]
) -> None:
    provider_reports.read_off_counts()
    server.says(asking(status, "60"), ANSWER)
    with pytest.raises(kind) as first:
        await node.call("eth_chainId", ())
    assert first.value.retry_after == 60
    with pytest.raises(ProviderBusy, match="asked for a pause") as later:
        await node.call("eth_chainId", ())
    assert later.value.retry_after == pytest.approx(60, abs=5)
    counted = provider_reports.read_off_counts()
    assert (len(server.asked), sum(counted[place] for place in counted if place[1] != "throttled")) == (1, 1)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_short_pause_keeps_no_other_request_waiting(server: Wire, node: Node, status: int) -> None:
    server.says(asking(status, "1"), ANSWER)
    with pytest.raises(ProviderError):
        await node.call("eth_chainId", ())
    assert await node.call("eth_chainId", ()) == "0x1"


async def test_a_pause_has_a_longest_time(server: Wire, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LONGEST_PAUSE", 0.0)
    server.says(asking(429, "1790000000"), ANSWER)
    with pytest.raises(ProviderBusy):
        await node.call("eth_chainId", ())
    assert await node.call("eth_chainId", ()) == "0x1"


async def test_another_node_answers_during_a_pause(server: Wire) -> None:
    pool = NodePool({"base": [f"{server.url}/first", f"{server.url}/second"]})
    server.says(asking(429, "60"), ANSWER)
    for _ in range(3):
        assert await pool.first("base", lambda node: node.call("eth_chainId", ())) == "0x1"
    assert [one.path for one in server.asked] == ["/first", *["/second"] * 3]
    await pool.close()


class Overloaded(httpx.AsyncBaseTransport):
    """Asks for a minute's pause, and then answers each request after a second."""

    begun = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self.begun:
            self.begun = True
            return httpx.Response(429, headers={"Retry-After": "60"})
        await asyncio.sleep(1)
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": "0x1"})


def test_a_node_does_not_count_as_silent_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        node = evm("http://overloaded.example")
        monkeypatch.setattr(node, "_http", GatedClient("a node", lambda: http, FairGate(8, 8, 1)))
        for _ in range(7):
            with pytest.raises(ProviderBusy):
                await node.call("eth_chainId", ())
            await asyncio.sleep(9)
        asking = asyncio.create_task(node.call("eth_chainId", ()))
        await asyncio.sleep(0.5)
        assert not all_silent([node])
        assert await asking == "0x1"

    http = httpx.AsyncClient(transport=Overloaded())
    clockwork.run(work())
