"""A single list never costs a role for any NFT: a second list or the chain has to agree."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest
from sqlalchemy import text

from gateways import gateways, use_gateways
from gateways.chains.indexer import Indexer
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.any_nft import AnythingReader
from gateways.marketplaces.types import AccountItem, AccountItems
from gateways.transport.errors import ProviderDown
from models import transaction
from services.holdings import confirmation
from services.rules.expression import Requirement, to_document
from settings import settings
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import earned, reasons, settles_after, states
from tests.jobs.town import Town
from tests.jobs.watching import given, looked_at, taken


@dataclass
class Index:
    """An index that lists these tokens for every account, or fails."""

    source: str
    tokens: tuple[tuple[str, str], ...] | None = ()

    async def account_nfts(self, chain: str, address: str) -> "AccountItems":
        if self.tokens is None:
            raise ProviderDown(self.source, "HTTP 500")
        return AccountItems(chain, address, self.source, tuple(AccountItem(*one) for one in self.tokens))


async def indexed_by(*indexes: Index) -> None:
    """Make these indexes list the accounts' tokens from now on."""
    await cast(EvmChains, gateways().chains).close()
    pool = NodePool(settings().rpc)
    chains = EvmChains(pool, indexes[0] if indexes else None, cast("tuple[Indexer, ...]", indexes[1:]))
    use_gateways(replace(gateways(), chains=chains))


async def anything(town: Town) -> None:
    """A rule for any NFT on Base."""
    leaf = Requirement("any_nft", "base", "any")
    await town.change(await town.rule("Holder"), expression=to_document(leaf))


async def test_a_token_that_the_list_hides_keeps_the_role_and_the_logs_prove_that_nothing_is_left(
    town: Town, engine: Engine
) -> None:
    index = Index("OpenSea")
    await indexed_by(index)
    shown, hidden = await town.buys("carol"), await town.buys("carol")
    index.tokens = ((town.contract, shown),)
    await anything(town)
    async with engine():
        await town.prove("carol")
        await given(town)
        index.tokens = ()
        await town.sells(shown)
        await looked_at(town)
        await looked_at(town)
        assert await states(town) == ["held"]
        assert await town.has("carol", "Holder")
        await town.sells(hidden)
        await town.look()
        await taken(town)


async def test_a_list_that_cannot_be_read_is_no_list_without_anything(town: Town, engine: Engine) -> None:
    first, second = Index("OpenSea"), Index("Alchemy")
    await indexed_by(first, second)
    token = await town.buys("carol")
    first.tokens = ((town.contract, token),)
    await anything(town)
    await earned(town, engine)
    async with transaction() as db:
        await db.execute(text("DELETE FROM token_trail"))
    first.tokens, second.tokens = (), None
    await looked_at(town)
    assert await states(town) == ["held"]
    assert any("Alchemy" in (reason or "") for reason in await reasons(town))


@pytest.mark.parametrize("blocks", [0, 30])
async def test_a_token_that_no_list_shows_yet_keeps_the_role(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    settles_after(monkeypatch, blocks)
    first, second = Index("OpenSea"), Index("Alchemy")
    await indexed_by(first, second)
    sold = await town.buys("carol")
    first.tokens = second.tokens = ((town.contract, sold),)
    await anything(town)
    await earned(town, engine)
    first.tokens = second.tokens = ()
    await town.sells(sold)
    await town.call("chains/base/mine", blocks=blocks + 5)
    kept = await town.buys("carol")
    await looked_at(town)
    assert await states(town) == ["held"]
    await town.sells(kept)
    await town.call("chains/base/mine", blocks=blocks + 5)
    async with engine():
        await town.look()
        await taken(town)


async def test_one_list_and_the_logs_up_to_a_settled_block_do_not_deny_what_came_after_it(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settles_after(monkeypatch, 30)
    index = Index("OpenSea")
    await indexed_by(index)
    sold = await town.buys("carol")
    index.tokens = ((town.contract, sold),)
    await anything(town)
    await earned(town, engine)
    index.tokens = ()
    await town.sells(sold)
    await town.call("chains/base/mine", blocks=35)
    await town.buys("carol")
    await looked_at(town)
    assert await states(town) == ["held"]


async def test_two_whole_lists_and_the_chain_take_the_role_where_no_logs_can_be_searched(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_logs(*_: object) -> tuple[set[str], str]:
        return set(), "it wants an address"

    monkeypatch.setattr(AnythingReader, "follow", no_logs)
    first, second = Index("OpenSea"), Index("Alchemy")
    await indexed_by(first)
    token = await town.buys("carol")
    first.tokens = second.tokens = ((town.contract, token),)
    await anything(town)
    await earned(town, engine)
    await town.sells(token)
    first.tokens = second.tokens = ()
    await looked_at(town)
    assert await states(town) == ["held"]
    assert any("only OpenSea" in (reason or "") for reason in await reasons(town))
    await indexed_by(first, second)
    await looked_at(town)
    assert await states(town) == ["held"]
    assert any("indexers again" in (reason or "") for reason in await reasons(town))
    monkeypatch.setattr(confirmation, "APART", timedelta(0))
    async with engine():
        await town.look()
        await taken(town)


@pytest.mark.parametrize("without", [0, 1])
async def test_of_two_nodes_one_whose_logs_can_be_searched_is_enough(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch, without: int
) -> None:
    search = AnythingReader.follow

    async def some_logs(reader: AnythingReader, *asked: Any) -> tuple[set[str], str]:
        return (set(), "it wants an address") if reader.node.index == without else await search(reader, *asked)

    monkeypatch.setattr(AnythingReader, "follow", some_logs)
    index = Index("OpenSea")
    await indexed_by(index)
    shown, hidden = await town.buys("carol"), await town.buys("carol")
    index.tokens = ((town.contract, shown),)
    await anything(town)
    await earned(town, engine)
    index.tokens = ()
    await town.sells(shown)
    await looked_at(town)
    assert await states(town) == ["held"], "its logs show another token"
    await town.sells(hidden)
    async with engine():
        await town.look()
        await taken(town)
