"""How Solana's reader treats an index's unusual answers: odd assets, long lists, contradictions, refusals."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.balance_sheet import Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.evm.rpc import node as evm_node
from gateways.solana import das_lists
from gateways.solana import node as solana_node
from gateways.solana.client import SolanaChains
from gateways.solana.empty_answers import KNOWN_COLLECTION
from gateways.solana.node import SolanaNodes
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown
from tests.gateways.solana.asset_index import COLLECTION, OTHER, OWNER, SOLANA, TOKENS, Index, asset, key
from tests.gateways.solana.asset_index import chains as chains
from tests.gateways.solana.asset_index import no_waiting as no_waiting
from tests.gateways.solana.asset_index import node as node
from tests.gateways.solana_stand_in import StandIn, busy, standing_in


@pytest.mark.parametrize(
    ("odd", "held", "unsure"),
    [
        ({"interface": "SomethingNew"}, False, "not known here"),
        ({"interface": "MplCoreCollection"}, False, None),
        ({"grouping": [{"group_key": "collection", "group_value": COLLECTION, "verified": False}]}, False, None),
        ({"grouping": [{"group_key": "collection", "group_value": None, "verified": False}]}, False, None),
        ({"grouping": [{"group_key": "other", "group_value": COLLECTION}]}, False, None),
        ({"grouping": [{"group_key": "collection", "group_value": OTHER}]}, False, None),
        ({"content": None}, True, None),
    ],
    ids=[
        "a new kind",
        "a collection",
        "unverified",
        "unverified and without a name",
        "another grouping",
        "another collection",
        "without content",
    ],
)
async def test_what_an_odd_asset_counts(
    node: StandIn, chains: SolanaChains, odd: dict[str, Any], held: bool, unsure: str | None
) -> None:
    Index(node, asset(TOKENS[0], **odd), asset(TOKENS[1], OTHER))
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER])
    assert OWNER in sheet.held if held else OWNER not in sheet.held
    assert unsure in sheet.unsure[OWNER] if unsure else sheet.unsure == {}


@pytest.mark.parametrize("missing", ["interface", "id", "grouping", "ownership", "burnt"])
async def test_an_asset_without_what_decides_is_no_answer(node: StandIn, chains: SolanaChains, missing: str) -> None:
    index = Index(node, asset(TOKENS[0]))
    index.bend = lambda items: [{name: value for name, value in one.items() if name != missing} for one in items]
    with pytest.raises(ProviderConfused):
        await chains.tokens(SOLANA, COLLECTION, [OWNER])


async def test_a_list_goes_on_after_a_short_page(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, *(asset(token) for token in TOKENS))
    index.bend = lambda items: items[:7]
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER])
    assert sheet.of(OWNER) == dict.fromkeys(TOKENS, 1)
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, *TOKENS[:10]])
    assert sheet.of(OWNER) == dict.fromkeys(TOKENS, 1)


@pytest.mark.parametrize(
    "ignores", [(), ("before",), ("before", "after"), ("both",)], ids=["keeps", "no end", "no place", "not both"]
)
async def test_a_long_collection_is_read_in_ranges(
    node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch, ignores: tuple[str, ...]
) -> None:
    monkeypatch.setattr(das_lists, "A_PAGE", 10)
    index = Index(node, *(asset(token, OWNER if at % 2 else OTHER) for at, token in enumerate(TOKENS)))
    index.ignores, page = ignores, node.says["getAssetsByGroup"]
    if "both" in ignores:
        node.says["getAssetsByGroup"] = lambda p: {"items": []} if {"before", "after"} <= p.keys() else page(p)
    asking = chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER, *(key(number) for number in range(10))])
    if "after" in ignores:
        with pytest.raises(ProviderConfused, match="repeats itself"):
            await asking
        return
    sheet = await asking
    assert sheet.held == {OWNER: dict.fromkeys(TOKENS[1::2], 1), OTHER: dict.fromkeys(TOKENS[0::2], 1)}
    assert (sheet.unsure, node.count("getAssetsByOwner")) == ({}, 0)
    assert any("before" in params for _, params in node.asked if isinstance(params, dict))


async def test_a_collection_that_is_larger_than_its_askers_wallets_is_left(
    node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(das_lists, "A_PAGE", 2)
    Index(node, *(asset(token, OTHER) for token in TOKENS[1:]), asset(TOKENS[0]))
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, *(key(number) for number in range(5))])
    assert (sheet.held, sheet.unsure) == ({OWNER: {TOKENS[0]: 1}}, {})
    assert node.count("getAssetsByOwner") >= 6


async def test_a_list_that_breaks_off_after_a_full_page_is_not_whole(
    node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(das_lists, "A_PAGE", 10)
    index, pages = Index(node, *(asset(token) for token in TOKENS)), iter(range(100))
    index.bend = lambda items: items if next(pages) == 0 else []
    with pytest.raises(ProviderConfused, match="broke off"):
        await chains.tokens(SOLANA, COLLECTION, [OWNER, *TOKENS[:10]])


async def test_assets_that_the_index_could_not_read_make_its_list_useless(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, asset(TOKENS[0]))
    index.extra = {"errors": [{"id": TOKENS[1], "error": "x"}]}
    with pytest.raises(ProviderConfused, match="could not read"):
        await chains.tokens(SOLANA, COLLECTION, [OWNER])


async def test_a_list_may_be_nested_as_some_documents_show_it(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, asset(TOKENS[0]))
    plain = node.says["getAssetsByOwner"]
    node.says["getAssetsByOwner"] = lambda params: {"assets": plain(params)}
    assert (await chains.tokens(SOLANA, COLLECTION, [OWNER])).of(OWNER) == {index.assets[0]["id"]: 1}


async def test_one_wallets_fault_is_its_own(node: StandIn, chains: SolanaChains) -> None:
    Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER))
    plain = node.says["getAssetsByOwner"]
    refusal = {"error": {"code": -32000, "message": "this wallet cannot be listed"}}
    node.says["getAssetsByOwner"] = lambda params: refusal if params["ownerAddress"] == OWNER else plain(params)
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER])
    assert sheet.held == {OTHER: {TOKENS[1]: 1}}
    assert "cannot be listed" in sheet.unsure[OWNER]


async def test_somebody_elses_assets_on_a_list_make_it_useless(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER))
    plain = node.says["getAssetsByOwner"]
    node.says["getAssetsByOwner"] = lambda params: plain({**params, "ownerAddress": OTHER})
    assert OWNER in (await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER])).unsure
    assert index.assets


@pytest.mark.parametrize("silent", ["everything", "owners' lists"])
@pytest.mark.parametrize("asked", ["a collection", "anything"])
async def test_an_index_that_lists_nothing_for_anybody_is_not_believed(
    node: StandIn, chains: SolanaChains, silent: str, asked: str
) -> None:
    group = [{"group_key": "collection", "group_value": KNOWN_COLLECTION}]
    index = Index(node, asset(TOKENS[0], OTHER), asset(TOKENS[1], OTHER, grouping=group))
    if silent == "everything":
        index.assets.clear()
    else:
        node.says["getAssetsByOwner"] = {"total": 0, "limit": 1000, "items": []}
    asking = chains.anything(SOLANA, [OWNER]) if asked == "anything" else chains.tokens(SOLANA, COLLECTION, [OWNER])
    with pytest.raises(ProviderConfused, match="lists nothing"):
        await asking


async def test_a_list_that_lacks_what_the_index_itself_knows_is_not_believed(
    node: StandIn, chains: SolanaChains
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    for now, certain in (
        (asset(TOKENS[0]), False),
        (asset(TOKENS[0], OTHER), True),
        (asset(TOKENS[0], burnt=True), True),
    ):
        index.known = {TOKENS[0]: now}
        sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], trails={OWNER: TokenHints(frozenset({TOKENS[0]}))})
        assert (OWNER in sheet.unsure, sheet.held) == (not certain, {})
    index.known = {TOKENS[0]: asset(TOKENS[0])}
    trail = TokenHints(frozenset({f"{COLLECTION}:{TOKENS[0]}"}))
    index.assets.append(
        asset(TOKENS[2], OTHER, grouping=[{"group_key": "collection", "group_value": KNOWN_COLLECTION}])
    )
    assert OWNER in (await chains.anything(SOLANA, [OWNER], trails={OWNER: trail})).unsure


async def test_a_token_that_is_somebody_elses_leaves_the_trail_once_that_is_settled(
    node: StandIn, chains: SolanaChains
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    elsewhere, burnt, lost = TOKENS[0], TOKENS[3], TOKENS[4]
    index.known = {elsewhere: asset(elsewhere, OTHER), burnt: asset(burnt, burnt=True)}
    trail = TokenHints(frozenset({elsewhere, burnt}))

    async def looked(before: TokenHints) -> TokenHints:
        return (await chains.tokens(SOLANA, COLLECTION, [OWNER], trails={OWNER: before})).trails[OWNER]

    first = await looked(trail)
    slot = node.slot
    assert (first.ids, first.gone, first.dropped) == (trail.ids, {elsewhere: slot, burnt: slot}, frozenset())
    assert await looked(first) == first, "a quiet look changes nothing"
    index.known[elsewhere] = asset(elsewhere)
    assert elsewhere not in (await looked(first)).gone, "it is the owner's again, whatever the list says"
    index.known[elsewhere] = asset(elsewhere, OTHER)
    node.slot += CHAINS[SOLANA].settled_after
    later = await looked(first.with_ids([lost]))
    assert (later.ids, later.gone, later.dropped) == ({lost}, {}, {elsewhere, burnt})


async def test_a_token_that_moves_between_two_wallets_while_their_lists_are_made_is_not_lost(
    node: StandIn, chains: SolanaChains
) -> None:
    third = key(2**203)
    index = Index(node, asset(TOKENS[1], third))
    index.known = {TOKENS[0]: asset(TOKENS[0], OTHER)}
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER, third], trails=trails)
    assert (sheet.held, set(sheet.unsure)) == ({third: {TOKENS[1]: 1}}, {OTHER})
    index.assets.append(asset(TOKENS[0], OTHER))
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER, third], trails=trails)
    assert (sheet.held, dict(sheet.unsure)) == ({third: {TOKENS[1]: 1}, OTHER: {TOKENS[0]: 1}}, {})


async def test_a_token_on_the_lists_of_two_wallets_counts_for_the_one_that_the_index_names(
    node: StandIn, chains: SolanaChains
) -> None:
    index = Index(node, asset(TOKENS[0]), asset(TOKENS[0], OTHER), asset(TOKENS[1], OTHER))
    index.known = {TOKENS[0]: asset(TOKENS[0], OTHER)}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER])
    assert sheet.held == {OTHER: {TOKENS[0]: 1, TOKENS[1]: 1}}
    assert set(sheet.unsure) == {OWNER}, "its list shows a token of somebody else"
    index.known = {}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER])
    assert (sheet.held, set(sheet.unsure)) == ({OTHER: {TOKENS[1]: 1}}, {OWNER, OTHER})


async def test_each_segment_of_balances_speaks_of_its_own_owners(node: StandIn, chains: SolanaChains) -> None:
    def belonging(index: int, collection: str, owner: str) -> dict[str, Any]:
        return asset(TOKENS[index], owner, grouping=[{"group_key": "collection", "group_value": collection}])

    Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER), belonging(2, OTHER, OWNER))
    segments = [Segment((COLLECTION,), (OWNER,)), Segment((COLLECTION, OTHER), (OTHER,)), Segment((), ())]
    read = await chains.balances(SOLANA, segments)
    confirmed = await chains.balances(SOLANA, segments, at=ReadPoint(endpoint=0))
    for first, second, empty in (read, confirmed):
        assert (first.amount(COLLECTION, OWNER), dict(first.holders(COLLECTION))) == (1, {OWNER: 1})
        assert (second.amount(COLLECTION, OTHER), second.amount(OTHER, OTHER)) == (1, 0)
        assert first.amount(COLLECTION, OTHER) is first.amount(OTHER, OWNER) is second.amount(OTHER, OWNER) is None
        assert (first.unknown(COLLECTION), first.unknown(OTHER), empty.unknown(OTHER)) == (0, 1, 0)
        assert first.block == second.block == empty.block


@pytest.mark.parametrize(("behind", "usable"), [(0, True), (100, True), (300, False)])
async def test_an_index_that_lags_far_behind_its_node_is_not_believed(
    node: StandIn, chains: SolanaChains, behind: int, usable: bool
) -> None:
    index = Index(node, asset(TOKENS[0]))
    index.extra = {"last_indexed_slot": node.slot - behind}
    if not usable:
        with pytest.raises(ProviderConfused, match="behind"):
            await chains.tokens(SOLANA, COLLECTION, [OWNER])
        return
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER])
    assert sheet.block == node.slot - behind
    if behind:
        with pytest.raises(ProviderConfused, match="before"):
            await chains.tokens(SOLANA, COLLECTION, [OWNER], at=ReadPoint(not_before_block=node.slot))


async def test_the_second_endpoint_answers_where_the_first_cannot(node: StandIn) -> None:
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(standing_in())
        Index(node)
        Index(second, asset(TOKENS[0]))
        chains = SolanaChains(SolanaNodes([node.url, second.url]))
        stack.push_async_callback(chains.close)
        sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER])
        assert (sheet.endpoint, sheet.source, sheet.of(OWNER)) == (1, "Solana node 2", {TOKENS[0]: 1})
        with pytest.raises(ProviderConfused):
            await chains.tokens(SOLANA, COLLECTION, [OWNER], at=ReadPoint(endpoint=0))
        assert chains.endpoints(SOLANA) == 2


async def test_an_endpoint_with_a_time_after_the_year_9999_is_passed_over(node: StandIn) -> None:
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(standing_in())
        node.says["getBlockTime"] = 1 << 39
        chains = SolanaChains(SolanaNodes([node.url, second.url]))
        stack.push_async_callback(chains.close)
        assert (await chains.head(SOLANA)).block == second.slot


async def test_the_pace_follows_the_endpoints_limit(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, *(asset(token, key(at)) for at, token in enumerate(TOKENS[:5])))
    plain, refused = node.says["getAssetsByOwner"], iter([True, True] + [False] * 100)
    node.says["getAssetsByOwner"] = lambda params: busy()(None) if next(refused) else plain(params)
    sheet = await chains.tokens(SOLANA, COLLECTION, [key(at) for at in range(5)])
    assert (len(sheet.held), sheet.unsure) == (len(index.assets), {})


async def test_a_long_pause_is_kept_without_asking_again(node: StandIn, chains: SolanaChains) -> None:
    node.says["getSlot"] = busy("60")
    with pytest.raises(ProviderBusy) as told:
        await chains.head(SOLANA)
    assert told.value.retry_after == 60
    asked = len(node.asked)
    with pytest.raises(ProviderBusy):
        await chains.head(SOLANA)
    assert len(node.asked) == asked


async def test_no_pause_lasts_for_years(node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (evm_node, solana_node):
        monkeypatch.setattr(module, "LONGEST_PAUSE", 0.02)
    node.says["getSlot"] = busy("1790000000")
    with pytest.raises(ProviderBusy):
        await chains.head(SOLANA)
    node.says["getSlot"] = node.slot
    await asyncio.sleep(0.05)
    assert (await chains.head(SOLANA)).block == node.slot


async def test_lists_that_do_not_come_in_time_leave_their_owners_unsure(
    node: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER))
    plain = node.says["getAssetsByOwner"]
    monkeypatch.setattr(solana_node, "LONGEST_STEP", 0.05)
    node.says["getAssetsByOwner"] = lambda params: "hang" if params["ownerAddress"] == OWNER else plain(params)
    chains = SolanaChains(SolanaNodes([node.url], request_seconds=9, deadline=1))
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER])
    assert (sheet.held, sheet.unsure) == ({OTHER: {TOKENS[1]: 1}}, {OWNER: "its list did not come in time"})
    await chains.close()


async def test_a_wallet_with_no_end_of_assets_is_unsure(
    node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.solana.holders.MOST_PAGES", 3)
    index = Index(node, *(asset(token) for token in TOKENS))
    index.bend = lambda items: items[:2]
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER])
    assert (len(sheet.of(OWNER)), "too many" in sheet.unsure[OWNER]) == (6, True)


async def test_a_batch_is_asked_for_by_its_other_name_too(node: StandIn, chains: SolanaChains) -> None:
    Index(node)
    node.says["getAssets"] = lambda params: [asset(id_) for id_ in params["ids"]]
    del node.says["getAssetBatch"]
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=[TOKENS[0]])
    assert sheet.of(OWNER) == {TOKENS[0]: 1}


async def test_without_an_endpoint_solana_is_off() -> None:
    chains = SolanaChains(SolanaNodes(()))
    assert chains.endpoints(SOLANA) == 0
    for asking in (chains.head(SOLANA), chains.anything(SOLANA, [OWNER]), chains.contract_name(SOLANA, COLLECTION)):
        with pytest.raises(ProviderDown):
            await asking
