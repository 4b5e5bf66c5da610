"""Members with more tokens than one reconcile reads the traits of lose a role in turns."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways.chains.metadata_traits import TraitList
from jobs.reconciler import Reconciler
from models import Grant, transaction
from models.db.session import AsyncSession
from services.collections.trait_match import FROM_LINK, OF_INDEX
from services.engine import trait_reads
from services.holdings import confirmation
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import REFRESHING, Teller, earned, states
from tests.jobs.town import Town
from tests.jobs.watching import given


async def reconciled(town: Town, times: int) -> AsyncIterator[list[str]]:
    """Reconcile everybody so often, and yield the states of the grants each time."""
    reconciler = Reconciler(asyncio.Event())
    for _ in range(times):
        async with transaction() as db:
            await db.execute(text("UPDATE due SET due_at = now()"))
        await town.look()
        await reconciler.once()
        yield await states(town)


def by_indexes(opensea: Teller, metadata: Teller, monkeypatch: pytest.MonkeyPatch, *, linked: bool) -> None:
    """Let two indexes be the only sources, as on Solana."""

    async def indexed(_: str, contract: str, token_ids: Sequence[str], *, apart_from: str = "") -> dict[str, TraitList]:
        index = "B" if apart_from == "A" else "A"
        return dict.fromkeys(token_ids, replace(REFRESHING, index=index, linked=linked))

    opensea.said = None
    monkeypatch.setattr(metadata, "traits", indexed)


async def earned_by_four(town: Town, engine: Engine) -> None:
    """Let carol earn the role by four tokens, and settle the blocks by which she did."""
    for _ in range(4):
        await town.buys("carol")
    await earned(town, engine)
    await town.call("chains/base/mine", blocks=5)


@pytest.mark.parametrize("most", [600, 5, 3])
async def test_a_member_with_many_tokens_loses_the_role_after_some_reconciles(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    await earned_by_four(gold, engine)
    opensea.said = metadata.said = REFRESHING
    async with transaction() as db:
        await db.execute(text("UPDATE token SET updated_at = updated_at - interval '7 hours'"))
    monkeypatch.setattr(trait_reads, "MOST_TOKENS_READ", most)
    async for now in reconciled(gold, 15):
        if now != ["held"]:
            break
    assert await states(gold) == ["taking"]


async def test_two_of_them_do_not_keep_each_other_from_it(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await gold.buys("carol")
    for _ in range(4):
        await gold.buys("dave")
    async with engine():
        await gold.prove("carol")
        await gold.prove("dave")
        await given(gold)
        await given(gold, "dave")
    await gold.call("chains/base/mine", blocks=5)
    opensea.said = metadata.said = REFRESHING
    async with transaction() as db:
        await db.execute(text("UPDATE token SET updated_at = updated_at - interval '7 hours'"))
    monkeypatch.setattr(trait_reads, "MOST_TOKENS_READ", 6)
    async for _ in reconciled(gold, 15):
        pass
    assert await states(gold) == ["taking", "taking"]


async def test_a_document_that_two_indexes_linked_to_is_read_again_before_they_lose_a_role(
    gold: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said before is one source, which must not confirm itself by the copy that is stored."""
    await earned_by_four(gold, engine)
    async with transaction() as db:
        await read_by_two_indexes(db, minutes_ago=60)
    monkeypatch.setattr("services.collections.stored_traits.fresh_for", lambda: timedelta(hours=6))
    monkeypatch.setattr(confirmation, "APART", timedelta(0))
    monkeypatch.setattr(trait_reads, "MOST_TOKENS_READ", 3)
    async for _ in reconciled(gold, 3):
        pass
    assert await states(gold) == ["held"]


@pytest.mark.parametrize("linked", [False, True])
async def test_tokens_that_only_one_index_was_asked_about_are_asked_about_at_another_one(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """As on Solana, where the indexes are the sources, and a read of every source asks one of them."""
    await earned_by_four(gold, engine)

    by_indexes(opensea, metadata, monkeypatch, linked=linked)
    async with transaction() as db:
        await db.execute(text("UPDATE token SET updated_at = updated_at - interval '7 hours'"))
    monkeypatch.setattr("services.collections.stored_traits.fresh_for", lambda: timedelta(hours=6))
    monkeypatch.setattr(confirmation, "APART", timedelta(0))
    monkeypatch.setattr(trait_reads, "MOST_TOKENS_READ", 3)
    async for now in reconciled(gold, 15):
        if now != ["held"]:
            break
    assert await states(gold) == ["taking"]


@pytest.mark.parametrize(("minutes_apart", "expected"), [(2, "held"), (12, "taking")])
async def test_a_document_that_was_read_again_too_soon_confirms_nothing_later(
    gold: Town,
    engine: Engine,
    opensea: Teller,
    metadata: Teller,
    monkeypatch: pytest.MonkeyPatch,
    minutes_apart: int,
    expected: str,
) -> None:
    """The stored reading is the second one only if it was made long enough after the first answer."""
    await earned_by_four(gold, engine)
    by_indexes(opensea, metadata, monkeypatch, linked=True)
    async with transaction() as db:
        await read_by_two_indexes(db, minutes_ago=0)
    monkeypatch.setattr("services.collections.stored_traits.fresh_for", lambda: timedelta(hours=6))
    monkeypatch.setattr(trait_reads, "MOST_TOKENS_READ", 3)
    async for _ in reconciled(gold, 1):
        pass
    async with transaction() as db:
        await read_by_two_indexes(db, minutes_ago=9)
        (grant,) = (await db.exec(select(Grant))).all()
        assert grant.first_no
        earlier = timedelta(minutes=9 + minutes_apart)
        grant.first_no = {
            question: [answer, source, block, (datetime.fromisoformat(at) - earlier).isoformat()]
            for question, (answer, source, block, at) in grant.first_no.items()
        }
    async for now in reconciled(gold, 1):
        assert now == [expected]


async def read_by_two_indexes(db: AsyncSession, *, minutes_ago: int) -> None:
    """Store for every token what a document says to which two indexes link."""
    placeholder = {"whole": True, "traits": [["Status", "Refreshing"]]}
    first, second = ({**placeholder, "source": f"{FROM_LINK}{OF_INDEX}{index}"} for index in "AB")
    statement = "UPDATE token SET updated_at = now() - make_interval(mins => :ago), traits = CAST(:traits AS jsonb)"
    await db.execute(text(statement), {"ago": minutes_ago, "traits": json.dumps({**first, "also": second})})
