"""Calls to one node by web3.py: connections are made once and closed, errors mean the same as elsewhere."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.errors import Reverted, StateMissing
from gateways.evm.rpc.node import Node
from gateways.transport.errors import ProviderBusy, ProviderDown, ProviderError, ProviderRefused, Unauthorized
from tests.conftest import free_port
from tests.gateways.evm_lab import address
from tests.gateways.wire import Wire

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


def calls(url: str = "") -> "Web3Calls":
    """Calls to the node at this URL; without one, to a node that is not there."""
    from gateways.evm.tokens.web3_calls import Web3Calls

    place = url or f"http://127.0.0.1:{free_port()}"
    return Web3Calls(Node(CHAINS["base"], 0, place, request_seconds=30), 30)


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


REVERT = {"code": 3, "message": "execution reverted", "data": "0x"}
USED_UP = {"code": 429, "message": "Monthly capacity limit exceeded."}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (200, REVERT, Reverted),
        (400, REVERT, Reverted),
        (500, REVERT, Reverted),
        (500, {"code": -32000, "message": "header not found"}, StateMissing),
        (429, {"code": -32005, "message": "slow down"}, ProviderBusy),
        (403, USED_UP, ProviderBusy),
        (403, {"code": -32000, "message": "Must be authenticated!"}, Unauthorized),
        (401, None, Unauthorized),
        (402, None, ProviderBusy),
        (404, None, ProviderRefused),
        (503, None, ProviderDown),
    ],
)
async def test_an_error_means_the_same_whatever_its_status(
    server: Wire, status: int, error: object, kind: type[ProviderError]
) -> None:
    answer = web.Response(text="no", status=status)
    if error is not None:
        answer = web.json_response({"jsonrpc": "2.0", "id": 0, "error": error}, status=status)
    answer.headers["Retry-After"] = "7"
    server.says(answer)
    node = calls(server.url)
    with pytest.raises(kind) as told:
        await node.call(address(1), b"")
    await node.close()
    assert type(told.value) is kind
    assert told.value.retry_after == (7.0 if status == 429 else None)
