"""Which newest block of a node is believed: shared requests, jumps, stale heads, wrong clocks, pausing chains."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateways.evm.rpc import head_track
from gateways.evm.rpc import node as evm
from gateways.evm.rpc.head_track import REPEAT_SECONDS, REPEATS, HeadTrack
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport import corrected_clock
from gateways.transport.errors import ProviderConfused, ProviderError
from gateways.transport.fair_turns import on_behalf_of
from gateways.transport.provider_reports import Stale

CHAIN_IDS = {"base": "0x2105", "apechain": hex(33139)}


class Chain:
    """A node whose answers a test sets, with a clock of its own."""

    def __init__(self, chain: str) -> None:
        self.url, self.chain_id = "", CHAIN_IDS[chain]
        self.block, self.age, self.hash = 40_000_000, 1.0, "0x" + "ab" * 32
        self.made: int | None = None
        """When the block was made (Unix seconds), unless `age` gives it."""
        self.clock_ahead = 0.0
        self.dated = True
        self.syncing: Any = False
        self.down = False
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.free.set()

    async def answer(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        self.asked.append(body["method"])
        block = self.block
        await self.free.wait()
        now = datetime.now(UTC)
        results = {
            "eth_chainId": self.chain_id,
            "eth_blockNumber": hex(block),
            "eth_syncing": self.syncing,
            "eth_getBlockByNumber": {
                "number": hex(block), "timestamp": hex(self.made or int(now.timestamp() - self.age)),
                "hash": self.hash,
            },
        }  # fmt: skip
        date = format_datetime(now + timedelta(seconds=self.clock_ahead), usegmt=True)
        said = web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": results[body["method"]]})
        if self.down:
            said = web.Response(status=502)
        # aiohttp adds its own Date where there is none.
        said.headers["Date"] = date if self.dated else "some day"
        return said

    def heads(self) -> int:
        return self.asked.count("eth_getBlockByNumber")


@asynccontextmanager
async def served(chain: str = "base") -> AsyncIterator[Chain]:
    made = Chain(chain)
    app = web.Application()
    app.router.add_post("/", made.answer)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.1)
    made.url = str(server.make_url("/"))
    try:
        yield made
    finally:
        made.free.set()
        await server.close()


class Lab:
    """The nodes of one chain, and a clock for the time between answers that the test moves."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.seconds = 0.0

    async def nodes(self, count: int, chain: str = "base") -> tuple[list[Chain], list[Node]]:
        ends = [await self._stack.enter_async_context(served(chain)) for _ in range(count)]
        pool = NodePool({chain: [one.url for one in ends]}, request_seconds=10.0)
        self._stack.push_async_callback(pool.close)
        return ends, pool.all()


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    async with AsyncExitStack() as stack:
        made = Lab(stack)
        begun = head_track.monotonic()
        for module in (head_track, evm):
            monkeypatch.setattr(module, "monotonic", lambda: begun + made.seconds)
        yield made


@pytest.fixture(autouse=True)
def clocks() -> Iterator[None]:
    corrected_clock.forget()
    yield
    corrected_clock.forget()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.005)


async def refused(asking: Awaitable[object]) -> str:
    with pytest.raises(ProviderConfused) as caught:
        await asking
    return str(caught.value)


@pytest.mark.parametrize("odd", ["a time after the year 9999", "a chain id of a thousand digits"])
async def test_a_node_with_an_absurd_number_is_passed_over(lab: Lab, odd: str) -> None:
    [first, second], _ = await lab.nodes(2)
    if odd.startswith("a time"):
        first.made = 1 << 39
    else:
        first.chain_id = "0x" + "f" * 5_000
    async with AsyncExitStack() as stack:
        pool = NodePool({"base": [first.url, second.url]}, request_seconds=10.0)
        stack.push_async_callback(pool.close)
        found = await pool.first("base", Node.head)
    assert found.block == second.block
    assert first.asked
    assert second.asked


async def test_callers_at_the_same_time_share_a_request(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    before, seen = end.heads(), end.block
    end.free.clear()
    asks = [asyncio.create_task(node.head(seen - 1)) for _ in range(50)]
    await until(lambda: end.heads() == before + 1)
    asks[0].cancel()
    end.free.set()
    assert {head.block for head in await asyncio.gather(*asks[1:])} == {seen}
    assert end.heads() == before + 1
    await node.head()
    assert end.heads() == before + 2, "nobody is given an answer to an earlier request"


async def test_a_shared_answer_is_no_news_to_who_has_seen_its_block(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    end.free.clear()
    first = asyncio.create_task(node.head())
    await until(lambda: "eth_chainId" in end.asked)
    second = asyncio.create_task(node.head(end.block))
    await asyncio.sleep(0)
    end.free.set()
    assert (await first).block == (await second).block
    assert end.heads() == 2


async def test_who_reads_a_second_time_asks_alone(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    before = end.heads()
    end.free.clear()
    asks = [asyncio.create_task(ask) for ask in (node.head(), node.head_since(end.block - 5), node.head(alone=True))]
    await until(lambda: end.heads() == before + 3)
    end.free.set()
    await asyncio.gather(*asks)


async def test_a_fault_is_shared_too_and_not_kept(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    end.down = True
    end.free.clear()
    asks = [asyncio.create_task(node.head()) for _ in range(5)]
    await until(lambda: len(end.asked) == 1)
    end.free.set()
    assert all(isinstance(one, ProviderError) for one in await asyncio.gather(*asks, return_exceptions=True))
    end.down = False
    assert (await node.head()).block == end.block


async def test_an_urgent_caller_does_not_wait_for_a_request_that_is_not(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    end.free.clear()
    ordinary = asyncio.create_task(node.head())
    before = end.heads()
    await until(lambda: end.heads() == before + 1)
    with on_behalf_of("server:1", urgent=True):
        urgent = asyncio.create_task(node.head())
    await until(lambda: end.heads() == before + 2)
    end.free.set()
    await asyncio.gather(ordinary, urgent)


async def test_a_jump_that_time_does_not_allow_is_refused_and_the_next_head_is_believed(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    right, end.block = end.block, 400_000_000
    assert "further ahead" in await refused(node.head())
    for seconds in (10, 20, 100):  # occasionally, from one of several machines behind the address
        lab.seconds += seconds
        end.block = right
        assert (await node.head()).block == right
        end.block = 400_000_000
        assert "further ahead" in await refused(node.head())
    end.block = right + 50
    assert (await node.head()).block == right + 50


async def test_a_jump_that_repeats_for_long_enough_is_the_chains_own(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    end.block = 400_000_000
    for _ in range(5):
        assert "further ahead" in await refused(node.head())
    lab.seconds += 20
    end.block += 10
    assert "further ahead" in await refused(node.head())
    lab.seconds += 11
    end.block += 5
    assert (await node.head()).block == end.block
    assert (await node.head()).block == end.block


async def test_a_node_that_was_not_asked_for_long_may_be_far_ahead(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    lab.seconds += 3_600
    end.block += 1_800
    assert (await node.head()).block == end.block


async def test_at_a_start_a_head_is_compared_with_the_other_nodes(lab: Lab) -> None:
    ends, nodes = await lab.nodes(2)
    ends[0].block = 399_999_995
    assert "further ahead" in await refused(nodes[0].head())
    assert (await nodes[1].head()).block == ends[1].block
    ends[0].block = ends[1].block
    assert (await nodes[0].head()).block == ends[1].block


async def test_a_node_whose_fellow_is_away_is_believed(lab: Lab) -> None:
    ends, nodes = await lab.nodes(2)
    ends[1].down = True
    assert (await nodes[0].head()).block == ends[0].block


async def test_the_chain_is_asked_for_again_after_a_while(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    await node.head()
    await node.head()
    assert end.asked.count("eth_chainId") == 1
    end.chain_id = "0x1"
    lab.seconds += evm.CHAIN_AGAIN + 1
    assert "serves chain 1" in await refused(node.head())
    assert "serves chain 1" in await refused(node.head())
    end.chain_id = "0x2105"
    assert (await node.head()).block == end.block


async def test_a_head_that_no_column_can_store_is_refused_however_long_the_only_node_repeats_it(lab: Lab) -> None:
    """Every answer at such a block would fail when it is stored, and with it those of all other chains beside it."""
    [end], [node] = await lab.nodes(1)
    block, end.block = end.block, 2**63
    for _ in range(REPEATS + 2):
        assert "further ahead" in await refused(node.head())
        lab.seconds += REPEAT_SECONDS
    end.block = block
    assert (await node.head()).block == block


async def test_a_stale_head_is_refused(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1)
    end.age = 200
    assert "s old" in await refused(node.head())


async def test_a_head_dated_in_the_future_is_refused(lab: Lab) -> None:
    """A node that stopped at such a block would otherwise never count as stale."""
    [end], [node] = await lab.nodes(1)
    end.age = -3_600
    assert (await node.head()).block == end.block, "the sequencer may date a block an hour ahead"
    end.age = -86_400
    assert "in the future" in await refused(node.head())


def ahead(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(corrected_clock, "_wall", lambda: datetime.now(UTC) + timedelta(seconds=seconds))


async def test_a_wrong_clock_of_ours_makes_no_head_stale_where_two_hosts_know_better(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ends, nodes = await lab.nodes(2)
    ahead(monkeypatch, 3_600)
    await refused(nodes[1].head())  # a single host is not believed
    assert (await nodes[0].head()).block == ends[0].block
    assert (await nodes[1].head()).block == ends[1].block
    assert "corrected this machine's clock" in caplog.text
    ends[0].age = 200
    with pytest.raises(Stale):
        await nodes[0].head()


async def test_a_clock_of_ours_that_is_behind_makes_no_stale_head_fresh(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, nodes = await lab.nodes(2)
    await asyncio.gather(*(node.head() for node in nodes))
    ahead(monkeypatch, -3_600)
    ends[0].age = 200
    with pytest.raises(Stale):
        await nodes[0].head()


async def test_a_node_whose_own_clock_stood_still_does_not_make_its_head_fresh(lab: Lab) -> None:
    ends, nodes = await lab.nodes(2)
    for end in ends:
        end.age, end.clock_ahead = 400, -400
    ends[1].clock_ahead = 0
    await refused(nodes[0].head())
    with pytest.raises(Stale):
        await nodes[0].head()


def test_the_clock_is_ours_unless_most_hosts_agree_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = 1_000.0
    monkeypatch.setattr(corrected_clock, "_ticks", lambda: ticks)
    wall = datetime(2026, 1, 1, 12, tzinfo=UTC)
    monkeypatch.setattr(corrected_clock, "_wall", lambda: wall)

    def says(host: str, seconds: float) -> None:
        corrected_clock.note(host, {"date": format_datetime(wall + timedelta(seconds=seconds), usegmt=True)})

    def off() -> float:
        return round((corrected_clock.now() - wall).total_seconds())

    says("a", 90)
    assert off() == 0
    says("b", 88)
    assert off() in {89, 90}
    says("c", -300)
    assert off() in {88, 89}
    says("d", -600)
    assert off() == 0, "two of four are not most"
    corrected_clock.forget()
    for host in "abc":
        says(host, 3)
    assert off() == 0, "a few seconds are nothing"
    for host in "def":
        corrected_clock.note(host, {"date": "yesterday"})
        corrected_clock.note(host, {"date": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"})
        corrected_clock.note(host, {})
    assert not corrected_clock.is_right("d")
    assert corrected_clock.is_right("a")
    ticks += 700
    assert not corrected_clock.is_right("a"), "it said so too long ago"


async def test_an_old_head_of_a_chain_that_pauses_counts_where_two_nodes_say_the_same(lab: Lab) -> None:
    ends, nodes = await lab.nodes(2, "apechain")
    for end in ends:
        end.made = int(datetime.now(UTC).timestamp()) - 4_000
    ends[1].made = ends[0].made
    assert (await nodes[0].head()).block == ends[0].block
    ends[1].block = ends[0].block + 1
    await refused(nodes[0].head())
    ends[1].block, ends[1].hash = ends[0].block, "0x" + "cd" * 32
    await refused(nodes[0].head())
    ends[1].hash, ends[1].down = ends[0].hash, True
    await refused(nodes[0].head())


async def test_an_old_head_of_a_chain_that_pauses_counts_for_one_node_that_is_not_syncing(lab: Lab) -> None:
    [end], [node] = await lab.nodes(1, "apechain")
    end.age = 4_000
    assert (await node.head()).block == end.block
    end.syncing = {"currentBlock": "0x1"}
    await refused(node.head())
    end.syncing, end.dated = False, False
    corrected_clock.forget()
    await refused(node.head())


def test_a_track_follows_a_chain_that_starts_again() -> None:
    track = HeadTrack(2.0)
    assert track.block is None
    assert track.believe(1_000_000)
    assert track.believe(5), "going back is judged where it matters"
    assert not track.believe(1_000_000)
    track.seed(7)
    assert track.block == 5
