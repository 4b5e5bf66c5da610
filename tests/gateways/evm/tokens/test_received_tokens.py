"""Tokens that no index lists, found in a node's logs: read in pieces, remembered, never taken as complete too early."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from gateways.chains import token_sheet
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import LARGEST_ID, TokenHints, TokenSheet
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens import any_nft, received_tokens
from gateways.evm.tokens.transfer_history import TransferHistory
from tests.gateways.evm_lab import Front, address, anvil, front, rpc
from tests.gateways.token_lab import ANVIL, collection, mint, move, send_batch

PLAIN, MANY = address(1), address(2)
ANN, BEN, CAT, NOBODY = (address(100 + n) for n in range(4))
OWNERS = [ANN, BEN, CAT, NOBODY]
HUGE = LARGEST_ID - 1
TOKENS = {ANN: {"1": 1, str(HUGE): 1}, BEN: {"2": 1, "3": 1}}
AMOUNTS = {ANN: {"1": 3, "7": 1}, BEN: {"1": 1, "7": 3, str(HUGE): 5}}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """An ERC-721 that cannot enumerate and an ERC-1155, with transfers of one and of several tokens."""

    async def build(url: str) -> None:
        await collection(url, PLAIN, "ERC721")
        await collection(url, MANY, "ERC1155")
        for owner, token in ((ANN, 1), (ANN, 2), (BEN, 3), (ANN, HUGE)):
            await mint(url, PLAIN, owner, token)
        await move(url, PLAIN, ANN, BEN, 2)
        for owner, token, amount in ((ANN, 1, 4), (ANN, 7, 4), (ANN, HUGE, 5), (CAT, 9, 1)):
            await mint(url, MANY, owner, token, amount)
        await send_batch(url, MANY, ANN, BEN, {1: 1, 7: 3, HUGE: 5})
        await send_batch(url, MANY, CAT, address(999), {9: 1})
        await rpc(url, "anvil_mine", hex(200))

    with anvil(*ANVIL) as url:
        asyncio.run(build(url))
        yield url


@dataclass(frozen=True)
class Item:
    contract: str
    token_id: str


@dataclass
class Lists:
    """An indexer that lists these tokens for every account."""

    items: Sequence[Item] = ()
    source: str = "An indexer"

    async def account_nfts(self, chain: str, address: str) -> "Lists":
        return self


@pytest.fixture
def lists() -> Lists:
    return Lists()


@pytest.fixture
async def chains(end: Front, lists: Lists) -> AsyncIterator[EvmChains]:
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"base": [end.url]}, request_seconds=2.0, deadline=9.0), lists)
        stack.push_async_callback(made.close)
        yield made


def sure(sheet: TokenSheet) -> dict[str, dict[str, int]]:
    assert sheet.unsure == {}
    return {owner: dict(sheet.of(owner)) for owner in OWNERS if sheet.of(owner)}


def spans(end: Front) -> list[int]:
    """Return the number of blocks in each request for logs, without the extra requests for consecutive transfers."""
    asked = [call["params"][0] for call in end.calls if call["method"] == "eth_getLogs"]
    asked = [one for one in asked if one["topics"][0] != [received_tokens.CONSECUTIVE]]
    return [int(one["toBlock"], 16) - int(one["fromBlock"], 16) + 1 for one in asked]


def limited(most: int, code: int, message: str) -> Any:
    """Return a change that limits requests for logs to so many blocks."""

    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != "eth_getLogs":
            return true
        asked = call["params"][0]
        if int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) + 1 <= most:
            return true
        return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}

    return change


async def test_tokens_that_no_contract_lists_are_found_in_one_question(chains: EvmChains, end: Front) -> None:
    assert sure(await chains.tokens("base", PLAIN, OWNERS)) == TOKENS
    assert len(spans(end)) == 1
    assert sure(await chains.tokens("base", MANY, OWNERS)) == AMOUNTS
    assert sure(await chains.tokens("base", MANY, OWNERS, token_ids=["5-5000000"])) == {
        ANN: {"7": 1}, BEN: {"7": 3},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32005, "query returned more than 10000 results"),
        (-32602, "eth_getLogs is limited to a 40 block range"),
        (-32000, "exceed maximum block range: 40"),
        (-32602, "Log response size exceeded."),
        (-32701, "exceed maximum block range: 40"),
    ],
)
async def test_pieces_shrink_to_what_the_node_takes(chains: EvmChains, end: Front, code: int, message: str) -> None:
    end.change = limited(40, code, message)
    assert sure(await chains.tokens("base", PLAIN, OWNERS)) == TOKENS
    sheet = await chains.tokens("base", MANY, OWNERS)
    assert sure(sheet) == AMOUNTS
    assert max(spans(end)[-3:]) <= 40, "what the node takes is remembered"


async def test_a_node_that_says_what_it_gives_is_asked_for_that_next(chains: EvmChains, end: Front) -> None:
    end.change = limited(40, -32614, "eth_getLogs is limited to a 40 range")
    assert sure(await chains.tokens("base", MANY, OWNERS)) == AMOUNTS
    assert [size for size in spans(end) if size > 40] == spans(end)[:1]
    assert spans(end)[1] == 40


async def test_what_was_searched_is_not_searched_again(chains: EvmChains, end: Front, node: str) -> None:
    first = await chains.tokens("base", MANY, OWNERS)
    ((low, high),) = first.trails[NOBODY].searched.values()
    assert (low, first.block - high) == (0, received_tokens.SETTLED), "the newest blocks may yet be replaced"
    await mint(node, MANY, NOBODY, 12, 6)
    end.calls.clear()
    again = await chains.tokens("base", MANY, OWNERS, trails=first.trails)
    assert sure(again) == AMOUNTS | {NOBODY: {"12": 6}}
    assert len(spans(end)) == 1
    assert max(spans(end)) <= received_tokens.SETTLED + 3
    known = {owner: TokenHints(trail.ids) for owner, trail in again.trails.items()}
    end.calls.clear()
    other = await chains.tokens("base", MANY, OWNERS, trails=known)
    assert max(spans(end)) > again.block, "what another node searched is searched again"
    assert sure(other) == sure(again)


def lagging(blocks: int, *, says_so: bool, refuses: bool = False) -> Any:
    """Return a node, one of whose machines lacks the newest blocks: it `refuses` them, or gives no logs of them."""

    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] == "eth_chainId":
            return {**true, "result": hex(CHAINS["arbitrum"].chain_id)}
        if call["method"] == "eth_call" and len(call["params"]) > 2:
            # Our program would show the node's own chain.
            return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602, "message": "too many arguments"}}
        if call["method"] == "eth_blockNumber" and says_so:
            return {**true, "result": hex(int(true["result"], 16) - blocks)}
        if call["method"] != "eth_getLogs":
            return true
        if refuses and blocks:
            error = {"code": -32602, "message": "block range extends beyond current head block"}
            return {"jsonrpc": "2.0", "id": call["id"], "error": error}
        last = int(call["params"][0]["toBlock"], 16) - blocks
        return {**true, "result": [log for log in true["result"] if int(log["blockNumber"], 16) <= last]}

    return change


@pytest.fixture
async def fast(end: Front, lists: Lists) -> AsyncIterator[EvmChains]:
    """A chain that makes four blocks a second."""
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"arbitrum": [end.url]}, request_seconds=2.0, deadline=9.0), lists)
        stack.push_async_callback(made.close)
        yield made


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_machine_that_lacks_the_newest_blocks_has_not_searched_them(
    fast: EvmChains, end: Front, node: str, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    monkeypatch.setattr(received_tokens, "PAUSES", (0.0, 0.0))
    owner = address(5_001 + 10 * refuses)
    await mint(node, MANY, owner, 31, 2)
    end.change = lagging(3, says_so=True, refuses=refuses)
    sheet = await fast.tokens("arbitrum", MANY, [owner, NOBODY])
    assert owner in sheet.unsure, "what it holds is unknown, and not nothing"
    assert len(set(spans(end))) == 1, "fewer blocks would be refused too"
    end.change = lagging(0, says_so=True)
    again = await fast.tokens("arbitrum", MANY, [owner], trails=sheet.trails)
    assert (dict(again.of(owner)), again.unsure) == ({"31": 2}, {})


async def test_what_a_lagging_machine_left_out_unnoticed_is_searched_again(
    fast: EvmChains, end: Front, node: str
) -> None:
    owner = address(5_002)
    await mint(node, MANY, owner, 32, 2)
    await rpc(node, "anvil_mine", hex(100))
    end.change = lagging(150, says_so=False)
    sheet = await fast.tokens("arbitrum", MANY, [owner])
    end.change = lagging(0, says_so=False)
    again = await fast.tokens("arbitrum", MANY, [owner], trails=sheet.trails)
    assert (dict(again.of(owner)), again.unsure) == ({"32": 2}, {})


async def test_what_a_node_searched_does_not_count_for_another_in_its_place(
    chains: EvmChains, node: str, lists: Lists
) -> None:
    first = await chains.tokens("base", MANY, OWNERS)
    async with front(node) as other, AsyncExitStack() as stack:
        now = EvmChains(NodePool({"base": [other.url]}, request_seconds=2.0, deadline=9.0), lists)
        stack.push_async_callback(now.close)
        sheet = await now.tokens("base", MANY, OWNERS, trails=first.trails)
        assert max(spans(other)) > first.block
        assert sure(sheet) == sure(first)


def consecutive(owner: str, first: int, last: int) -> Any:
    """Return a node on whose chain an owner got tokens of consecutive ids (ERC-2309), and by no other event."""

    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != "eth_getLogs":
            return true
        asked = call["params"][0]
        topics = [received_tokens.CONSECUTIVE, f"0x{first:064x}", "0x" + 64 * "0", "0x" + 24 * "0" + owner[2:]]
        log = {"address": asked["address"], "blockNumber": asked["toBlock"], "topics": topics, "data": f"0x{last:064x}"}
        fits = asked["topics"][0] == [received_tokens.CONSECUTIVE] and topics[3] in asked["topics"][3]
        return {**true, "result": [log] if fits else []}

    return change


async def test_tokens_that_came_by_a_consecutive_transfer_are_candidates(chains: EvmChains, end: Front) -> None:
    end.change = consecutive(BEN, 1, 5)
    sheet = await chains.tokens("base", PLAIN, [BEN])
    assert sure(sheet) == {BEN: TOKENS[BEN]}, "each is asked about: two of the five are BEN's"
    assert sheet.trails[BEN].ids == frozenset("12345")
    end.change = consecutive(BEN, 1, LARGEST_ID)
    assert sure(await chains.tokens("base", PLAIN, [BEN])) == {BEN: TOKENS[BEN]}, "a range without end is not expanded"


def refused(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    return limited(0, -32601, "the method eth_getLogs is not available")(call, true)


def broken(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    return {**true, "result": [{"address": MANY}]} if call["method"] == "eth_getLogs" else true


def another(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    if call["method"] != "eth_getLogs":
        return true
    return {**true, "result": [{**log, "address": address(77)} for log in true["result"]]}


@pytest.mark.parametrize("change", [refused, broken, another])
async def test_without_usable_logs_what_is_known_is_told_and_the_rest_is_unsure(
    chains: EvmChains, end: Front, change: Any
) -> None:
    end.change = change
    known = {ANN: TokenHints(frozenset({"1"})), BEN: TokenHints(frozenset({"2", "3"}))}
    plain = await chains.tokens("base", PLAIN, OWNERS, trails=known)
    assert (dict(plain.of(ANN)), dict(plain.of(BEN))) == ({"1": 1}, {"2": 1, "3": 1})
    assert set(plain.unsure) == {ANN}, "who has nothing or all is sure by the balance"
    many = await chains.tokens("base", MANY, OWNERS, trails=known)
    assert dict(many.of(ANN)) == {"1": 3}
    assert set(many.unsure) == set(OWNERS)
    assert many.trails[ANN].searched == {}


async def test_a_silent_node_makes_no_tokens_vanish(chains: EvmChains, end: Front) -> None:
    end.change = lambda call, true: {**true, "result": []} if call["method"] == "eth_getLogs" else true
    plain = await chains.tokens("base", PLAIN, OWNERS)
    assert set(plain.unsure) == {ANN, BEN}


async def test_an_indexer_names_tokens_that_the_chain_confirms(chains: EvmChains, end: Front, lists: Lists) -> None:
    end.change = refused
    lists.items = [Item(PLAIN, "1"), Item(PLAIN, str(HUGE)), Item(MANY, "7"), Item(MANY, "9"), Item(address(55), "1")]
    plain = await chains.tokens("base", PLAIN, [ANN, CAT])
    assert (plain.unsure, {owner: dict(ids) for owner, ids in plain.held.items()}) == ({}, {ANN: TOKENS[ANN]})
    many = await chains.tokens("base", MANY, [BEN, CAT])
    assert {owner: dict(ids) for owner, ids in many.held.items()} == {BEN: {"7": 3}}
    assert set(many.unsure) == {BEN, CAT}, "a list is never taken for everything"


async def test_a_history_that_would_take_a_node_for_ever_is_left_alone(
    chains: EvmChains, end: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_tokens, "MOST_PIECES", 20)
    end.change = limited(2, -32600, "You can make eth_getLogs requests with up to a 2 block range")
    await chains.tokens("base", MANY, OWNERS)
    end.calls.clear()
    sheet = await chains.tokens("base", MANY, OWNERS)
    assert set(sheet.unsure) == set(OWNERS)
    assert len(spans(end)) == 0


async def test_a_search_goes_on_where_its_time_was_up(
    chains: EvmChains, end: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    end.change = limited(20, -32005, "query returned more than 10000 results")
    await chains.tokens("base", MANY, OWNERS)  # learns how much the node accepts
    monkeypatch.setattr(received_tokens, "PIECES_A_LOOK", 4)
    monkeypatch.setattr(received_tokens, "unsettled", lambda _: 0)
    sheet = await chains.tokens("base", MANY, OWNERS)
    looks = 1
    while sheet.unsure:
        assert "not been searched in full" in sheet.unsure[ANN]
        sheet = await chains.tokens("base", MANY, OWNERS, trails=sheet.trails)
        looks += 1
    assert 2 < looks < 12
    assert sure(sheet) == AMOUNTS | {owner: dict(sheet.of(owner)) for owner in (NOBODY,) if sheet.of(owner)}


@pytest.mark.parametrize(
    ("listed", "held", "sure_of"),
    [
        ([Item(PLAIN, "1"), Item(MANY, "7")], {f"{PLAIN}:1": 1, f"{MANY}:7": 1}, True),
        ([Item(MANY, "9")], {}, True),
        ([], {}, True),
        ([Item(address(55), "1")], {}, False),
        ([Item("not an address", "1")], {}, False),
        ([Item(PLAIN, str(n)) for n in range(500, 600)], {}, False),  # the contract counts two that no list has
        ([Item(PLAIN, str(n)) for n in range(500, 3_000)], {}, False),
    ],
)
async def test_anything_is_what_is_listed_and_confirmed(
    chains: EvmChains, lists: Lists, listed: list[Item], held: dict[str, int], sure_of: bool
) -> None:
    lists.items = listed
    sheet = await chains.anything("base", [ANN])
    assert dict(sheet.of(ANN)) == held
    assert (not sheet.unsure) == sure_of
    if held:
        lists.items = ()
        again = await chains.anything("base", [ANN], trails=sheet.trails)
        assert dict(again.of(ANN)) == held, "what was found once is looked at again, hidden or not"


async def test_anything_is_unsure_without_an_indexer(end: Front) -> None:
    alone = EvmChains(NodePool({"base": [end.url]}))
    sheet = await alone.anything("base", [ANN])
    await alone.close()
    assert "no indexer" in sheet.unsure[ANN]


async def test_one_index_alone_is_named_and_for_a_loss_the_nodes_logs_are_searched(
    chains: EvmChains, end: Front, node: str
) -> None:
    await rpc(node, "anvil_mine", hex(CHAINS["base"].settled_after + 1))
    first = await chains.anything("base", [ANN, NOBODY])
    assert (dict(first.held), dict(first.unsure)) == ({}, {}), "the list is believed for who has no role to lose"
    assert dict(first.alone) == {ANN: "An indexer", NOBODY: "An indexer"}
    end.calls.clear()
    again = await chains.anything("base", [ANN, BEN], at=ReadPoint(settled=True))
    assert set(again.held) == {ANN, BEN}, "what the index hides is in the logs"
    assert end.methods().count("eth_getLogs") >= 2
    assert not again.alone
    nobody = address(4_000_000)
    sure = await chains.anything("base", [nobody], at=ReadPoint(settled=True))
    assert (dict(sure.held), dict(sure.unsure), dict(sure.alone)) == ({}, {}, {})


async def test_a_node_that_wants_an_address_with_each_search_leaves_the_list_alone(
    chains: EvmChains, end: Front
) -> None:
    end.change = limited(0, -32701, "Please specify an address in your request")
    sheet = await chains.anything("base", [ANN], at=ReadPoint(settled=True))
    assert dict(sheet.alone) == {ANN: "An indexer"}
    assert end.methods().count("eth_getLogs") == 1, "fewer blocks would not help"


async def test_every_token_of_a_trail_is_verified_and_one_that_is_gone_at_a_settled_block_is_dropped(
    chains: EvmChains, node: str
) -> None:
    await rpc(node, "anvil_mine", hex(CHAINS["base"].settled_after + 1))
    gone = [f"{PLAIN}:{number}" for number in range(100, 140)]
    held = max((await chains.tokens("base", PLAIN, [BEN])).of(BEN))
    trail = TokenHints(frozenset([*gone, f"{PLAIN}:{held}"]))
    assert sorted(trail.ids)[any_nft.MOST_VERIFIED - 1] != f"{PLAIN}:{held}"
    sheet = await chains.anything("base", [BEN], trails={BEN: trail})
    assert f"{PLAIN}:{held}" in sheet.of(BEN)
    assert sheet.trails[BEN].ids == trail.ids, "the newest block may yet be replaced"
    settled = await chains.anything("base", [BEN], trails={BEN: trail}, at=ReadPoint(settled=True))
    assert not settled.trails[BEN].dropped, "where the contract answers for no token, none is known to be gone"
    short = TokenHints(frozenset([*gone[:5], f"{PLAIN}:{held}"]))
    settled = await chains.anything("base", [BEN], trails={BEN: short}, at=ReadPoint(settled=True))
    assert (settled.trails[BEN].dropped, settled.trails[BEN].ids) == (set(gone[:5]), {f"{PLAIN}:{held}"})


async def test_tokens_that_a_full_trail_left_out_are_searched_for_again_once_it_has_room(
    chains: EvmChains, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise somebody who has sold the tokens in the trail would seem to hold nothing, whatever was left out."""
    trader, contract = address(300), address(3)
    await collection(node, contract, "ERC721")
    for token in (1, 2, 3):
        await mint(node, contract, trader, token)
    for token in (1, 2):
        await move(node, contract, trader, BEN, token)
    await rpc(node, "anvil_mine", hex(CHAINS["base"].settled_after + received_tokens.unsettled(CHAINS["base"]) + 1))
    for module in (token_sheet, received_tokens):
        monkeypatch.setattr(module, "MOST_IDS_KEPT", 2)
    first = await chains.anything("base", [trader], at=ReadPoint(settled=True))
    assert (first.trails[trader].dropped, dict(first.alone)) == (
        {f"{contract}:1", f"{contract}:2"}, {trader: "An indexer"},
    )  # fmt: skip
    again = await chains.anything("base", [trader], trails=first.trails, at=ReadPoint(settled=True))
    assert dict(again.alone) == {trader: "An indexer"}, "the logs do not show that it holds nothing"


def test_a_trail_that_is_longer_than_it_may_be_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of two servers at the same moment may fill it with different tokens."""
    monkeypatch.setattr(token_sheet, "MOST_IDS_KEPT", 2)
    long = TokenHints(frozenset("abc"))
    assert long.with_ids("defg").ids == long.ids


@pytest.mark.parametrize(("contract", "held"), [(PLAIN, TOKENS), (MANY, AMOUNTS)])
async def test_all_transfers_added_up_are_what_everybody_holds(
    end: Front, contract: str, held: dict[str, dict[str, int]]
) -> None:
    pool = NodePool({"base": [end.url]})
    history = TransferHistory(pool)
    head = await history.settled("base", 0)
    found = await history.read("base", contract, 0, head.block, 0)
    await pool.close()
    owned = Counter[tuple[str, str]]()
    for one in found.moves:
        owned[one.sender, str(one.first_id)] -= one.amount
        owned[one.receiver, str(one.first_id)] += one.amount
    assert (found.last, found.unread) == (head.block, 0)
    # Other tests of this module give tokens to other owners.
    assert {place: amount for place, amount in owned.items() if amount and place[0] in held} == {
        (owner, token): amount for owner, tokens in held.items() for token, amount in tokens.items()
    }
