"""Transfers read from a node's logs: what is one, what is not, and ranges that a node refuses."""

import json
from typing import Any

import orjson
import pytest
from aiohttp import web
from eth_utils.crypto import keccak

from gateways.chain_table import CHAINS
from gateways.errors import ProviderConfused, ProviderError
from gateways.evm import Decode, Node
from gateways.evm_logs import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm_pool import NodePool
from gateways.evm_transfers import Log, Transfer, TransferLogs, decode_logs, read_logs
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
    assert read_logs("a node", typed, 1, 9) == expected
    assert read_logs("a node", logs, 1, 9) == expected


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
