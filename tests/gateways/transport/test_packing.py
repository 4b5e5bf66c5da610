"""Answers of nodes and marketplaces that are packed: once is usual, twice could become any size at once."""

import gzip

import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.node import Node
from gateways.marketplaces.client import MarketWire
from gateways.transport.errors import ProviderDown
from tests.gateways.wire import Wire

ANSWER = b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}'


def packed(times: int) -> web.Response:
    body = ANSWER
    for _ in range(times):
        body = gzip.compress(body)
    return web.Response(body=body, headers={"Content-Encoding": ", ".join(["gzip"] * times)})


async def test_an_answer_may_be_packed_once(server: Wire) -> None:
    node, market = Node(CHAINS["base"], 0, server.url, request_seconds=10.0), MarketWire("OpenSea", {})
    server.says(packed(1))
    assert await node.call("eth_chainId", ()) == "0x1"
    assert await market.read(server.url, "token") == {"jsonrpc": "2.0", "id": 1, "result": "0x1"}
    server.says(packed(2))
    with pytest.raises(ProviderDown, match="could not be decoded"):
        await node.call("eth_chainId", ())
    with pytest.raises(ProviderDown, match="could not be decoded"):
        await market.read(server.url, "token")
    await node.close()
    await market.close()
