"""The owners of a whole collection, page by page, including lists that an index ends too early."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateways.solana.collection_owners import CollectionOwners, OwnersPage
from gateways.solana.node import SolanaNodes
from gateways.transport.errors import ProviderConfused, ProviderError
from tests.gateways.solana.asset_index import COLLECTION, OTHER, OWNER, TOKENS, Index, asset
from tests.gateways.solana.asset_index import node as node
from tests.gateways.solana_stand_in import StandIn


@pytest.fixture
async def reader(node: StandIn) -> AsyncIterator[CollectionOwners]:
    nodes = SolanaNodes([node.url], request_seconds=2, deadline=8)
    yield CollectionOwners(nodes)
    await nodes.close()


async def whole(reader: CollectionOwners) -> list[OwnersPage]:
    found = [await reader.page(COLLECTION)]
    while found[-1].after is not None:
        found.append(await reader.page(COLLECTION, found[-1].after))
    return found


@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_every_asset_that_counts_is_in_one_page(node: StandIn, reader: CollectionOwners, size: int) -> None:
    index = Index(
        node,
        *(asset(token, OWNER if at % 2 else OTHER) for at, token in enumerate(TOKENS[:20])),
        asset(TOKENS[20], burnt=True),
        asset(TOKENS[21], interface="FungibleToken"),
        asset(TOKENS[22], grouping=[{"group_key": "collection", "group_value": COLLECTION, "verified": False}]),
    )
    index.bend = lambda items: items[:size]
    found = await whole(reader)
    owners = {mint: owner for page in found for mint, owner in page.owners.items()}
    assert owners == {token: OWNER if at % 2 else OTHER for at, token in enumerate(TOKENS[:20])}
    assert (sum(len(page.owners) for page in found), sum(page.unclear for page in found)) == (20, 0)


@pytest.mark.parametrize(
    "odd", [{"interface": "SomethingNew"}, {"ownership": {"owner": None}}, {"ownership": {"owner": ""}}]
)
async def test_an_asset_of_an_unknown_kind_or_owner_is_counted_apart(
    node: StandIn, reader: CollectionOwners, odd: dict[str, Any]
) -> None:
    Index(node, asset(TOKENS[0]), asset(TOKENS[1], **odd))
    page = await reader.page(COLLECTION)
    assert (page.owners, page.unclear) == ({TOKENS[0]: OWNER}, 1)


@pytest.mark.parametrize("silent", [range(1, 99), range(1, 2), range(1, 3)], ids=["all", "one answer", "two answers"])
@pytest.mark.parametrize("begun", [False, True])
async def test_a_list_that_falls_silent_has_no_end(
    node: StandIn, reader: CollectionOwners, silent: range, begun: bool
) -> None:
    index, answers = Index(node, *(asset(token) for token in TOKENS)), list[int]()

    def fall_silent(items: list[Any]) -> list[Any]:
        answers.append(1)
        return [] if len(answers) in silent else items[:10]

    index.bend = fall_silent
    with pytest.raises(ProviderError):
        await reader.page(COLLECTION, TOKENS[9] if begun else None)


async def test_an_index_that_gives_its_first_page_again_and_again_has_no_list(
    node: StandIn, reader: CollectionOwners
) -> None:
    index = Index(node, *(asset(token) for token in TOKENS))
    index.ignores, index.bend = ("after",), lambda items: items[:10]
    first = await reader.page(COLLECTION)
    with pytest.raises(ProviderConfused, match="repeats itself"):
        await reader.page(COLLECTION, first.after)


async def test_an_index_that_is_far_behind_gives_no_page(node: StandIn, reader: CollectionOwners) -> None:
    index = Index(node, asset(TOKENS[0]))
    index.extra = {"last_indexed_slot": 1}
    with pytest.raises(ProviderConfused, match="slots behind"):
        await reader.page(COLLECTION)
