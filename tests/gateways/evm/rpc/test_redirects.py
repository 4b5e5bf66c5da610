"""Nodes that redirect: no address is contacted but the one that the operator set."""

import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.new_heads import NewHeads
from gateways.evm.rpc.node import Node
from gateways.transport.errors import ProviderDown, ProviderError
from tests.gateways.evm_lab import address
from tests.gateways.wire import Wire

REDIRECTS = pytest.mark.parametrize("status", [301, 302, 307, 308])


def redirecting(server: Wire, scheme: str, status: int) -> str:
    """Make the server redirect to another of its paths; return its own address."""
    place = server.url.removeprefix("http://")
    server.says(web.Response(status=status, headers={"Location": f"{scheme}://{place}/elsewhere"}))
    return f"{scheme}://{place}/node"


@REDIRECTS
async def test_calls_go_to_no_other_address(server: Wire, status: int) -> None:
    # Imported here, as in the product: web3.py takes half a second, and collecting tests needs none of it.
    from gateways.evm.tokens.web3_calls import Web3Calls

    node = Node(CHAINS["base"], 0, redirecting(server, "http", status), request_seconds=10.0)
    calls = Web3Calls(node)
    for ask in (calls.code(address(1)), calls.call(address(1), b""), node.call("eth_chainId", ())):
        with pytest.raises(ProviderError):
            await ask
    await node.close()
    assert [one.path for one in server.asked] == ["/node"] * 3


@REDIRECTS
async def test_the_socket_for_new_blocks_is_opened_at_no_other_address(server: Wire, status: int) -> None:
    heads = NewHeads({"base": redirecting(server, "ws", status)})
    with pytest.raises(ProviderDown, match="no connection"):
        await anext(heads.follow("base"))
    assert [one.path for one in server.asked] == ["/node"]
