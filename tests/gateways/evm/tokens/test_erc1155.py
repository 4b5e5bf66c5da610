"""Named ids of ERC-1155 contracts, read exactly: many owners, many ids, and nodes that do not give the history."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from gateways.chains.token_sheet import IN_TURN, LARGEST_ID
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens import erc1155
from locales.stored_texts import said
from tests.gateways.evm.tokens.test_received_tokens import Item, Lists
from tests.gateways.evm_lab import Front, address, anvil, front, rpc
from tests.gateways.token_lab import ANVIL, collection, mint

MANY = address(1)
OWNERS = [address(10_000 + n) for n in range(800)]
HELD = {OWNERS[0]: {"7": 1}, OWNERS[300]: {"7": 2, "99": 1}, OWNERS[499]: {"450": 3}}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """An ERC-1155 with three holders, followed by many blocks."""

    async def build(url: str) -> None:
        await collection(url, MANY, "ERC1155")
        for owner, held in HELD.items():
            for token, amount in held.items():
                await mint(url, MANY, owner, int(token), amount)
        await rpc(url, "anvil_mine", hex(300))

    with anvil("--gas-limit", "50000000", *ANVIL) as url:
        asyncio.run(build(url))
        yield url


def ten_blocks(call: dict[str, Any], true: Any) -> Any:
    """Return a change that limits logs to ten blocks, where a whole history has too many of them."""
    if call["method"] != "eth_getLogs":
        return true
    asked = call["params"][0]
    if int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) < 10:
        return true
    return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602, "message": "limited to a 10 block range"}}


@pytest.fixture
async def end(node: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Front]:
    monkeypatch.setattr("gateways.evm.tokens.received_tokens.MOST_PIECES", 5)
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as made:
        made.change = ten_blocks
        yield made


@pytest.fixture
async def chains(end: Front) -> AsyncIterator[EvmChains]:
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"base": [end.url]}, deadline=40.0))
        stack.push_async_callback(made.close)
        yield made


@pytest.mark.parametrize(
    ("owners", "ids"),
    [(301, ["0-99"]), (500, ["0-60", "450"]), (500, [str(number * 3) for number in range(151)])],
    ids=["301 owners, a range", "500 owners, a range and one more", "many single ids"],
)
async def test_many_pairs_are_asked_about_exactly_where_history_is_out_of_reach(
    chains: EvmChains, end: Front, owners: int, ids: list[str]
) -> None:
    sheet = await chains.tokens("base", MANY, OWNERS[:owners], token_ids=ids)
    assert sheet.unsure == {}
    bounds = [(int(one.partition("-")[0]), int(one.rpartition("-")[2])) for one in ids]
    for owner in OWNERS[:owners]:
        held = {token: n for token, n in HELD.get(owner, {}).items() if any(a <= int(token) <= b for a, b in bounds)}
        assert sheet.of(owner) == held
    assert "eth_getLogs" not in end.methods()


async def test_owners_that_a_read_has_no_room_for_have_their_turn_in_another(
    chains: EvmChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erc1155, "MOST_PAIRS", 20_000)
    starts = iter((0, 150, 450))
    monkeypatch.setattr(erc1155, "randbelow", lambda _: next(starts))
    known = set[str]()
    for _ in range(3):
        sheet = await chains.tokens("base", MANY, OWNERS[:600], token_ids=["0-99"])
        assert sheet.held.items() <= {owner: held for owner, held in HELD.items() if owner != OWNERS[499]}.items()
        assert len(sheet.unsure) == 400, "a part is known each time"
        assert all(reason.startswith(IN_TURN) for reason in sheet.unsure.values())
        known |= set(OWNERS[:600]) - sheet.unsure.keys()
    assert known == set(OWNERS[:350] + OWNERS[450:600])


async def test_a_range_that_is_too_large_to_ask_about_needs_the_history(chains: EvmChains, end: Front) -> None:
    wanted = [f"5-{LARGEST_ID}"]
    end.change = None
    sheet = await chains.tokens("base", MANY, OWNERS[:20], token_ids=wanted)
    assert (dict(sheet.held), sheet.unsure) == ({OWNERS[0]: {"7": 1}}, {})
    end.change = ten_blocks
    sheet = await chains.tokens("base", MANY, OWNERS[:20], token_ids=wanted)
    assert set(sheet.unsure) == set(OWNERS[:20])
    assert all(said(reason).startswith("its history") for reason in sheet.unsure.values())


async def test_what_there_is_no_time_for_is_unsure_and_the_rest_is_known(
    chains: EvmChains, end: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erc1155, "randbelow", lambda _: 0)
    monkeypatch.setattr(erc1155, "AT_ONCE", 1)
    monkeypatch.setattr(erc1155, "PAIRS_AT_A_TIME", 1_000)
    asked = 0

    def out_of_time(call: dict[str, Any], true: Any) -> Any:
        nonlocal asked
        if call["method"] == "eth_call" and (asked := asked + 1) == 5:
            # Everything after it comes too late for exact questions.
            monkeypatch.setattr(erc1155, "KEPT_FOR_THE_REST", 1_000.0)
        return ten_blocks(call, true)

    end.change = out_of_time
    sheet = await chains.tokens("base", MANY, OWNERS[:100], token_ids=["0-99"])
    assert 0 < len(sheet.unsure) < 100
    assert sheet.of(OWNERS[0]) == {"7": 1}


async def test_each_owners_list_is_read_once_whichever_node_answers_in_the_end(end: Front) -> None:
    asked, owner = list[str](), OWNERS[0]

    class Counted(Lists):
        async def account_nfts(self, chain: str, address: str) -> Lists:
            asked.append(address)
            return self

    async with front(end.node) as other, AsyncExitStack() as stack:
        other.change = ten_blocks
        # The first node fails as soon as it is asked about what the indexer listed.
        end.judge = lambda _: web.Response(status=503) if asked else None
        chains = EvmChains(NodePool({"base": [end.url, other.url]}), Counted([Item(MANY, "7")]))
        stack.push_async_callback(chains.close)
        sheet = await chains.tokens("base", MANY, [owner])
        assert (sheet.endpoint, dict(sheet.of(owner))) == (1, {"7": 1})
    assert asked == [owner]
