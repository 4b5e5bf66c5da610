"""A member waiting for a role by a trait is denied on one source's answer only while the other stays unreachable."""

import asyncio

import pytest
from sqlmodel import col, select

from jobs.reconciler import Reconciler
from models import Due, now, transaction
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import GOLD, REFRESHING, Teller
from tests.jobs.town import Town
from tests.jobs.watching import given, grants

pytestmark = pytest.mark.usefixtures("followed")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node lags behind, so nobody is reconciled a second time because of that."""
    monkeypatch.setattr("services.engine.retry_later._may_lag", lambda *_: False)


async def planned(town: Town) -> Due | None:
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return (await db.exec(select(Due).where(mine))).one_or_none()


async def now_due(town: Town) -> None:
    """End the pause before the queued members are reconciled again."""
    row = await planned(town)
    assert row is not None
    async with transaction() as db:
        row.due_at = now()
        await db.merge(row)


async def test_who_waits_while_the_metadata_cannot_be_read_gets_the_role_when_they_can(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller
) -> None:
    opensea.said, metadata.said = REFRESHING, None
    reconciler = Reconciler(asyncio.Event())
    await gold.prove("carol")
    await reconciler.once()
    row = await planned(gold)
    assert row is not None
    assert "HTTP 504" in (row.reason or "")
    assert await grants(gold) == []
    metadata.said = GOLD
    await now_due(gold)
    async with engine():
        await given(gold)


async def test_metadata_that_are_gone_keep_nobody_waiting_for_ever(
    gold: Town, opensea: Teller, metadata: Teller
) -> None:
    opensea.said, metadata.said = REFRESHING, None
    reconciler, looks = Reconciler(asyncio.Event()), 0
    await gold.prove("carol")
    await reconciler.once()
    while (await planned(gold)) is not None:
        await now_due(gold)
        await reconciler.once()
        looks += 1
        assert looks < 20
    assert looks > 2
    assert metadata.asked == looks + 1
