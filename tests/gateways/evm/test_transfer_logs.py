"""Transfers read from a node's logs: ranges that a node limits, and nodes that refuse or fail."""

import asyncio
import json
import time
import unittest.mock
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from gateways.evm import transfer_logs
from gateways.evm.log_decoding import Transfer
from gateways.evm.rpc import block_ranges
from gateways.evm.rpc.errors import Pruned
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm.transfer_logs import LogRead, TransferLogs
from gateways.transport.errors import ProviderError
from tests.gateways.clockwork import run
from tests.gateways.evm.logs import ALICE, BOB, CONTRACT, log, topic
from tests.gateways.wire import Wire


class Narrow:
    """A node that gives logs of at most so many blocks, and records the requests."""

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
    found = (await TransferLogs(pool).of_contracts("base", [CONTRACT], 1_000, 1_119, 0)).transfers
    await pool.close()
    blocks = [block for first, last in node.given for block in range(first, last + 1)]
    assert blocks == list(range(1_000, 1_120))
    assert [one.block for one in found] == [last for _, last in node.given]
    assert max(last - first + 1 for first, last in node.given) <= most


async def test_a_node_that_fails_is_never_an_empty_list(server: Wire) -> None:
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "internal"}}))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(ProviderError):
        await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, 2, 0)
    await pool.close()


async def test_coins_are_asked_about_certain_wallets_alone(server: Wire) -> None:
    paid = [log(TRANSFER, topic(ALICE), topic(BOB)), log(TRANSFER, topic(ALICE), topic(BOB), topic("0x7"))]
    odd = [log(TRANSFER, topic(ALICE)), log(TRANSFER)]
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "result": paid + odd}))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_coins("base", [CONTRACT], [ALICE, BOB], 1, 9, 0)
    await pool.close()
    assert set(read.transfers) == {Transfer(7, "0x7", CONTRACT, ALICE, BOB)}
    asked = [json.loads(one.body)["params"][0] for one in server.asked]
    who = [topic(ALICE), topic(BOB)]
    assert [(one["address"], one["topics"]) for one in asked] == [
        ([CONTRACT], [TRANSFER, who]), ([CONTRACT], [TRANSFER, None, who]),
    ]  # fmt: skip


async def test_wallets_are_found_as_senders_and_receivers_of_every_event(server: Wire) -> None:
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "result": []}))
    pool = NodePool({"base": [server.url]})
    assert await TransferLogs(pool).of_wallets("base", [ALICE], 1, 2, 0) == LogRead([], 2)
    await pool.close()
    asked = [json.loads(one.body)["params"][0]["topics"] for one in server.asked]
    many = [TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE]
    assert asked == [
        [TRANSFER, [topic(ALICE)]], [TRANSFER, None, [topic(ALICE)]],
        [many, None, [topic(ALICE)]], [many, None, None, [topic(ALICE)]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        {"code": -32000, "message": "request limit reached"},
        {"code": -32000, "message": "You have exceeded your daily request quota for eth_getLogs"},
        {"code": -32603, "message": "Internal error"},
        {"code": -32000, "message": "Internal server error"},
        {"code": -32701, "message": "Please specify an address in your request"},
    ],
)
async def test_what_is_not_about_the_size_is_asked_once(server: Wire, said: dict[str, Any]) -> None:
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "error": said}))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(ProviderError):
        await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, 400, 0)
    await pool.close()
    assert len(server.asked) == 1


async def test_blocks_that_a_node_has_deleted_are_the_fault_of_no_address(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_logs, "STUCK_AFTER", 1)
    error = {"code": 4444, "message": "pruned history unavailable"}
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}))
    pool = NodePool({"base": [server.url]})
    transfers = TransferLogs(pool)
    for _ in range(2):
        with pytest.raises(Pruned):
            await transfers.of_contracts("base", [CONTRACT], 5, 5, 0)
    await pool.close()


async def test_what_a_node_refuses_is_not_tried_again_and_again(server: Wire) -> None:
    """Once the plan's limit is known, requests do not fail; after an hour a larger range is tried."""
    node = Narrow(10)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    transfers = TransferLogs(pool)
    await transfers.of_contracts("base", [CONTRACT], 1, 300, 0)
    learnt, given = len(server.asked), len(node.given)
    await transfers.of_contracts("base", [CONTRACT], 301, 600, 0)
    assert len(server.asked) - learnt == len(node.given) - given == 30
    node.most = 1_000
    with unittest.mock.patch.object(block_ranges, "monotonic", return_value=time.monotonic() + 4_000):
        await transfers.of_contracts("base", [CONTRACT], 601, 1_600, 0)
    await pool.close()
    assert max(last - first + 1 for first, last in node.given) > 50


@pytest.mark.parametrize("most", [10, 37, 499])
async def test_a_node_that_says_how_many_blocks_it_gives_refuses_once(server: Wire, most: int) -> None:
    node = Narrow(most)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, 600, 0)
    await pool.close()
    refused = len(server.asked) - len(node.given)
    assert refused == 1
    assert node.given[0] == (1, most)


async def test_a_node_that_wants_an_address_is_kept_for_contracts(server: Wire) -> None:
    error = {"code": -32701, "message": "Please specify an address in your request"}

    def answer() -> web.Response:
        asked = json.loads(server.asked[-1].body)
        said = {"result": []} if "address" in asked["params"][0] else {"error": error}
        return web.json_response({"jsonrpc": "2.0", "id": 1, **said})

    server.says(answer)
    pool = NodePool({"base": [server.url, server.url + "/second"]})
    transfers = TransferLogs(pool)
    assert list(transfers.for_wallets("base")) == [0, 1]
    with pytest.raises(ProviderError, match="address"):
        await transfers.of_wallets("base", [ALICE], 1, 400, 0)
    assert list(transfers.for_wallets("base")) == [1]
    assert len(server.asked) == 1
    await transfers.of_contracts("base", [CONTRACT], 1, 400, 0)
    await pool.close()
    assert len(server.asked) == 2, "wallets' refusals do not narrow what is asked about contracts"


async def test_what_was_read_before_the_time_is_over_is_kept(server: Wire) -> None:
    """Nodes with narrow ranges get through a long stretch in several reads, instead of starting it again each time."""
    node = Narrow(10)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]}, deadline=0.05)
    transfers, blocks, last = TransferLogs(pool), list[int](), 0
    while last < 1_000:
        try:
            read = await transfers.of_contracts("base", [CONTRACT], last + 1, 1_000, 0)
        except ProviderError:
            continue  # this machine may be too busy for a single request
        blocks += [one.block for one in read.transfers]
        last = read.last
    await pool.close()
    assert blocks == sorted(set(blocks))
    assert len(blocks) >= 100


async def test_a_read_that_is_cancelled_says_nothing_about_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    async def silent(node: Node, method: str, params: Any, decode: object) -> object:
        asked.append(int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1)
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(transfer_logs, "patiently", silent)
    pool = NodePool({"base": ["http://silent.test"]}, deadline=0.2)
    transfers = TransferLogs(pool)
    reads = [asyncio.create_task(transfers.of_contracts("base", [CONTRACT], 1, 400, 0)) for _ in range(2)]
    await asyncio.sleep(0.05)
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)
    assert [read.cancelled() for read in reads] == [True, True]
    for _ in range(2):
        with pytest.raises(ProviderError):
            await transfers.of_contracts("base", [CONTRACT], 1, 400, 0)
    await pool.close()
    assert asked == [400, 400, 400, 50], "but the end of the time for a question does"


def test_more_contracts_than_one_question_has_time_for_are_read_in_fewer_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each request is quick enough, and all those for one stretch of blocks are not."""

    async def slow(node: Node, method: str, params: Any, decode: object) -> object:
        where = params[0]
        blocks = int(where["toBlock"], 16) - int(where["fromBlock"], 16) + 1
        await asyncio.sleep(0.5 + blocks * 0.01)
        return []

    monkeypatch.setattr(transfer_logs, "patiently", slow)
    contracts = [f"0x{number:040x}" for number in range(8 * transfer_logs.CONTRACTS_AT_ONCE)]

    async def read() -> int:
        pool = NodePool({"base": ["http://slow.test"]})
        transfers, last = TransferLogs(pool), 0
        for _ in range(200):
            with suppress(ProviderError):
                last = (await transfers.of_contracts("base", contracts, last + 1, 1_000, 0)).last
        await pool.close()
        return last

    assert run(read()) == 1_000
