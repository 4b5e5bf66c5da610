"""Nobody loses a role by the word of one source: a node, a marketplace, or a block that may yet be replaced."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from gateways import close_gateways, gateways, use_gateways
from gateways.chains.attributes import Trait, TraitList
from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import Indexer
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.any_nft import AnythingReader
from gateways.marketplaces.facts import AccountItem, AccountItems
from gateways.marketplaces.opensea import OpenSea
from gateways.metadata import TokenMetadata
from gateways.transport.errors import ProviderDown
from models import Cursor, Due, now, transaction
from services.holdings import confirmation
from services.roles import in_doubt
from services.rules.expression import Requirement, to_document
from settings import settings
from tests.jobs.conftest import Engine
from tests.jobs.town import BOTH, Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, taken

GOLD, REFRESHING = TraitList((Trait("Fur", "Gold"),)), TraitList((Trait("Status", "Refreshing"),))


@dataclass
class Teller:
    """A source of traits that says the same of every token, or nothing."""

    said: TraitList | None
    asked: int = 0

    async def close(self) -> None:
        """There is nothing to close."""

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        self.asked += 1
        if self.said is None:
            raise ProviderDown("OpenSea", "HTTP 500")
        return self.said

    async def nfts(self, chain: str, tokens: Sequence[tuple[str, str]]) -> dict[tuple[str, str], TraitList]:
        return {token: await self.nft(chain, *token) for token in tokens}

    async def traits(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> dict[str, TraitList | ProviderDown]:
        self.asked += 1
        return dict.fromkeys(token_ids, self.said or ProviderDown("Token metadata", "HTTP 504"))


@pytest.fixture
def opensea() -> Teller:
    return Teller(GOLD)


@pytest.fixture
def metadata() -> Teller:
    return Teller(GOLD)


@pytest.fixture
async def gold(town: Town, opensea: Teller, metadata: Teller) -> Town:
    """A rule for gold fur; carol, who has proved her wallet, has a token."""
    use_gateways(replace(gateways(), opensea=cast(OpenSea, opensea), metadata=cast(TokenMetadata, metadata)))
    await town.buys("carol")
    leaf = Requirement("trait", "base", town.contract, traits=(("Fur", "Gold"),))
    await town.change(await town.rule("Holder"), expression=to_document(leaf))
    return town


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traits are read outside at every look."""
    monkeypatch.setattr("services.collections.token_traits.fresh_for", lambda: timedelta(0))


async def taken_by_node_1_alone(town: Town) -> dict[str, Any]:
    """The reading by which the role is being taken: node 1's, confirmed by itself at a later block."""
    (row,) = await grants(town)
    assert row.state == "taking"
    (reading,) = row.evidence["readings"]
    assert reading["source"] == reading["first"]["source"] == "Base node 1"
    assert reading["first"]["block"] < reading["block"]
    return reading


async def earned(town: Town, engine: Engine) -> None:
    """Let carol prove her wallet and wait until the engine has given her the role; the engine ends."""
    async with engine():
        await town.prove("carol")
        await given(town)


async def states(town: Town) -> list[str]:
    """Return the state of every role that the ledger has for the town."""
    return [row.state for row in await grants(town)]


async def reasons(town: Town) -> set[str | None]:
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return set((await db.exec(select(Due.reason).where(mine))).all())


async def one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Base has its first node alone from now on."""
    monkeypatch.setenv("RPC_BASE", settings().rpc["base"][0])
    settings.cache_clear()
    await close_gateways()


def settles_after(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setitem(CHAINS, "base", replace(CHAINS["base"], settled_after=blocks))


@pytest.mark.usefixtures("always_fresh")
async def test_opensea_alone_takes_no_role_while_the_metadata_cannot_be_read(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller
) -> None:
    await earned(gold, engine)
    opensea.said, metadata.said = REFRESHING, None
    for _ in range(3):
        await looked_at(gold)
    assert await states(gold) == ["held"]
    assert any("504" in (reason or "") for reason in await reasons(gold))
    metadata.said = REFRESHING
    async with engine():
        await gold.look()
        await taken(gold)


@pytest.mark.usefixtures("always_fresh")
async def test_a_token_that_came_after_the_settled_block_is_denied_by_no_single_source(
    gold: Town, engine: Engine, opensea: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    settles_after(monkeypatch, 30)
    use_gateways(replace(gateways(), chains=EvmChains(NodePool(settings().rpc))))
    await gold.call("chains/base/mine", blocks=35)
    await earned(gold, engine)
    await gold.sells("1")
    await gold.call("chains/base/mine", blocks=35)
    await gold.buys("carol")
    opensea.said = REFRESHING
    await looked_at(gold)
    assert await states(gold) == ["held"]
    assert any("not settled yet" in (reason or "") for reason in await reasons(gold))
    await gold.call("chains/base/mine", blocks=30)
    await looked_at(gold)
    assert await states(gold) == ["held"], "the metadata show the trait"


@pytest.mark.usefixtures("always_fresh")
async def test_metadata_that_still_show_the_trait_keep_the_role(gold: Town, engine: Engine, opensea: Teller) -> None:
    async with engine():
        await gold.prove("carol")
        await given(gold)
        opensea.said = REFRESHING
        await looked_at(gold)
        assert await gold.has("carol", "Holder")
        assert await states(gold) == ["held"]


async def test_who_waits_gets_the_role_by_the_metadata_when_opensea_is_behind(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller
) -> None:
    opensea.said = REFRESHING
    await earned(gold, engine)
    assert (opensea.asked, metadata.asked) == (1, 1)


@pytest.mark.usefixtures("always_fresh")
async def test_the_only_source_of_traits_takes_a_role_after_it_has_said_so_twice_minutes_apart(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    opensea.said = None
    monkeypatch.setattr("services.collections.token_traits.sources_on", lambda outside, chain: 1)
    await earned(gold, engine)
    metadata.said = REFRESHING
    await looked_at(gold)
    await looked_at(gold)
    (row,) = await grants(gold)
    assert row.state == "held"
    assert row.first_no
    monkeypatch.setattr(confirmation, "APART", timedelta(0))
    async with engine():
        await gold.look()
        await taken(gold)


async def test_a_sale_counts_when_its_block_is_settled_and_the_next_look_comes_about_then(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settles_after(monkeypatch, 30)
    token = await town.buys("carol")
    await town.call("chains/base/mine", blocks=30)
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.sells(token)
        await looked_at(town)
        assert await states(town) == ["held"]
        assert any("not settled yet" in (reason or "") for reason in await reasons(town))
        await town.call("chains/base/mine", blocks=30)
        await town.look()
        await taken(town)


async def test_a_single_node_confirms_a_sale_at_the_next_look_after_a_few_blocks(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one_node(monkeypatch)
    settles_after(monkeypatch, 3)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await looked_at(town)
    (row,) = await grants(town)
    assert row.state == "held"
    assert row.first_no
    assert any("later block" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=3)
    await looked_at(town)
    assert await states(town) == ["taking"], "one look was enough"
    async with engine():
        await taken(town)


async def test_a_yes_forgets_what_a_single_node_said_before(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one_node(monkeypatch)
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.sells(token)
    await looked_at(town)
    assert (await grants(town))[0].first_no
    await town.buys("carol")
    await looked_at(town)
    (row,) = await grants(town)
    assert (row.state, row.first_no) == ("held", None)


async def test_with_the_second_node_down_the_first_confirms_its_own_word_after_some_minutes(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await town.break_("down", BOTH[1])
    await town.sells(token)
    await looked_at(town)
    await town.call("chains/base/mine", blocks=5)
    await looked_at(town)
    assert await states(town) == ["held"]
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await looked_at(town)
    await taken_by_node_1_alone(town)


class SecondInPart(EvmChains):
    """The chains, whose second node never says how much a wallet has, or says `shows` of all."""

    shows: int | None = None

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        sheets = await super().balances(chain, segments, at=at)
        for sheet in sheets:
            if sheet.endpoint == 1:
                for row in range(sheet.cells.contracts):
                    for column in range(sheet.cells.owners):
                        sheet.cells.put(row, column, self.shows)
        return sheets


async def test_a_second_node_that_always_answers_in_part_keeps_no_loss_unconfirmed_for_ever(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    await close_gateways()
    use_gateways(replace(gateways(), chains=SecondInPart(NodePool(settings().rpc))))
    await town.sells(token)
    await looked_at(town)
    await town.call("chains/base/mine", blocks=5)
    await looked_at(town)
    assert await states(town) == ["held"], "no sooner than if it were silent"
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await looked_at(town)
    assert (await taken_by_node_1_alone(town))["oneSource"]


async def test_a_second_node_that_shows_the_token_keeps_the_role_however_long_the_first_denies_it(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await earned(town, engine)
    monkeypatch.setattr(SecondInPart, "shows", 1)
    monkeypatch.setattr(confirmation, "OTHERS_SILENT", timedelta(0))
    await close_gateways()
    use_gateways(replace(gateways(), chains=SecondInPart(NodePool(settings().rpc))))
    await town.sells(token)
    for _ in range(3):
        await looked_at(town)
        await town.call("chains/base/mine", blocks=5)
    assert await states(town) == ["held"]


@dataclass
class Index:
    """An index that lists these tokens of whoever is asked about, or fails."""

    source: str
    tokens: tuple[tuple[str, str], ...] | None = ()

    async def account_nfts(self, chain: str, address: str) -> "AccountItems":
        if self.tokens is None:
            raise ProviderDown(self.source, "HTTP 500")
        return AccountItems(chain, address, self.source, tuple(AccountItem(*one) for one in self.tokens))


async def indexed_by(*indexes: Index) -> None:
    """These list what accounts have from now on."""
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


async def test_a_role_that_never_came_is_not_said_to_have_been_taken(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    assert await states(town) == ["giving"]
    await town.sells(token)
    await looked_at(town)
    assert await states(town) == ["taking"]
    async with engine():
        await until(lambda: _nothing_left(town))
    assert [kind for kind in await kinds(town) if kind.startswith("role.")] == []


async def _nothing_left(town: Town) -> bool:
    return not await grants(town)


async def test_who_buys_and_then_proves_is_not_told_no_by_a_node_that_lags(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    head = (await gateways().chains.head("base")).block
    async with transaction() as db:
        db.add(Cursor(chain="base", block=head, head=head + 5))
    await town.prove("carol")
    await looked_at(town)
    assert await grants(town) == []
    assert any("before block" in (reason or "") for reason in await reasons(town))
    await town.call("chains/base/mine", blocks=5)
    async with engine():
        await town.look()
        await given(town)


async def test_where_a_chain_is_not_followed_who_waits_in_vain_is_looked_at_once_more(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.engine.retry_later.stale_seconds", lambda _: 3600)
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    async with transaction() as db:
        (row,) = (await db.exec(select(Due).where(Due.key == f"{town.server_id}:{town.people['carol']['id']}"))).all()
        assert (row.priority, row.due_at > now()) == (0, True)
        row.due_at = now()
        db.add(row)
    await looked_at(town)
    async with transaction() as db:
        assert (await db.exec(select(Due).where(col(Due.key).startswith(f"{town.server_id}:")))).all() == []
