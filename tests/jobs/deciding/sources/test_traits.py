"""Where there are two sources of traits, a single source never costs anybody a role."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlmodel import select

from gateways import gateways, use_gateways
from gateways.chains.metadata_traits import Trait, TraitList
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from models import Rule, transaction
from services.holdings import confirmation
from services.rules.expression import Requirement, to_document
from settings import settings
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import REFRESHING, Teller, earned, reasons, settles_after, states
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, looked_at, taken


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
async def test_a_token_for_which_both_sources_list_nothing_has_no_traits(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller
) -> None:
    await earned(gold, engine)
    opensea.said, metadata.said = TraitList(()), None
    await looked_at(gold)
    await looked_at(gold)
    assert await states(gold) == ["held"], "an empty list of one source proves nothing"
    metadata.said = TraitList(())
    async with engine():
        await gold.look()
        await taken(gold)


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
    monkeypatch.setattr("services.collections.trait_sources.sources_on", lambda outside, chain: 1)
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


@pytest.mark.usefixtures("always_fresh")
async def test_sources_that_deny_different_traits_of_a_token_confirm_nothing(
    gold: Town, opensea: Teller, metadata: Teller, engine: Engine
) -> None:
    """Each trait has one source that shows it: either is enough to give the role, so it is not taken either."""
    leaf = Requirement("trait", "base", gold.contract, traits=(("Fur", "Gold"), ("Hat", "Cap")))
    async with transaction() as db:
        (rule_id,) = (await db.exec(select(Rule.id).where(Rule.server_id == gold.server_id))).all()
    await gold.change(rule_id or 0, expression=to_document(leaf))
    opensea.said = metadata.said = TraitList((Trait("Fur", "Gold"), Trait("Hat", "Cap")))
    await earned(gold, engine)
    await gold.call("chains/base/mine", blocks=5)
    opensea.said = TraitList((Trait("Fur", "Gold"), Trait("Hat", "None")))
    metadata.said = TraitList((Trait("Fur", "Gray"), Trait("Hat", "Cap")))
    await looked_at(gold)
    assert await states(gold) == ["held"]
    metadata.said = TraitList((Trait("Fur", "Gray"), Trait("Hat", "None")))
    await looked_at(gold)
    assert await states(gold) == ["taking"], "both deny the hat"
