"""Calls to one node by web3.py: they go through the node's own client, and errors mean the same as elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc import node as nodes
from gateways.evm.rpc.errors import Reverted, StateMissing, TooMuch
from gateways.evm.rpc.node import Node
from gateways.transport.errors import (
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from tests.conftest import free_port
from tests.gateways.evm_lab import address
from tests.gateways.wire import Wire

if TYPE_CHECKING:
    from gateways.evm.tokens.web3_calls import Web3Calls


@pytest.fixture
async def node(server: Wire) -> AsyncIterator[Node]:
    made = Node(CHAINS["base"], 0, server.url, request_seconds=30)
    yield made
    await made.close()


def calls(node: Node) -> "Web3Calls":
    # Imported here, as in the product: web3.py takes half a second, and collecting tests needs none of it.
    from gateways.evm.tokens.web3_calls import Web3Calls

    return Web3Calls(node)


async def test_a_node_that_is_not_there_is_down() -> None:
    node = Node(CHAINS["base"], 0, f"http://127.0.0.1:{free_port()}", request_seconds=30)
    asked = calls(node)
    said = await asyncio.gather(*(asked.code(address(number)) for number in range(5)), return_exceptions=True)
    assert {type(one) for one in said} == {ProviderDown}
    await node.close()


@pytest.mark.parametrize("status", [200, 400, 503])
async def test_an_answer_is_read_only_up_to_a_limit(
    server: Wire, node: Node, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(nodes, "LARGEST_ANSWER", 10_000)
    error = {"code": 3, "message": "execution reverted", "data": "0x" + "00" * 10_000}
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}, status=status))
    with pytest.raises(TooMuch, match="the answer is too large"):
        await calls(node).call(address(1), b"")


async def test_a_word_and_code_are_read(server: Wire, node: Node) -> None:
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "result": "0x" + "07".zfill(64)}))
    assert int.from_bytes(await calls(node).call(address(1), b"\1\2")) == 7
    assert '"data":"0x0102"' in server.asked[0].body.replace(" ", "")
    assert len(await calls(node).code(address(1))) == 32


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
    server: Wire, node: Node, status: int, error: object, kind: type[ProviderError]
) -> None:
    answer = web.Response(text="no", status=status)
    if error is not None:
        answer = web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}, status=status)
    answer.headers["Retry-After"] = "7"
    server.says(answer)
    with pytest.raises(kind) as told:
        await calls(node).call(address(1), b"")
    assert type(told.value) is kind
    assert told.value.retry_after == (7.0 if kind in {ProviderBusy, ProviderDown} else None)


@pytest.mark.parametrize("said", [1, True, None, {"code": "0x01"}, ["0x01"], "01", "0x0", "0xzz", "text"])
async def test_an_answer_that_is_no_data_is_neither_code_nor_the_result_of_a_call(
    server: Wire, node: Node, said: object
) -> None:
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "result": said}))
    with pytest.raises(ProviderConfused):
        await calls(node).code(address(1))
    with pytest.raises(ProviderConfused):
        await calls(node).call(address(1), b"")
