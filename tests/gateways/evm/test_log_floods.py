"""Blocks with more logs than a node gives or we accept: the contract at fault, and the contracts it must not hide."""

import asyncio
import json
import time
import unittest.mock
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateways.chains.catalogue import CHAINS
from gateways.evm import delegate_registry, transfer_logs
from gateways.evm.rpc import block_ranges
from gateways.evm.rpc import node as evm
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.event_topics import TRANSFER
from gateways.evm.transfer_logs import LogRead, TransferLogs
from gateways.transport.errors import ProviderError
from tests.gateways.evm.logs import ALICE, BOB, log, topic
from tests.gateways.wire import Wire


class Crowded:
    """A node on whose chain every contract has so many logs a block; it refuses answers with more than `most`.

    `refusal` is the JSON-RPC error or the HTTP status with which it refuses.
    """

    def __init__(self, most: int, refusal: dict[str, Any] | int, **logs: int) -> None:
        self.most, self.refusal = most, refusal
        self.logs = {f"0x{name.removeprefix('c') * 40}": count for name, count in logs.items()}
        self.refused = 0
        self.asked = 0

    def answer(self, body: str) -> web.Response:
        asked = json.loads(body)
        found: object = "0x2105"
        if asked["method"] == "eth_getLogs":
            self.asked += 1
            first, last = (int(asked["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
            wanted = asked["params"][0]["address"]
            count = sum(self.logs.get(contract, 0) for contract in wanted) * (last - first + 1)
            if count > self.most:
                self.refused += 1
                if isinstance(self.refusal, int):
                    return web.Response(status=self.refusal)
                return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "error": self.refusal})
            found = [
                log(TRANSFER, topic(ALICE), topic(BOB), "0x1", block=block, address=contract)
                for block in range(first, last + 1)
                for contract in wanted
                for _ in range(self.logs.get(contract, 0))
            ]
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": found})


C1, C2, C3, C4 = ("0x" + digit * 40 for digit in "1234")
CAPPED = {"code": -32005, "message": "query returned more than 10000 results"}


async def read_until(transfers: TransferLogs, contracts: list[str], *, tries: int = 1) -> LogRead:
    """Return the first successful read of one block within so many tries."""
    for _ in range(tries - 1):
        try:
            return await transfers.of_contracts("base", contracts, 7, 7, 0)
        except ProviderError:
            continue
    return await transfers.of_contracts("base", contracts, 7, 7, 0)


@pytest.mark.parametrize("refusal", [CAPPED, {"code": -32000, "message": "no"}, 413, 400, 502])
async def test_a_contract_that_is_too_much_in_one_block_hides_nobody_elses_transfers(
    server: Wire, refusal: dict[str, Any] | int
) -> None:
    node = Crowded(100, refusal, c1=1, c2=150, c3=2, c4=60)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    read = await read_until(TransferLogs(pool), [C1, C2, C3, C4], tries=12)
    await pool.close()
    assert list(read.excessive) == [C2]
    assert {one.contract for one in read.transfers} == {C1, C3, C4}
    assert read.last == 7


async def test_what_is_too_much_only_together_is_read_in_parts(server: Wire) -> None:
    node = Crowded(100, CAPPED, c1=60, c2=60, c3=60)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_contracts("base", [C1, C2, C3], 7, 8, 0)
    await pool.close()
    assert len(read.transfers) == 360
    assert not read.excessive


async def test_an_answer_that_is_too_large_for_us_is_its_contracts_fault(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """26,000 empty logs are about 10 MB on the wire; the test scales the limit down with the flood."""
    monkeypatch.setattr(evm, "LARGEST_ANSWER", 60_000)
    node = Crowded(10**9, CAPPED, c1=1, c2=2_600)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_contracts("base", [C1, C2, C3], 7, 7, 0)
    await pool.close()
    assert list(read.excessive) == [C2]
    assert len(read.transfers) == 1


async def test_a_contract_that_fills_blocks_with_logs_is_too_much_although_the_node_gives_them(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_logs, "MOST_OF_ONE", 100)
    node = Crowded(10**9, CAPPED, c1=100, c2=101, c3=60)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_contracts("base", [C1, C2, C3], 7, 8, 0)
    assert read.excessive == {C2: "101 logs in one block"}
    assert Counter(one.contract for one in read.transfers) == {C1: 200, C3: 120}
    assert (read.last, len(server.asked)) == (8, 1)
    # Many blocks may have more in total.
    read = await TransferLogs(pool).of_contracts("base", [C1, C3], 7, 9, 0)
    await pool.close()
    assert (len(read.transfers), read.excessive) == (480, {})


async def test_the_registry_of_delegations_is_never_too_much_for_its_logs_alone(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_logs, "MOST_OF_ONE", 1)
    registry = (CHAINS["base"].delegates or "").lower()
    changed = [log(delegate_registry.CHANGED[0], topic(ALICE), topic(BOB), address=registry) for _ in range(3)]
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "result": changed}))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_contracts("base", [C1, registry], 7, 7, 0)
    await pool.close()
    assert (len(read.transfers), read.excessive) == (3, {})


@pytest.mark.parametrize("contracts", [[C1], [C1, C2, C3]])
async def test_a_node_that_refuses_every_log_of_a_block_blames_no_contract(server: Wire, contracts: list[str]) -> None:
    node = Crowded(-1, CAPPED)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(ProviderError, match="10000 results"):
        await TransferLogs(pool).of_contracts("base", contracts, 7, 7, 0)
    await pool.close()


async def test_a_contract_whose_logs_are_never_answered_in_time_is_found_out(server: Wire) -> None:
    node = Crowded(100, CAPPED, c1=1, c2=150, c3=2, c4=60)

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = node.answer(await request.text())
        if b"error" in (answer.body if isinstance(answer.body, bytes) else b""):
            await asyncio.sleep(30)
        return answer

    app = web.Application()
    app.router.add_post("/", slow)
    async with TestServer(app) as told:
        pool = NodePool({"base": [str(told.make_url("/"))]}, request_seconds=1.5)
        read = await read_until(TransferLogs(pool), [C1, C2, C3, C4], tries=12)
        await pool.close()
    assert list(read.excessive) == [C2]
    assert {one.contract for one in read.transfers} == {C1, C3, C4}


async def test_a_crowded_block_makes_requests_narrow_for_a_moment_only(server: Wire) -> None:
    node = Crowded(100, CAPPED, c1=1)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    transfers = TransferLogs(pool)
    await transfers.of_contracts("base", [C1], 1, 400, 0)
    node.logs = {}
    with unittest.mock.patch.object(block_ranges, "monotonic", return_value=time.monotonic() + 100):
        await transfers.of_contracts("base", [C1], 401, 1_400, 0)
        node.asked = 0
        await transfers.of_contracts("base", [C1], 1_401, 1_700, 0)
    await pool.close()
    assert node.asked <= 2
