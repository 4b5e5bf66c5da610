"""A member leaves and comes back while their role is on its way: it is in the ledger, so a sale takes it."""

import asyncio

import pytest
from sqlalchemy import text

from gateways import gateways
from jobs.role_writer import RoleWriter
from models import transaction
from services.roles import in_doubt, outbox
from services.roles.outbox import WriteResult
from services.triggers import gateway_events
from tests.jobs.conftest import Engine
from tests.jobs.processes.test_meanwhile import goes_and_comes_back, recorded, the_intent
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, no_grants, nobody_is_due, taken


@pytest.fixture
async def token(town: Town) -> str:
    """carol's token, for which a role is to be given; nothing runs."""
    bought = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    return bought


async def until_it_is_sold(town: Town, engine: Engine, token: str) -> None:
    """Run the engine until the ledger has the role, and from the sale until the role is taken."""
    async with engine():
        await town.look()
        await given(town)
        assert [row.had_before for row in await grants(town)] == [False]
        async with transaction() as db:
            # A removal waits until no earlier gift can arrive.
            await db.execute(text("UPDATE unanswered SET at = at - CAST(:late AS interval)"), {"late": in_doubt.LATE})
        await town.sells(token)
        await town.look()
        await taken(town)
        await until(lambda: no_grants(town))
    assert "role.taken" in await kinds(town)


@pytest.mark.parametrize("seen", [False, True])
async def test_a_gift_that_reaches_the_new_membership_before_it_is_read(
    town: Town, engine: Engine, token: str, seen: bool
) -> None:
    gift = await the_intent()
    await goes_and_comes_back(town)
    outcome = await outbox.carry_out(gateways(), gift, sure=True)
    assert outcome.result is WriteResult.DONE
    if seen:
        # The event about the role comes before the answer to our request is recorded.
        await town.see()
        await looked_at(town)
    await recorded(gift, outcome)
    await town.see()
    await until_it_is_sold(town, engine, token)


async def test_a_gift_that_reaches_the_new_membership_after_the_next_gift_is_intended(
    town: Town, engine: Engine, token: str
) -> None:
    old = await the_intent()
    await goes_and_comes_back(town)
    await looked_at(town)
    new = await the_intent()
    assert new.line == old.line
    assert new.id != old.id
    await recorded(old, await outbox.carry_out(gateways(), old, sure=True))
    await town.see()
    start = await town.mark()
    # Intended under the lease of the writer that carries it out, which has not sent it before.
    await RoleWriter(asyncio.Event())._carry_out(await the_intent(), new.intended_at)
    assert await town.writes(start) == []
    assert [row.state for row in await grants(town)] == ["held"]
    await until_it_is_sold(town, engine, token)


async def test_a_gift_that_is_recorded_before_the_event_that_the_member_left(
    town: Town, engine: Engine, token: str
) -> None:
    gift, carol = await the_intent(), town.people["carol"]["id"]
    for action in ("leave", "join"):
        await town.call("members", guild=town.name, user=carol, action=action)
    await recorded(gift, await outbox.carry_out(gateways(), gift, sure=True))
    assert [row.state for row in await grants(town)] == ["held"]
    async with transaction() as db:
        await gateway_events.member_left(db, (await town.guild())["id"], carol)
    await town.see()
    await until_it_is_sold(town, engine, token)


async def test_a_role_that_somebody_else_gives_to_one_who_came_back_is_theirs(
    town: Town, engine: Engine, token: str
) -> None:
    async with engine():
        await given(town)
    async with transaction() as db:
        # The gift was answered long before the member left.
        await db.execute(text("UPDATE \"grant\" SET updated_at = now() - interval '1 hour'"))
    await goes_and_comes_back(town)
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="add_role", role="Holder")
    await town.see()
    async with engine():
        await town.look()
        await until(lambda: nobody_is_due(town))
    assert await grants(town) == []
    assert await town.has("carol", "Holder")
