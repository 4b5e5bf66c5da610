"""Decoding a node's logs: what is a transfer, what is not, and what is not a valid answer."""

import json
from collections import Counter
from typing import Any

import orjson
import pytest
from aiohttp import web
from eth_utils.crypto import keccak

from gateways.chains.catalogue import CHAINS
from gateways.evm.log_decoding import Log, Transfer, decode_logs, read_logs
from gateways.evm.rpc.node import Decode, Node
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.transport.errors import ProviderConfused, ProviderError
from tests.gateways.evm.logs import ALICE, BOB, CAROL, CONTRACT, log, topic
from tests.gateways.wire import Wire

DELEGATE_ALL = "0x" + keccak(text="DelegateAll(address,address,bytes32,bool)").hex()
DELEGATE_ERC1155 = "0x" + keccak(text="DelegateERC1155(address,address,address,uint256,bytes32,uint256)").hex()


def answer_of(result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def result_in(answer: object) -> object:
    assert isinstance(answer, dict)
    return answer["result"]


def decoded(result: object) -> object:
    """Return the result as read from a node's bytes."""
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
    """CryptoPunks logs it this way, and so does an ERC-20."""
    logs = [log(TRANSFER, topic(ALICE), topic(BOB)), log(TRANSFER, topic(BOB)), log(TRANSFER)]
    odd = Counter[str]()
    assert read_logs("a node", logs, 1, 9, skipped=odd) == []
    assert read_logs("a node", logs, 1, 9, skipped=odd, coins=True) == [Transfer(7, "0x7", CONTRACT, ALICE, BOB)]
    assert odd == {}


def unindexed(*words: str) -> dict[str, Any]:
    return log(TRANSFER) | {"data": "0x" + "".join(word[2:] for word in words)}


def test_a_transfer_whose_addresses_are_not_indexed_counts_where_the_contract_was_named() -> None:
    """CryptoKitties logs it this way."""
    token = "0x" + f"{7:064x}"
    logs = [unindexed(topic(ALICE), topic(BOB), token), log(TRANSFER, topic(BOB), topic(CAROL), token)]
    found = [Transfer(7, "0x7", CONTRACT, ALICE, BOB), Transfer(7, "0x7", CONTRACT, BOB, CAROL)]
    for said in (logs, decoded(logs)):
        assert read_logs("a node", said, 1, 9, coins=True) == found
        assert read_logs("a node", said, 1, 9) == found[1:]


@pytest.mark.parametrize(
    "words",
    [
        (), (topic(ALICE),), (topic(ALICE), topic(BOB)), ("0x" + 64 * "1", topic(BOB), "0x" + 64 * "0"),
        (topic(ALICE), topic(BOB), topic(CAROL), topic(CAROL)), (topic(ALICE), topic(BOB), "0x" + 64 * "g"),
    ],
)  # fmt: skip
def test_data_that_is_not_two_addresses_and_a_token_is_no_transfer(words: tuple[str, ...]) -> None:
    logs = [unindexed(*words)]
    assert read_logs("a node", decoded(logs), 1, 9, coins=True) == []


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
    """Whatever it holds, the transfers are read unchanged or the answer is not JSON, and the process does not crash."""
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
    """As in the rest of the product: otherwise one reader would see an error where another sees logs."""
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
    """Status, errors and shapes mean the same in the answer that has its own decoder."""
    status, body = ANSWERS[said]
    server.says(web.Response(status=status, body=body))
    node = Node(CHAINS["base"], 0, server.url, request_seconds=5.0)

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
