"""Transfers read from a node's logs: what is one, what is not, and ranges that a node refuses."""

import json
from typing import Any

import pytest
from aiohttp import web
from eth_utils.crypto import keccak

from gateways.errors import ProviderConfused, ProviderError
from gateways.evm_logs import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm_pool import NodePool
from gateways.evm_transfers import Transfer, TransferLogs, read_logs
from tests.gateways.wire import Wire

ALICE, BOB, CAROL = ("0x" + digit * 40 for digit in "abc")
CONTRACT = "0x" + "77" * 20
DELEGATE_ALL = "0x" + keccak(text="DelegateAll(address,address,bytes32,bool)").hex()
DELEGATE_ERC1155 = "0x" + keccak(text="DelegateERC1155(address,address,address,uint256,bytes32,uint256)").hex()


def topic(address: str) -> str:
    return "0x" + 24 * "0" + address[2:]


def log(*topics: str, block: int = 7, address: str = CONTRACT) -> dict[str, Any]:
    return {
        "address": address,
        "topics": list(topics),
        "blockNumber": hex(block),
        "blockHash": f"0x{block}",
        "data": "0x",
    }


@pytest.mark.parametrize(
    ("topics", "found"),
    [
        ((TRANSFER, topic(ALICE), topic(BOB), "0x" + 64 * "1"), [(ALICE, BOB)]),
        ((TRANSFER, topic(ALICE), topic(BOB)), []),
        ((TRANSFER_SINGLE, topic(CAROL), topic(ALICE), topic(BOB)), [(ALICE, BOB)]),
        ((TRANSFER_BATCH, topic(CAROL), topic(ALICE), topic(BOB)), [(ALICE, BOB)]),
        ((CONSECUTIVE, "0x" + 64 * "1", topic(ALICE), topic(BOB)), [(ALICE, BOB)]),
        ((DELEGATE_ALL, topic(ALICE), topic(BOB)), [(ALICE, BOB)]),
        ((DELEGATE_ERC1155, topic(ALICE), topic(BOB), topic(CAROL)), [(ALICE, BOB)]),
    ],
    ids=[
        "an ERC-721 token",
        "ERC-20 money",
        "one ERC-1155 token",
        "several ERC-1155 tokens",
        "consecutive ERC-721 tokens",
        "a delegation of everything",
        "a delegation of a token",
    ],
)
def test_a_log_is_a_transfer_or_something_else(topics: tuple[str, ...], found: list[tuple[str, str]]) -> None:
    read = read_logs("a node", [log(*topics, address=CONTRACT.upper().replace("X", "x"))], 1, 9)
    assert read == [Transfer(7, "0x7", CONTRACT, sender, receiver) for sender, receiver in found]


@pytest.mark.parametrize(
    "answer",
    [
        None, {}, "0x", [{}], [{"topics": 7}], [None], [log(TRANSFER, "0x1", "0x2", "0x3")],
        [log(TRANSFER, topic(ALICE), topic(BOB), "0x1", block=10)],
        [log(TRANSFER, topic(ALICE), topic(BOB)) | {"blockNumber": 7}],
        [log(TRANSFER, topic(ALICE), topic(BOB)) | {"blockNumber": None}],
        [log(TRANSFER, topic(ALICE), topic(BOB)), log(TRANSFER, topic(ALICE), topic(BOB)) | {"blockNumber": ""}],
    ],
)  # fmt: skip
def test_what_is_no_list_of_the_blocks_logs_is_refused(answer: object) -> None:
    with pytest.raises(ProviderConfused):
        read_logs("a node", answer, 1, 9)


class Narrow:
    """A node that gives logs of at most so many blocks, and remembers what it was asked."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.given: list[tuple[int, int]] = []

    def answer(self, body: str) -> web.Response:
        asked = json.loads(body)
        if asked["method"] != "eth_getLogs":
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": "0x2105"})
        first, last = (int(asked["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        if last - first + 1 > self.most:
            error = {
                "code": -32602,
                "message": f"You can make eth_getLogs requests with up to a {self.most} block range",
            }
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        self.given.append((first, last))
        logs = [log(TRANSFER, topic(ALICE), topic(BOB), "0x1", block=last)]
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": logs})


@pytest.mark.parametrize("most", [1, 10, 99, 10_000])
async def test_a_range_is_cut_into_what_the_node_takes(server: Wire, most: int) -> None:
    node = Narrow(most)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    found = await TransferLogs(pool).of_contracts("base", [CONTRACT], 1_000, 1_299, 0)
    await pool.close()
    blocks = [block for first, last in node.given for block in range(first, last + 1)]
    assert blocks == list(range(1_000, 1_300))
    assert [one.block for one in found] == [last for _, last in node.given]
    assert max(last - first + 1 for first, last in node.given) <= most


async def test_a_node_that_fails_is_never_an_empty_list(server: Wire) -> None:
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "internal"}}))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(ProviderError):
        await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, 2, 0)
    await pool.close()


async def test_wallets_are_found_as_senders_and_receivers_of_every_event(server: Wire) -> None:
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "result": []}))
    pool = NodePool({"base": [server.url]})
    assert await TransferLogs(pool).of_wallets("base", [ALICE], 1, 2, 0) == []
    await pool.close()
    asked = [json.loads(one.body)["params"][0]["topics"] for one in server.asked]
    many = [TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE]
    assert asked == [
        [TRANSFER, [topic(ALICE)]], [TRANSFER, None, [topic(ALICE)]],
        [many, None, [topic(ALICE)]], [many, None, None, [topic(ALICE)]],
    ]  # fmt: skip
