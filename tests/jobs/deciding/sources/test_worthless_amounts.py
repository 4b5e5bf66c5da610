"""Amounts of worthless tokens that add up to more than a column holds stop no member."""

import asyncio
import uuid

from jobs.reconciler import Reconciler
from services.rules.expression import Requirement, to_document
from tests.jobs.deciding.sources.test_any_nft import Index, anything, indexed_by
from tests.jobs.town import Town
from tests.jobs.watching import grants


async def spam(town: Town, who: str, count: int) -> tuple[str, list[tuple[str, str]]]:
    """Send somebody the largest amount of each of so many tokens; return the contract, and contract and id of each."""
    made = await town.call("chains/base/deploy", standard="ERC1155", name="Spam", slug=uuid.uuid4().hex)
    for token in range(1, count + 1):
        await town.call(
            "chains/base/mint",
            contract=made["contract"],
            token_id=str(token),
            to=town.wallet(who),
            amount=str(2**256 - 1),
        )
    return made["contract"], [(made["contract"], str(token)) for token in range(1, count + 1)]


async def test_any_nft_is_decided_beside_them(town: Town) -> None:
    index = Index("OpenSea")
    await indexed_by(index)
    mine = await town.buys("carol")
    _, listed = await spam(town, "carol", 9)
    index.tokens = (*listed, (town.contract, mine))
    await anything(town)
    await town.prove("carol")
    reconciler = Reconciler(asyncio.Event())
    await reconciler.once()
    assert [one.state for one in await grants(town)] == ["giving"]


async def test_a_range_of_ids_is_decided_by_them(town: Town) -> None:
    contract, _ = await spam(town, "carol", 9)
    leaf = Requirement("token_id", "base", contract, token_ids=("0-20",))
    await town.change(await town.rule("Holder"), expression=to_document(leaf))
    await town.prove("carol")
    reconciler = Reconciler(asyncio.Event())
    await reconciler.once()
    assert [one.state for one in await grants(town)] == ["giving"]
