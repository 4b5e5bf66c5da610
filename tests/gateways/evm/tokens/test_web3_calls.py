"""The connections of web3.py's calls to one node: made once, and closed."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.node import Node
from gateways.transport.errors import ProviderDown
from tests.conftest import free_port
from tests.gateways.evm_lab import address

if TYPE_CHECKING:
    from gateways.evm.tokens.web3_calls import Web3Calls


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ClientSession]:
    """Every session that is opened."""
    # Imported here, as in the product: web3.py takes half a second, and collecting tests needs none of it.
    from gateways.evm.tokens import web3_calls

    opened = list[ClientSession]()

    def opening(**options: Any) -> ClientSession:
        opened.append(ClientSession(**options))
        return opened[-1]

    monkeypatch.setattr(web3_calls, "ClientSession", opening)
    return opened


def calls() -> "Web3Calls":
    """Calls to a node that is not there."""
    from gateways.evm.tokens.web3_calls import Web3Calls

    node = Node(CHAINS["base"], 0, f"http://127.0.0.1:{free_port()}", request_seconds=30)
    return Web3Calls(node, 30)


async def test_calls_at_once_share_a_session_and_all_are_closed(made: list[ClientSession]) -> None:
    node = calls()
    said = await asyncio.gather(*(node.code(address(number)) for number in range(5)), return_exceptions=True)
    assert {type(one) for one in said} == {ProviderDown}
    assert len(made) == 1
    await node.close()
    assert made[0].closed


async def test_a_call_that_is_cancelled_while_it_connects_leaves_no_session_open(made: list[ClientSession]) -> None:
    node = calls()
    first = asyncio.create_task(node.code(address(1)))
    while not made:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(ProviderDown):
        await node.code(address(2))
    await node.close()
    assert [one.closed for one in made] == [True] * len(made)
