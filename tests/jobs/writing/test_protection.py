"""Protected members and roles keep what they have; other members are warned during the grace time."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import gateways
from jobs.role_writer import RoleWriter
from models import Grant, now, transaction
from services.accounts.users import ensure
from services.core.actors import Actor
from services.core.errors import MemberNotFound, RoleNotFound, ServerNotFound
from services.guilds import members
from services.privacy import erasure
from services.rules import rules
from services.rules.replacements import new_role
from services.rules.replacements.new_role import RoleOrder
from services.servers import explain, notices, protection
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, looked_at
from tests.support.builders import open_intents


async def admin(town: Town, who: str = "ada") -> Actor:
    person = town.people[who]
    async with transaction() as db:
        return Actor(await ensure(db, person["id"], person["username"]), person["id"], person["username"])


async def protect(town: Town, what: str, one: str, protected: bool = True, by: str = "ada") -> None:
    actor, outside = await admin(town, by), gateways()
    async with transaction() as db:
        change = protection.of_member if what == "member" else protection.of_role
        await change(db, outside, actor, town.server_id, one, protected)


async def nobody_is_due() -> bool:
    async with transaction() as db:
        return not (await db.execute(text("SELECT count(*) FROM due WHERE due_at <= now()"))).scalar_one()


async def grants(town: Town) -> list[Any]:
    async with transaction() as db:
        rows = await db.execute(text('SELECT state, no_since IS NULL FROM "grant" ORDER BY id'))
        return [tuple(row) for row in rows.all()]


@pytest.mark.parametrize("what", ["member", "role"])
async def test_what_is_protected_stays_until_the_protection_ends(town: Town, engine: Engine, what: str) -> None:
    await town.rule("Holder")
    token = await town.buys("carol")
    await town.prove("carol")
    one = town.people["carol"]["id"] if what == "member" else await town.role("Holder")
    async with engine():
        await given(town)
        await protect(town, what, one)
        await town.sells(token)
        await town.look()
        await until(nobody_is_due)
        assert await grants(town) == [("held", True)]
        assert await town.has("carol", "Holder")
        actor = await admin(town)
        async with transaction() as db:
            shown = await protection.view(db, gateways(), actor, town.server_id)
            why = await explain.why(db, gateways(), actor, town.server_id, town.people["carol"]["id"])
        assert [len(shown.members), len(shown.roles)] == ([1, 0] if what == "member" else [0, 1])
        assert why.protected is (what == "member")
        assert why.roles[0].next == "Stays whatever the rules say, because an admin protects it."
        await protect(town, what, one, protected=False)

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)


@pytest.mark.parametrize("what", ["member", "role"])
async def test_protection_reaches_a_removal_that_is_already_under_way(town: Town, engine: Engine, what: str) -> None:
    """The writer is faster than the reconcile that would cancel the removal."""
    await town.rule("Holder")
    token = await town.buys("carol")
    await town.prove("carol")
    async with engine():
        await given(town)
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    await protect(town, what, town.people["carol"]["id"] if what == "member" else await town.role("Holder"))
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.has("carol", "Holder")
    async with engine():
        await until(nobody_is_due)
    assert await grants(town) == [("held", False)]


@pytest.mark.parametrize("what", ["member", "role"])
async def test_the_grace_time_begins_again_when_a_protection_ends(town: Town, what: str) -> None:
    rule_id = await town.rule("Holder", removal_mode="grace", removal_hours=48)
    who, role_id = town.people["carol"]["id"], await town.role("Holder")
    await town.see()
    async with transaction() as db:
        db.add(
            Grant(
                server_id=town.server_id, discord_id=who, role_id=role_id, state="held", rule_ids=[rule_id],
                no_since=now() - timedelta(days=30),
            )
        )  # fmt: skip
    one = who if what == "member" else role_id
    await protect(town, what, one)
    await protect(town, what, one, protected=False)
    async with transaction() as db:
        grant = (await db.exec(select(Grant))).one()
    assert grant.no_since is not None
    assert now() - grant.no_since < timedelta(minutes=5)


async def test_who_asks_to_be_forgotten_is_not_protected_any_more(town: Town, engine: Engine) -> None:
    await town.rule("Holder")
    await town.buys("carol")
    await town.prove("carol")
    async with engine():
        await given(town)
        await protect(town, "member", town.people["carol"]["id"])
        carol, ada = await admin(town, "carol"), await admin(town)
        async with transaction() as db:
            await erasure.forget(db, carol)

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)
        async with transaction() as db:
            assert (await protection.view(db, gateways(), ada, town.server_id)).members == ()


async def test_only_who_runs_the_server_protects_and_only_what_is_there(town: Town) -> None:
    with pytest.raises(ServerNotFound):
        await protect(town, "member", town.people["carol"]["id"], by="carol")
    with pytest.raises(MemberNotFound):
        await protect(town, "member", "1")
    with pytest.raises(RoleNotFound, match=r"^No rule of this server gives that role\.$"):
        await protect(town, "role", await town.role("Holder"))
    await protect(town, "member", "1", protected=False)


async def test_whose_grace_time_runs_is_warned_while_it_does(town: Town, engine: Engine) -> None:
    await town.rule("Holder", removal_mode="grace", removal_hours=48)
    token = await town.buys("carol")
    await town.prove("carol")
    carol = town.people["carol"]
    guild = (await town.guild())["id"]

    async def warnings() -> list[str]:
        async with transaction() as db:
            member = await members.find_member(db, guild, carol["id"], carol["username"])
            return [notice.text for notice in await notices.waiting(db, member)]

    async with engine():
        await given(town)
        await town.sells(token)
        await town.look()

        async def begun() -> bool:
            return await grants(town) == [("held", False)]

        await until(begun)
        (warning,) = await warnings()
        assert warning.startswith("No rule gives you Holder any more. It is taken from you on ")
        await town.look()
        await until(nobody_is_due)
        assert await warnings() == [warning]
        await town.buys("carol")
        await town.look()

        async def right() -> bool:
            return await grants(town) == [("held", True)]

        await until(right)
        assert await warnings() == []


@pytest.mark.parametrize("change", [{"state": "paused"}, {"minTokens": 2}])
async def test_what_is_being_taken_waits_for_a_new_decision_when_its_rule_changes(
    town: Town, change: dict[str, Any]
) -> None:
    rule_id, actor = await town.rule("Holder"), await admin(town)
    who, role_id = town.people["carol"]["id"], await town.role("Holder")
    async with transaction() as db:
        db.add(Grant(server_id=town.server_id, discord_id=who, role_id=role_id, state="taking", rule_ids=[rule_id]))
    async with transaction() as db:
        await rules.change(db, gateways(), actor, rule_id, change)
    assert [state for state, _ in await grants(town)] == ["held"]


async def test_what_is_being_taken_waits_for_a_new_decision_when_its_role_is_replaced(town: Town) -> None:
    rule_id, actor = await town.rule("Holder"), await admin(town)
    old, new = await town.role("Holder"), await town.role("Collector")
    who = town.people["carol"]["id"]
    async with transaction() as db:
        db.add(Grant(server_id=town.server_id, discord_id=who, role_id=old, state="taking", rule_ids=[rule_id]))
    async with transaction() as db:
        await new_role.apply(db, gateways(), actor, town.server_id, RoleOrder(old, new))
    assert [state for state, _ in await grants(town)] == ["held"]
