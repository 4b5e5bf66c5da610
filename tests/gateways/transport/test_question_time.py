"""Many questions at one node: each has its whole time, counted from its turn, and ends in any case."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import httpx
import orjson
import pytest

from gateways.evm.rpc.node import CONNECTIONS, FOR_URGENT, Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport import question_time
from gateways.transport.errors import ProviderError
from gateways.transport.fair_turns import FairGate, on_behalf_of
from tests.gateways.clockwork import run

PLACES = CONNECTIONS - FOR_URGENT
DEADLINE = 15.0


class SlowNode(httpx.AsyncBaseTransport):
    """Answers each request after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        body = orjson.loads(await request.aread())
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": body["id"], "result": "0x1"})


def on(node: SlowNode, work: Callable[[NodePool], Coroutine[Any, Any, Any]]) -> Any:
    async def inside() -> Any:
        pool = NodePool({"base": ["https://node.example"]}, deadline=DEADLINE)
        (one,) = pool.all()
        before, one._http.client = one._http.client, httpx.AsyncClient(transport=node)
        try:
            return await work(pool)
        finally:
            await before.aclose()
            await pool.close()

    return run(inside())


async def ask(pool: NodePool, server: int, requests: int) -> tuple[str, float]:
    """Ask one server's question of so many requests; return the outcome and the seconds it took."""

    async def question(node: Node) -> str:
        for _ in range(requests):
            await node.call("eth_chainId", ())
        return "answered"

    begun = asyncio.get_running_loop().time()
    with on_behalf_of(f"server:{server}"):
        try:
            said = await pool.first("base", question)
        except ProviderError as fault:
            said = type(fault).__name__
    return said, asyncio.get_running_loop().time() - begun


def test_questions_beyond_the_places_are_answered_though_they_wait_longer_than_their_deadline() -> None:
    async def work(pool: NodePool) -> list[tuple[str, float]]:
        return await asyncio.gather(*(ask(pool, server, 3) for server in range(4 * PLACES)))

    answers = on(SlowNode(3.0), work)
    assert [said for said, _ in answers] == ["answered"] * (4 * PLACES)
    # The test would prove nothing if every question had been within its deadline.
    assert max(took for _, took in answers) > 2 * DEADLINE


def test_a_question_whose_requests_are_slow_ends_at_its_deadline() -> None:
    async def work(pool: NodePool) -> tuple[str, float]:
        return await ask(pool, 1, 10)

    said, took = on(SlowNode(4.0), work)
    assert (said, took) == ("ProviderDown", pytest.approx(DEADLINE))


def test_a_question_whose_turn_never_comes_ends_after_three_times_its_deadline() -> None:
    async def work(pool: NodePool) -> tuple[str, float]:
        (node,) = pool.all()
        taken = [await node._http.gate.take() for _ in range(PLACES)]
        try:
            return await ask(pool, 1, 1)
        finally:
            for place in taken:
                place.give_back()

    said, took = on(SlowNode(0.1), work)
    assert (said, took) == ("ProviderDown", pytest.approx(3 * DEADLINE))


def test_a_timeout_inside_a_question_is_postponed_by_what_the_question_waits() -> None:
    async def work() -> tuple[float, float, float]:
        loop, gate = asyncio.get_running_loop(), FairGate(1)
        begun = loop.time()
        place = await gate.take()
        loop.call_later(8.0, place.give_back)
        async with question_time.of(begun + 10.0):
            with suppress(TimeoutError):
                async with question_time.timeout_at(begun + 5.0):
                    await asyncio.sleep(1.0)
                    async with gate:
                        await asyncio.sleep(60.0)
            return loop.time() - begun, question_time.now() - begun, gate.taken

    assert run(work()) == (pytest.approx(12.0), pytest.approx(5.0), 0)


def test_those_who_share_a_head_do_not_count_its_wait_for_a_turn() -> None:
    async def work(pool: NodePool) -> list[float]:
        (node,) = pool.all()
        places = [await node._http.gate.take() for _ in range(PLACES)]
        for place in places:
            asyncio.get_running_loop().call_later(2 * DEADLINE, place.give_back)
        begun = asyncio.get_running_loop().time()
        waited = list[float]()

        async def question(node: Node) -> None:
            with suppress(ProviderError):
                await node.head()
            waited.append(question_time.now() - begun)

        async def one() -> None:
            with suppress(ProviderError):
                await pool.first("base", question)

        await asyncio.gather(*(one() for _ in range(3)))
        return waited

    assert on(SlowNode(1.0), work) == [pytest.approx(2.0, abs=1.5)] * 3
