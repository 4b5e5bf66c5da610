"""A role that was not given yet and that no rule gives any more is not given, whatever delays removals."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, text

from gateways import gateways
from jobs.role_writer import RoleWriter
from models import Breaker, Grant, GrantKey, now, transaction
from services.core import queue
from services.privacy import erasure
from services.roles import breaker, in_doubt
from services.servers import breaker_review
from services.triggers import gateway_events
from tests.jobs.conftest import Engine
from tests.jobs.processes.test_meanwhile import the_intent
from tests.jobs.town import BOTH, Town, a_town, until
from tests.jobs.watching import given, grants, kinds, looked_at, taken
from tests.jobs.writing.test_protection import admin

LONG_AGO = "UPDATE \"grant\" SET intended_at = now() - interval '5 minutes', next_at = now() WHERE state = 'taking'"


async def waits_for_screening(town: Town, **rule: Any) -> str:
    """Let carol, who has not passed the server's screening, buy a token for a rule; return the token."""
    await screening(town, pending=True)
    await town.see()
    token = await town.buys("carol")
    await town.rule("Holder", **rule)
    return token


async def screening(town: Town, *, pending: bool) -> None:
    carol = town.people["carol"]["id"]
    await town.call("members", guild=town.name, user=carol, action="set_pending", pending=pending)


async def intended(town: Town) -> None:
    """Let carol prove her wallet, and wait until her role is to be given."""
    await town.prove("carol")

    async def giving() -> bool:
        return [row.state for row in await grants(town)] == ["giving"]

    await until(giving)


async def sells_while_tripped(town: Town, token: str) -> None:
    """Let carol sell the token while the breaker holds removals of the role back."""
    async with transaction() as db:
        db.add(Breaker(server_id=town.server_id, role_id=await town.role("Holder"), would_lose=6, holders=9))
    await town.sells(token)
    await town.look()


@pytest.mark.parametrize("dismissed", [False, True])
async def test_a_tripped_breaker_gives_nobody_a_role_that_no_rule_gives(
    town: Town, engine: Engine, dismissed: bool
) -> None:
    token = await waits_for_screening(town)
    ada = await admin(town)
    async with engine():
        await intended(town)
        await sells_while_tripped(town, token)

        async def decided() -> bool:
            rows = await grants(town)
            return not rows or rows[0].held_back_at is not None or rows[0].state != "giving"

        await until(decided)
        assert not await town.has("carol", "Holder")
        if dismissed:
            outside = gateways()
            async with transaction() as db:
                await breaker_review.decide(db, outside, ada, town.server_id, approve=False)
        await screening(town, pending=False)
        await town.see()
        await town.look()
        # What comes after it in the outbox is done.
        await town.buys("dave")
        await town.prove("dave")
        await until(lambda: town.has("dave", "Holder"))
        assert not await town.has("carol", "Holder")


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_grace_time_gives_nobody_a_role_that_no_rule_gives(town: Town, engine: Engine, forgotten: bool) -> None:
    token = await waits_for_screening(town, removal_mode="grace", removal_hours=48)
    async with engine():
        await intended(town)
        if forgotten:
            actor = await admin(town, "carol")
            async with transaction() as db:
                await erasure.forget(db, actor)
        else:
            await town.sells(token)
            await town.look()

        async def settled() -> bool:
            async with transaction() as db:
                # Decided so long ago that nothing can still give it.
                await db.execute(text(LONG_AGO))
            return not await grants(town)

        await until(settled)
    assert not await town.has("carol", "Holder")
    async with transaction() as db:
        assert await erasure.finish(db) == int(forgotten)


@pytest.mark.parametrize("unanswered", [False, True])
async def test_one_whose_removal_is_called_off_before_it_was_given_is_given_and_nobody_took_it(
    town: Town, engine: Engine, unanswered: bool
) -> None:
    token = await waits_for_screening(town)
    async with engine():
        await intended(town)
        await sells_while_tripped(town, token)

        async def taking() -> bool:
            return [row.state for row in await grants(town)] == ["taking"]

        await until(taking)
        await town.buys("carol")
        carol = town.people["carol"]["id"]
        async with transaction() as db:
            await queue.mark_member(db, town.server_id, carol, queue.CHANGED)
            if unanswered:
                # Discord did not answer a request to give it, and has never carried it out.
                line = GrantKey(town.server_id, carol, await town.role("Holder"))
                await in_doubt.record_unanswered(db, line, giving=True)
            await queue.call_off_removals_from(db, carol)
        await screening(town, pending=False)
        await town.see()
        await town.look()
        await until(lambda: town.has("carol", "Holder"))
        await given(town)
    assert "role.lost" not in await kinds(town)
    assert [row.evidence.get("given") for row in await grants(town)] == [None]


async def test_one_that_comes_late_stays_while_a_reading_fails(town: Town, engine: Engine) -> None:
    """Nobody saw it come: a removal that a newer reconcile doubts is not sent because the picture lacks the role."""
    token = await waits_for_screening(town)
    async with engine():
        await intended(town)
        await sells_while_tripped(town, token)

        async def taking() -> bool:
            return [row.state for row in await grants(town)] == ["taking"]

        await until(taking)
    async with transaction() as db:
        await db.execute(delete(Breaker))
    intent = await the_intent()
    await town.break_("down", *BOTH)
    await looked_at(town)
    assert [(row.state, row.evidence.get("given")) for row in await grants(town)] == [("held", False)]
    guild, role_id = (await town.guild())["id"], await town.role("Holder")
    await gateways().discord.add_role(guild, town.people["carol"]["id"], role_id, "An earlier request")
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.has("carol", "Holder")
    await town.heal()
    async with engine():
        await taken(town)
    assert "role.lost" not in await kinds(town)


async def test_one_whose_removal_ends_with_the_bots_departure_is_given_when_the_bot_is_back(
    town: Town, engine: Engine
) -> None:
    token = await waits_for_screening(town)
    async with engine():
        await intended(town)
        await sells_while_tripped(town, token)

        async def taking() -> bool:
            return [row.state for row in await grants(town)] == ["taking"]

        await until(taking)
    await town.call("guilds", action="kick_bot", guild=town.name)
    async with transaction() as db:
        await gateway_events.left(db, (await town.guild())["id"])
    await town.buys("carol")
    await town.call("guilds", action="add_bot", guild=town.name)
    await screening(town, pending=False)
    await town.see()
    async with engine():
        await given(town)
    assert "role.lost" not in await kinds(town), "nobody had the role, so nobody took it"


async def test_roles_that_came_before_discord_answered_count_for_the_breaker(engine: Engine, sandbox_url: str) -> None:
    """Discord gave them and failed to say so, and the bot has seen them."""
    names = [f"friend{number}" for number in range(breaker.MOST_PEOPLE + 2)]
    async with a_town(sandbox_url, "ada", *names) as town:
        rule_id, role_id, guild = await town.rule("Holder"), await town.role("Holder"), (await town.guild())["id"]
        for who in names:
            await town.prove(who)
            await gateways().discord.add_role(guild, town.people[who]["id"], role_id, "An unanswered request")
        await town.see()
        async with transaction() as db:
            db.add_all(
                Grant(
                    server_id=town.server_id, discord_id=town.people[who]["id"], role_id=role_id, rule_ids=[rule_id],
                    state="giving", intended_at=now(), next_at=now() + timedelta(hours=1), attempts=1,
                )
                for who in names
            )  # fmt: skip
        await looked_at(town)
        assert "breaker.tripped" in await kinds(town)
        ada, outside = await admin(town), gateways()
        async with transaction() as db:
            await breaker_review.decide(db, outside, ada, town.server_id, approve=False)
        async with engine():
            await until(lambda: all_held(town))
        assert all([await town.has(who, "Holder") for who in names])


async def all_held(town: Town) -> bool:
    return {(row.state, row.gift_since is not None) for row in await grants(town)} == {("held", True)}
