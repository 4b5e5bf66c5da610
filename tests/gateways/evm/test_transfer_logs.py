"""Transfers read from a node's logs: what is one, what is not, and ranges that a node refuses."""

import asyncio
import json
import time
import unittest.mock
from collections import Counter
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from eth_utils.crypto import keccak

from gateways.chains import log_floods
from gateways.chains.catalogue import CHAINS
from gateways.evm import delegate_registry
from gateways.evm.rpc import block_ranges
from gateways.evm.rpc import node as evm
from gateways.evm.rpc.node import Decode, Node
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.token_history import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm.transfer_logs import Log, LogRead, Transfer, TransferLogs, decode_logs, read_logs
from gateways.transport.errors import ProviderConfused, ProviderError
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


def answer_of(result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def result_in(answer: object) -> object:
    assert isinstance(answer, dict)
    return answer["result"]


def decoded(result: object) -> object:
    """The result as it is read from a node's bytes."""
    return result_in(decode_logs(answer_of(result)))


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
    logs = [log(*topics, address=CONTRACT.upper().replace("X", "x"))]
    expected = [Transfer(7, "0x7", CONTRACT, sender, receiver) for sender, receiver in found]
    typed = decoded(logs)
    assert isinstance(typed, list)
    assert isinstance(typed[0], Log)
    assert read_logs("a node", typed, 1, 9, CONTRACT) == expected
    assert read_logs("a node", logs, 1, 9, CONTRACT) == expected


def test_a_transfer_without_an_id_counts_where_the_contract_was_named() -> None:
    """As CryptoPunks writes it; an ERC-20 writes the same."""
    logs = [log(TRANSFER, topic(ALICE), topic(BOB)), log(TRANSFER, topic(BOB)), log(TRANSFER)]
    odd = Counter[str]()
    assert read_logs("a node", logs, 1, 9, skipped=odd) == []
    assert read_logs("a node", logs, 1, 9, skipped=odd, coins=True) == [Transfer(7, "0x7", CONTRACT, ALICE, BOB)]
    assert odd == {}


@pytest.mark.parametrize(
    "odd",
    [
        log(),
        log(DELEGATE_ALL),
        log(DELEGATE_ALL, topic(CAROL)),
        log(DELEGATE_ALL, topic(CAROL), topic(CAROL), address=CONTRACT),
        log(TRANSFER_SINGLE, topic(CAROL)),
        log("0x" + 64 * "9", topic(CAROL), topic(CAROL), topic(CAROL)),
    ],
    ids=["no topic", "no vault", "no delegate", "not the registry's", "no receiver", "another event"],
)
def test_what_a_contract_writes_in_its_own_logs_spoils_nobody_elses(odd: dict[str, Any]) -> None:
    registry, skipped = "0x" + "de" * 20, Counter[str]()
    logs = [odd | {"address": CONTRACT}, log(TRANSFER, topic(ALICE), topic(BOB), "0x" + 64 * "1", address=registry)]
    found = read_logs("a node", decoded(logs), 1, 9, registry, skipped)
    assert found == [Transfer(7, "0x7", registry, ALICE, BOB)]
    assert skipped == {CONTRACT: 1}


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
    with pytest.raises(ProviderConfused) as plain:
        read_logs("a node", answer, 1, 9)
    with pytest.raises(ProviderConfused) as typed:
        read_logs("a node", decoded(answer), 1, 9)
    assert str(typed.value) == str(plain.value)


IGNORED = {
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "lists that do not end": b"[" * 100_000,
    "no number": b"NaN",
    "a number that is too large": b"9" * 6_000,
    "no UTF-8": b'"\xff"',
    "half a character": b'"\\ud800"',
    "no end": b'"',
    "other logs": json.dumps([log(TRANSFER, topic(CAROL), topic(ALICE), "0x2")]).encode(),
}

PASSED_OVER = {"a number that is too large", "no UTF-8", "other logs"}


@pytest.mark.parametrize("held", list(IGNORED))
@pytest.mark.parametrize("place", ["in the answer", "in a log"])
def test_a_field_that_nobody_reads_changes_no_transfer(held: str, place: str) -> None:
    """Whatever it holds: the transfers are those that stand there, or it is no JSON; the process lives on."""
    good = answer_of([log(TRANSFER, topic(ALICE), topic(BOB), "0x1")])
    mark = b'"jsonrpc":' if place == "in the answer" else b'"address":'
    try:
        answer = decode_logs(good.replace(mark, b'"more": ' + IGNORED[held] + b", " + mark))
    except orjson.JSONDecodeError:
        assert held not in PASSED_OVER
        return
    assert held in PASSED_OVER or held.startswith("deep")
    assert read_logs("a node", result_in(answer), 1, 9) == [Transfer(7, "0x7", CONTRACT, ALICE, BOB)]


@pytest.mark.parametrize("name", ["address", "blockHash", "blockNumber"])
@pytest.mark.parametrize("text", [b'"\xff"', b'"\\ud800"', b'"\xed\xa0\x80"', b'"0x\x01"'])
def test_a_field_that_is_read_holds_text_or_the_answer_is_no_json(name: str, text: bytes) -> None:
    one = log(TRANSFER, topic(ALICE), topic(BOB), "0x1") | {name: "HERE"}
    with pytest.raises(orjson.JSONDecodeError):
        decode_logs(answer_of([one]).replace(b'"HERE"', text))


def test_the_last_of_two_fields_with_one_name_counts() -> None:
    """As in all of the product: otherwise one reader would see an error where another sees logs."""
    good = answer_of([log(TRANSFER, topic(ALICE), topic(BOB), "0x1")])
    error = b'"error": {"code": 3, "message": "execution reverted"}'
    for body in (
        good.replace(b'"blockHash":', b'"blockHash": "0x8", "blockHash":'),
        good.replace(b'"blockHash":', b'"blockHash": 8, "blockHash":'),
        good.replace(b'"result":', b'"result": [], "result":'),
        good.replace(b'"id":', error + b', "error": null, "id":'),
    ):
        assert read_logs("a node", result_in(decode_logs(body)), 1, 9) == [Transfer(7, "0x7", CONTRACT, ALICE, BOB)]
    refused = decode_logs(good.replace(b'"id":', b'"error": null, ' + error + b', "id":'))
    assert isinstance(refused, dict)
    assert refused["error"] == {"code": 3, "message": "execution reverted"}


GOOD = answer_of([log(TRANSFER, topic(ALICE), topic(BOB), "0x1")])
ERROR = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "block range is too wide", "data": "0x"}}'
ANSWERS = {
    "logs": (200, GOOD),
    "no logs": (200, answer_of([])),
    "logs beside an empty error": (200, GOOD.replace(b'"id":', b'"error": null, "id":')),
    "logs beside an error that is none": (200, GOOD.replace(b'"id":', b'"error": "", "id":')),
    "logs beside an error": (200, GOOD.replace(b'"id":', b'"error": {"code": 3}, "id":')),
    "logs of another question": (200, GOOD.replace(b'"id": 1', b'"id": 2')),
    "logs of no question": (200, GOOD.replace(b'"id": 1', b'"is": 1')),
    "a true id": (200, GOOD.replace(b'"id": 1', b'"id": true')),
    "an id with a fraction": (200, GOOD.replace(b'"id": 1', b'"id": 1.0')),
    "an id as text": (200, GOOD.replace(b'"id": 1', b'"id": "1"')),
    "logs with a server's error": (500, GOOD),
    "logs that are created": (201, GOOD),
    "logs and 429": (429, GOOD),
    "logs and 403": (403, GOOD),
    "no result": (200, b'{"jsonrpc": "2.0", "id": 1}'),
    "a null result": (200, answer_of(None)),
    "an object for a result": (200, answer_of({})),
    "a number among the logs": (200, answer_of([7])),
    "a number for topics": (200, answer_of([log(TRANSFER) | {"topics": 7}])),
    "a number among the topics": (200, answer_of([log(TRANSFER) | {"topics": [TRANSFER, 1, 2, 3]}])),
    "no topics": (200, answer_of([log()])),
    "an error": (200, ERROR),
    "an error with 400": (400, ERROR),
    "an error with 500": (500, ERROR),
    "a busy node": (200, ERROR.replace(b"block range is too wide", b"rate limit")),
    "a long list": (200, b"[" * 1_000_000),
    "a list": (200, b"[]"),
    "a text": (200, b'"0x"'),
    "null": (200, b"null"),
    "HTML": (200, b"<html>"),
    "half an answer": (200, GOOD[: len(GOOD) // 2]),
    "more than an answer": (200, GOOD + b"{}"),
    "nothing": (200, b""),
}


@pytest.mark.parametrize("said", list(ANSWERS))
async def test_logs_are_answered_as_any_other_question(server: Wire, said: str) -> None:
    """Status, errors and shapes mean the same in the answer that is read in a way of its own."""
    status, body = ANSWERS[said]
    server.says(web.Response(status=status, body=body))
    node = Node(CHAINS["base"], 0, server.url, request_seconds=5.0, stale_after=90.0)

    async def outcome(decode: Decode) -> object:
        try:
            return read_logs(node.name, await node.call("eth_getLogs", (), decode), 1, 9)
        except ProviderError as fault:
            return type(fault), str(fault), fault.retry_after

    typed, plain = await outcome(decode_logs), await outcome(orjson.loads)
    await node.close()
    assert typed == plain
    if said == "logs":
        assert typed == [Transfer(7, "0x7", CONTRACT, ALICE, BOB)]


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
    found = (await TransferLogs(pool).of_contracts("base", [CONTRACT], 1_000, 1_299, 0)).transfers
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


class Crowded:
    """A node of a chain where every contract has so many logs in each block; it refuses answers with more than `most`.

    `refusal` is the JSON-RPC error that it refuses with, or an HTTP status.
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
    """What is read of one block, by the first of so many tries that does not fail."""
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
    """26,000 empty logs are some 10 MB on the wire; the limit is scaled down with the flood."""
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
    monkeypatch.setattr(log_floods, "MOST_OF_ONE", 100)
    node = Crowded(10**9, CAPPED, c1=100, c2=101, c3=60)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]})
    read = await TransferLogs(pool).of_contracts("base", [C1, C2, C3], 7, 8, 0)
    assert read.excessive == {C2: "101 logs in one block"}
    assert Counter(one.contract for one in read.transfers) == {C1: 200, C3: 120}
    assert (read.last, len(server.asked)) == (8, 1)
    # Many blocks may have more in sum.
    read = await TransferLogs(pool).of_contracts("base", [C1, C3], 7, 9, 0)
    await pool.close()
    assert (len(read.transfers), read.excessive) == (480, {})


async def test_the_registry_of_delegations_is_never_too_much_for_its_logs_alone(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_floods, "MOST_OF_ONE", 1)
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
        pool = NodePool({"base": [str(told.make_url("/"))]}, request_seconds=0.5)
        read = await read_until(TransferLogs(pool), [C1, C2, C3, C4], tries=12)
        await pool.close()
    assert list(read.excessive) == [C2]
    assert {one.contract for one in read.transfers} == {C1, C3, C4}


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


async def test_what_a_node_refuses_is_not_tried_again_and_again(server: Wire) -> None:
    """Once the plan's limit is found, requests do not fail; after an hour it is tried whether there is a better one."""
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
    await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, 2_000, 0)
    await pool.close()
    refused = len(server.asked) - len(node.given)
    assert refused == 1
    assert node.given[0] == (1, most)


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
    """Nodes with narrow ranges get through a long stretch in several reads, instead of beginning it again each time."""
    node = Narrow(10)
    server.says(lambda: node.answer(server.asked[-1].body))
    pool = NodePool({"base": [server.url]}, deadline=0.05)
    transfers, blocks, last = TransferLogs(pool), list[int](), 0
    while last < 2_000:
        try:
            read = await transfers.of_contracts("base", [CONTRACT], last + 1, 2_000, 0)
        except ProviderError:
            continue  # this machine may be too busy for a single request
        blocks += [one.block for one in read.transfers]
        last = read.last
    await pool.close()
    assert blocks == sorted(set(blocks))
    assert len(blocks) >= 200
