"""An index that does not say of an asset that it is in its collection: a contradiction, or something it has lost."""

from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.solana.client import SolanaChains
from gateways.transport.errors import ProviderConfused
from tests.gateways.solana.asset_index import COLLECTION, OTHER, OWNER, SOLANA, TOKENS, Index, asset, key
from tests.gateways.solana.asset_index import chains as chains
from tests.gateways.solana.asset_index import no_waiting as no_waiting
from tests.gateways.solana.asset_index import node as node
from tests.gateways.solana_stand_in import StandIn

MANY = [OWNER, OTHER, *(key(number) for number in range(1, 10))]
FOREIGN = [{"group_key": "collection", "group_value": OTHER}]


@pytest.mark.parametrize("grouping", [[], FOREIGN], ids=["no group", "another collection"])
@pytest.mark.parametrize("endpoint", [None, 0])
async def test_its_owner_is_not_found_to_hold_nothing(
    node: StandIn, chains: SolanaChains, grouping: Any, endpoint: int | None
) -> None:
    index = Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER))
    index.bend = lambda items: [one | {"grouping": grouping} if one["id"] == TOKENS[0] else one for one in items]
    sheet = await chains.tokens(SOLANA, COLLECTION, MANY, at=ReadPoint(endpoint))
    assert OWNER in sheet.unsure
    assert sheet.held == {OTHER: {TOKENS[1]: 1}}
    assert sheet.unsure.keys() == {OWNER}, "what somebody else has is not in doubt"


async def test_no_wallets_list_is_believed_while_it_says_so_of_all_of_them(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER))
    index.bend = lambda items: [one | {"grouping": []} for one in items]
    with pytest.raises(ProviderConfused, match="contradicts itself"):
        await chains.tokens(SOLANA, COLLECTION, [OWNER])


async def test_a_member_that_the_collection_has_not_confirmed_counts_for_nobody(
    node: StandIn, chains: SolanaChains
) -> None:
    group = {"group_key": "collection", "group_value": COLLECTION, "verified": False}
    Index(node, asset(TOKENS[0], grouping=[group]), asset(TOKENS[1], OTHER))
    sheet = await chains.tokens(SOLANA, COLLECTION, MANY)
    assert (sheet.held, sheet.unsure) == ({OTHER: {TOKENS[1]: 1}}, {})


def lost(index: Index, **changed: Any) -> None:
    """Let the index lose the collection of the first token, and change more about it."""
    index.assets[0] |= {"grouping": [], **changed}
    index.known = {one["id"]: one for one in index.assets}


@pytest.mark.parametrize("endpoint", [None, 0])
async def test_a_token_that_was_in_the_collection_and_is_in_none_now_is_not_gone(
    node: StandIn, chains: SolanaChains, endpoint: int | None
) -> None:
    lost(Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER)))
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}
    for owners in ([OWNER, OTHER], MANY):
        sheet = await chains.tokens(SOLANA, COLLECTION, owners, trails=trails, at=ReadPoint(endpoint))
        assert sheet.unsure == {OWNER: "the index does not say whether one of its tokens is in the collection"}
        assert sheet.held == {OTHER: {TOKENS[1]: 1}}
        assert sheet.trails[OWNER] == trails[OWNER], "it is asked about again"


@pytest.mark.parametrize("interface", ["FungibleAsset", "FungibleToken"])
@pytest.mark.parametrize("endpoint", [None, 0])
async def test_a_token_that_the_index_calls_a_coin_now_is_not_gone_from_its_owner(
    node: StandIn, chains: SolanaChains, endpoint: int | None, interface: str
) -> None:
    index = Index(node, asset(TOKENS[0], interface=interface), asset(TOKENS[1], OTHER))
    index.known = {one["id"]: one for one in index.assets}
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}
    at = ReadPoint(endpoint)
    for owners in ([OWNER, OTHER], MANY):
        sheet = await chains.tokens(SOLANA, COLLECTION, owners, trails=trails, at=at)
        assert (sheet.held, sheet.unsure.keys()) == ({OTHER: {TOKENS[1]: 1}}, {OWNER})
        assert sheet.trails[OWNER] == trails[OWNER], "it is asked about again"
    assert OWNER in (await chains.anything(SOLANA, [OWNER], trails=trails, at=at)).unsure
    single = await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=TOKENS[:1], trails=trails, at=at)
    assert single.unsure.keys() == {OWNER}
    index.assets[0] |= {"ownership": asset("", OTHER)["ownership"]}
    for ids in ((), TOKENS[:1]):
        sold = await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=ids, trails=trails, at=at)
        assert (sold.held, sold.unsure) == ({}, {})


@pytest.mark.parametrize(
    "changed",
    [{"ownership": asset("", OTHER)["ownership"]}, {"burnt": True}, {"grouping": FOREIGN}],
    ids=["sold", "burnt", "in another collection"],
)
async def test_a_token_that_the_index_says_has_gone_is_gone(node: StandIn, chains: SolanaChains, changed: Any) -> None:
    lost(Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER)), **changed)
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], trails=trails)
    assert (sheet.held, sheet.unsure) == ({}, {})
    assert sheet.trails[OWNER].gone.keys() == {TOKENS[0]}


async def test_a_named_token_without_a_collection_leaves_its_owner_unsure(node: StandIn, chains: SolanaChains) -> None:
    lost(Index(node, asset(TOKENS[0]), asset(TOKENS[1], OTHER)))
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER, OTHER], token_ids=TOKENS[:2])
    assert sheet.unsure.keys() == {OWNER}
    assert sheet.held == {OTHER: {TOKENS[1]: 1}}
