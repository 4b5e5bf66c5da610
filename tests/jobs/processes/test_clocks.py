"""A machine whose clock is a minute ahead of the database's decides the same."""

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from sqlalchemy import text

from jobs.reconciler import Reconciler
from models import transaction
from models.db import clock
from services.engine import snapshot
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, kinds, looked_at, taken

AHEAD = timedelta(seconds=65)


class Early(datetime):
    """The clock of a machine that is ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Early":
        ahead = datetime.now(tz or UTC) + AHEAD
        return cls.combine(ahead.date(), ahead.timetz())


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's clock is ahead, wherever the product reads the time."""
    monkeypatch.setattr(clock, "datetime", Early)


async def test_a_sale_takes_the_role_with_a_handful_of_requests(town: Town, engine: Engine, ahead: None) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        start = await town.mark()
        await town.sells(token)
        await town.look()
        await taken(town)
    assert await town.writes(start) == ["DELETE"]
    assert len(await town.requests(start, "discord")) < 10


async def test_a_grace_time_begins_and_ends_by_the_clock_of_the_database(
    town: Town, engine: Engine, ahead: None
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder", removal_mode="grace", removal_hours=1)
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await town.look()
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        began = await db.execute(
            text("SELECT now() - no_since BETWEEN interval '0' AND interval '50 s' FROM \"grant\"")
        )
        assert began.scalar_one() is True


async def test_who_took_a_role_away_soon_after_it_was_given_is_not_taken_for_a_new_membership(
    town: Town, engine: Engine, ahead: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds whichever clock is ahead: Discord dates the membership, and we date the grant."""
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    async with transaction() as db:
        # The database's clock is a minute behind Discord's.
        await db.execute(text("UPDATE \"grant\" SET created_at = created_at - interval '60 seconds'"))
    monkeypatch.setattr(snapshot, "_NOW", ("SELECT now() - interval '60 seconds'", {}))
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="remove_role", role="Holder")
    async with transaction() as db:
        await db.execute(text("UPDATE member SET roles = '{}'"))
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["lost"]
    assert "member.left" not in await kinds(town)


async def test_who_joins_again_gets_the_role_again(town: Town, engine: Engine, ahead: None) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        for action in ("leave", "join"):
            await town.call("members", guild=town.name, user=town.people["carol"]["id"], action=action)
        await town.see()
        await given(town)
