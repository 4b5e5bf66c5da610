"""Nodes that accept only small batches or none: asked in as few requests as possible, with the limit remembered."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.catalogue import CHAINS
from gateways.evm.delegate_registry import DelegateRegistry, own_rights
from gateways.evm.rpc import batch_sizes
from gateways.evm.rpc.batch_sizes import BatchRefused, BatchSize
from gateways.evm.rpc.errors import Reverted, RpcRefused, TooMuch, Unsupported
from gateways.evm.rpc.node import Head, Node
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.token_records import EvmRecords
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError
from tests.gateways.wire import Wire

TIER = "Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account"
NONE = "0x" + (32).to_bytes(32, "big").hex() + bytes(32).hex()


class Limited:
    """A node that refuses batches of more than `most` calls, in one of the ways that nodes use."""

    def __init__(self, most: int, refusal: str) -> None:
        self.most, self.refusal = most, refusal
        self.url = ""
        self.sizes = list[int]()
        self.results: dict[str, Any] = {"eth_chainId": "0x2105"}

    async def answer(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        calls = body if isinstance(body, list) else [body]
        self.sizes.append(len(body) if isinstance(body, list) else 0)
        if isinstance(body, list) and len(body) > self.most:
            return self.refuse([call["id"] for call in body])
        said = [self.one(call) for call in calls]
        return web.json_response(said if isinstance(body, list) else said[0])

    def one(self, call: dict[str, Any]) -> dict[str, Any]:
        answer = self.results.get(call["method"], call["params"][0] if call["params"] else "0x")
        if isinstance(answer, dict):
            return {"jsonrpc": "2.0", "id": call["id"], "error": answer}
        return {"jsonrpc": "2.0", "id": call["id"], "result": answer}

    def refuse(self, ids: list[int]) -> web.Response:
        error = {"code": 31, "message": TIER}
        if self.refusal == "an error with HTTP 500":
            return web.json_response({"id": 1, "jsonrpc": "2.0", "error": error}, status=500)
        if self.refusal == "an error":
            return web.json_response({"id": None, "jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})
        if self.refusal == "an error in each place":
            return web.json_response([{"id": n, "jsonrpc": "2.0", "error": error} for n in ids])
        if self.refusal == "one error in a list":
            said = {"code": -32600, "message": "batch too large"}
            return web.json_response([{"id": ids[0], "jsonrpc": "2.0", "error": said}])
        if self.refusal == "one error in a list with HTTP 500":
            return web.json_response([{"id": None, "jsonrpc": "2.0", "error": error}], status=500)
        if self.refusal == "a limit":
            return web.json_response({"error": {"code": -32005, "message": "batch limit exceeded"}}, status=400)
        if self.refusal == "words":
            return web.json_response({"error": "batch requests are not supported"}, status=400)
        return web.Response(status=400, text="Bad Request")


REFUSALS = [
    "an error with HTTP 500", "an error", "an error in each place", "one error in a list",
    "one error in a list with HTTP 500", "a limit", "words", "HTTP 400",
]  # fmt: skip


@pytest.fixture
async def limited(request: pytest.FixtureRequest) -> AsyncIterator[Limited]:
    most, refusal = getattr(request, "param", (3, "an error with HTTP 500"))
    made = Limited(most, refusal)
    app = web.Application()
    app.router.add_post("/", made.answer)
    server = TestServer(app)
    await server.start_server()
    made.url = str(server.make_url("/"))
    yield made
    await server.close()


@pytest.fixture
async def node(limited: Limited) -> AsyncIterator[Node]:
    made = Node(CHAINS["base"], 0, limited.url, request_seconds=10.0)
    yield made
    await made.close()


def echoes(count: int) -> list[tuple[str, tuple[str]]]:
    return [("echo", (f"0x{number:x}",)) for number in range(count)]


ALL = [(most, refusal) for most in (0, 1, 3) for refusal in REFUSALS]


@pytest.mark.parametrize("limited", ALL, indirect=True, ids=[f"{most}, {refusal}" for most, refusal in ALL])
async def test_a_refused_batch_is_asked_in_smaller_ones_and_the_size_is_remembered(
    limited: Limited, node: Node
) -> None:
    wanted = [f"0x{number:x}" for number in range(14)]
    assert await node.batch(echoes(14)) == wanted
    assert node.resting_until == 0.0
    limited.sizes.clear()
    assert await node.batch(echoes(14)) == wanted
    assert all(size <= limited.most for size in limited.sizes)
    assert len(limited.sizes) == -(-14 // max(1, limited.most))
    assert await node.batch(echoes(1)) == ["0x0"]


async def test_a_node_that_takes_whole_batches_is_sent_one(node: Node, limited: Limited) -> None:
    limited.most = 1000
    assert len(await node.batch(echoes(200))) == 200
    assert limited.sizes == [200]
    assert await node.batch([]) == []


async def test_of_two_answers_with_one_number_neither_counts_for_that_call(
    node: Node, limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.most, one = 1000, limited.one
    # The node has mixed up its numbers: it answers the third call with the number of the first.
    monkeypatch.setattr(limited, "one", lambda call: one(call) | {"id": call["id"] if call["id"] != 2 else 0})
    first, second, third, fourth = await node.batch(echoes(4))
    assert (second, fourth) == ("0x1", "0x3")
    assert all(isinstance(one, ProviderConfused) for one in (first, third))


async def test_an_answer_to_one_batch_is_none_to_a_later_one_that_is_as_long(server: Wire) -> None:
    """A proxy may repeat an answer on the connection, where HTTP takes it for that to the next request."""

    def to_the_first() -> web.Response:
        asked = orjson.loads(server.asked[0].body)
        return web.json_response([{"jsonrpc": "2.0", "id": one["id"], "result": "0x0"} for one in asked])

    server.says(to_the_first)
    node = Node(CHAINS["base"], 0, server.url, request_seconds=10.0)
    assert await node.batch(echoes(2)) == ["0x0", "0x0"]
    assert all(isinstance(one, ProviderConfused) for one in await node.batch(echoes(2)))
    await node.close()


async def test_after_an_hour_a_whole_batch_is_tried_again(
    node: Node, limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.batch(echoes(20))
    limited.most = 100
    limited.sizes.clear()
    now = batch_sizes.monotonic()
    monkeypatch.setattr(batch_sizes, "monotonic", lambda: now + 3590.0)
    await node.batch(echoes(20))
    assert max(limited.sizes) <= 3
    limited.sizes.clear()
    monkeypatch.setattr(batch_sizes, "monotonic", lambda: now + 3700.0)
    await node.batch(echoes(20))
    assert limited.sizes == [20]


async def test_what_a_contract_does_is_no_word_against_batches(node: Node, limited: Limited) -> None:
    limited.most = 100
    limited.results["echo"] = {"code": -32000, "message": "out of gas"}
    assert all(isinstance(one, TooMuch) for one in await node.batch(echoes(10)))
    limited.results["echo"] = {"code": 3, "message": "execution reverted"}
    assert all(isinstance(one, Reverted) for one in await node.batch(echoes(10)))
    assert limited.sizes == [10, 10]


@pytest.mark.parametrize("limited", [(0, "an error")], indirect=True)
async def test_a_node_that_refuses_the_calls_themselves_is_not_asked_one_by_one(limited: Limited, node: Node) -> None:
    limited.results["echo"] = {"code": -32601, "message": "the method does not exist"}
    with pytest.raises(RpcRefused):
        await node.batch(echoes(64))
    assert len(limited.sizes) <= 9
    limited.results["echo"] = "0x1"
    limited.most = 100
    limited.sizes.clear()
    await node.batch(echoes(64))
    assert limited.sizes == [64], "nothing was learnt about the size"


async def test_delegations_and_links_are_read_from_a_node_that_takes_three_calls_at_a_time(limited: Limited) -> None:
    limited.results["eth_call"] = NONE
    pool = NodePool({"base": [limited.url]}, request_seconds=10.0)
    registry, records = DelegateRegistry(pool, own_rights("Holdfast")), EvmRecords(pool)
    (only,) = pool.all()

    async def head(not_before_block: int = 0, **_: object) -> Any:
        return Head(7, datetime.now(UTC))

    only.head = head  # type: ignore[method-assign]
    try:
        asked = [f"0x{number:040x}" for number in range(1, 61)]
        sheet = await registry.incoming("base", asked)
        assert dict(sheet.found) == dict.fromkeys(asked, ())
        assert await records.records("base", asked[0], [str(number) for number in range(40)]) == {}
        assert only.resting_until == 0.0
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("limited", "sizes"),
    [((3, "an error with HTTP 500"), [20, 3, 3, 3, 3, 3, 3, 2]), ((3, "an error"), [20, 10, 5, 2])],
    indirect=["limited"],
)
async def test_the_size_that_a_node_says_it_takes_is_tried_next(limited: Limited, node: Node, sizes: list[int]) -> None:
    await node.batch(echoes(20))
    assert limited.sizes[: len(sizes)] == sizes


@given(count=st.integers(1, 60), most=st.integers(1, 20), again=st.integers(1, 60))
async def test_every_call_is_answered_once_and_in_its_place(count: int, most: int, again: int) -> None:
    size, asked = BatchSize(), list[tuple[int, int]]()

    async def ask(start: int, stop: int) -> list[int]:
        asked.append((start, stop))
        if stop - start > most:
            raise BatchRefused("node", "no", status=200)
        return list(range(start, stop))

    assert await size.ask(count, ask) == list(range(count))
    asked.clear()
    assert await size.ask(again, ask) == list(range(again))
    if count > most and size.most is not None:
        assert all(stop - start <= max(most, size.most) for start, stop in asked)


async def test_a_fault_of_the_node_ends_the_question() -> None:
    async def ask(start: int, stop: int) -> list[int]:
        if stop - start > 4:
            raise BatchRefused("node", "no", status=200)
        if start >= 8:
            raise ProviderDown("node", "gone")
        return list(range(start, stop))

    with pytest.raises(ProviderDown):
        await BatchSize().ask(32, ask)


def test_which_refusals_are_about_the_batch() -> None:
    about = batch_sizes.is_about_the_batch
    assert about(Unsupported("node", "invalid request", status=200))
    assert about(ProviderError("node", "JSON-RPC error -32005 (Batch size too large)"))
    assert not about(TooMuch("node", "response size exceeded", status=200))
    assert not about(ProviderDown("node", "HTTP 502"))
