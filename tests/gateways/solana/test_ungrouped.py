"""An index that lists assets of a collection, and does not say of them that they are in it, contradicts itself."""

from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
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
