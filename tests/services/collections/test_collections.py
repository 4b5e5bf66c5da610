"""Which collection is meant when a marketplace's answer is not enough."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest
from sqlalchemy import QueuePool

from gateways import Gateways, close_gateways, gateways
from gateways.marketplaces.types import CollectionFacts, ContractFacts
from gateways.transport.errors import ProviderDown
from models import engine, transaction
from services.collections import collections
from services.core.errors import CollectionNotFound, FieldRefused, ProviderUnavailable
from settings import settings
from tests.support.builders import address

ONE, OTHER = "J1S9H3QjnRtBbbuD4HjPV6RpRhwuk4zKbxsnCHuTgh9w", "So11111111111111111111111111111111111111112"


@pytest.fixture
async def outside(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateways]:
    """An outside world without providers, except those that a test puts in."""
    monkeypatch.setenv("SANDBOX_PORT", "9")
    monkeypatch.delenv("PUBLIC_URL", raising=False)
    settings.cache_clear()
    yield gateways()
    await close_gateways()
    settings.cache_clear()


class OpenSeaSays:
    """An OpenSea that knows one collection, and names the collection of its contract."""

    def __init__(self, contract: str, belongs_to: str | None) -> None:
        self._contract, self._belongs_to = contract, belongs_to

    async def collection(self, slug: str) -> CollectionFacts:
        return CollectionFacts(slug, "Squiggles", (("base", self._contract),))

    async def contract(self, chain: str, address: str) -> ContractFacts:
        if self._belongs_to is None:
            raise ProviderDown("OpenSea", "HTTP 500")
        return ContractFacts(self._belongs_to, "Blocks")


class SymbolSays:
    """What Magic Eden and the index say of a symbol: mint → collection."""

    def __init__(self, belong: dict[str, str | None]) -> None:
        self._belong = belong

    async def mints(self, symbol: str) -> tuple[str, ...]:
        return tuple(self._belong)

    async def collection_of(self, mint: str) -> str | None:
        return self._belong[mint]


@pytest.mark.parametrize(("belongs_to", "shared"), [("squiggles", False), ("", False), (None, False), ("blocks", True)])
async def test_a_contract_that_several_collections_share_is_refused_with_its_address(
    outside: Gateways, belongs_to: str | None, shared: bool
) -> None:
    contract = address()
    told = replace(outside, opensea=OpenSeaSays(contract, belongs_to))
    async with transaction() as db:
        if not shared:
            found = await collections.parse(db, told, "https://opensea.io/collection/squiggles", "")
            assert (found.name, found.contract_address, found.blockchain) == ("Squiggles", contract, "base")
            return
        with pytest.raises(FieldRefused, match="shares its contract") as caught:
            await collections.parse(db, told, "https://opensea.io/collection/squiggles", "")
        assert contract in caught.value.message


async def test_a_symbol_that_stands_for_several_collections_lists_them(outside: Gateways) -> None:
    says = SymbolSays({"m1": ONE, "m2": OTHER, "m3": None})
    told = replace(outside, magiceden=says, mints=says)
    async with transaction() as db:
        with pytest.raises(FieldRefused, match="several collections") as caught:
            await collections.parse(db, told, "https://magiceden.io/marketplace/mixed", "")
    assert [one.contract_address for one in caught.value.offers] == [ONE, OTHER]
    assert ONE in caught.value.message


@pytest.mark.parametrize("belong", [{}, {"m1": None}])
async def test_a_symbol_without_a_collection_is_not_found(outside: Gateways, belong: dict[str, str | None]) -> None:
    says = SymbolSays(belong)
    async with transaction() as db:
        with pytest.raises(CollectionNotFound, match="Paste the collection's address"):
            await collections.parse(
                db, replace(outside, magiceden=says, mints=says), "https://magiceden.io/marketplace/mixed", ""
            )


async def test_while_nobody_answers_a_collection_is_neither_found_nor_missing(outside: Gateways) -> None:
    async with transaction() as db:
        with pytest.raises(ProviderUnavailable):
            await collections.parse(db, replace(outside, opensea=OpenSeaSays("", None)), address(), "base")


class SeesConnections(SymbolSays, OpenSeaSays):
    """Providers that note how many connections to the database are in use while they are asked."""

    def __init__(self, belong: dict[str, str | None], contract: str) -> None:
        SymbolSays.__init__(self, belong)
        OpenSeaSays.__init__(self, contract, None)
        self.seen = list[int]()

    def _note(self) -> None:
        pool = engine().pool
        assert isinstance(pool, QueuePool)
        self.seen.append(pool.checkedout())

    async def collection(self, slug: str) -> CollectionFacts:
        self._note()
        return await super().collection(slug)

    async def collection_of(self, mint: str) -> str | None:
        self._note()
        return await super().collection_of(mint)


@pytest.mark.parametrize(
    "page", ["opensea.io/collection/x", "magiceden.io/marketplace/x", f"magiceden.io/item-details/{OTHER}"]
)
async def test_no_connection_is_kept_while_a_marketplaces_page_is_looked_up(outside: Gateways, page: str) -> None:
    says = SeesConnections({OTHER: None}, address())
    told = replace(outside, opensea=says, magiceden=says, mints=says)
    async with transaction() as db:
        await db.execute("SELECT 1")  # a token's rights are read in the same transaction
        with suppress(CollectionNotFound):
            await collections.parse(db, told, f"https://{page}", "")
    assert set(says.seen) == {0}


class ChainsSay:
    """Chains that know of no collection at any address, and do not answer about coins."""

    async def contract_standard(self, chain: str, contract: str) -> str | None:
        return None

    async def coin(self, chain: str, contract: str) -> None:
        raise ProviderDown(chain, "no answer")


async def test_while_a_chain_says_nothing_about_coins_a_coin_is_not_missing(outside: Gateways) -> None:
    told = replace(outside, opensea=OpenSeaSays("", None), chains=cast("Any", ChainsSay()))
    async with transaction() as db:
        with pytest.raises(ProviderUnavailable):
            await collections.parse(db, told, address(), "base")
