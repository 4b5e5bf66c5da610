"""Automatic pauses end when their cause does, and not before."""

import json

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Breaker, Event, Grant, Rule, now, transaction
from services.guilds.gateway import guild_snapshots
from services.guilds.members import MemberFacts
from services.guilds.role_safety import MANAGE_ROLES
from services.rules import pausing, views
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, open_intents
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")


async def test_a_member_in_screening_keeps_no_refused_role_paused() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        lurker, holder = await a_member(db, server, wallet=address()), await a_member(db, server, wallet=address())
        lurker.pending = True
        db.add(lurker)
        waiting = await a_grant(db, lurker, rule, state="giving")
        waiting.next_at = waiting.created_at
        await a_grant(db, holder, rule)
        await db.flush()
        # Discord refused the removal of the holder's role.
        await pausing.refused(db, server.id or 0, "7", "Missing Permissions")
        await db.execute(text("UPDATE role_refusal SET next_at = now() - interval '1 day'"))
    async with transaction() as db:
        assert await open_intents(db, 10, []) == [], "nothing is tried for somebody in screening"
        resumed = await pausing.retry_refused(db)
    async with transaction() as db:
        assert (resumed, (await db.get_one(Rule, rule.id)).state) == (1, "active")
    async with transaction() as db:
        with Statements() as statements:
            assert await pausing.retry_refused(db) == 0
        assert statements.count == 1, "nearly all turns find nothing"


async def test_a_rule_beyond_the_limits_stays_paused_when_the_bot_leaves_and_comes_back() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        await pausing.pause_rules(db, server.id or 0, [rule.id or 0], "too many", pausing.TOO_MANY)
        await pausing.pause_all(db, server.id or 0, pausing.AWAY_REASON, pausing.AWAY)
        await pausing.roles_judged(db, server.id or 0, resumed=["7"])
    async with transaction() as db:
        found = await db.get_one(Rule, rule.id)
        assert (found.state, found.pause_cause) == ("paused", pausing.TOO_MANY)


@pytest.mark.parametrize("decided", [False, True])
async def test_removals_of_a_role_that_was_deleted_wait_for_nobody(decided: bool) -> None:
    async with transaction() as db:
        server = await a_server(db)
        await a_rule(db, server, "7")
        at = now() if decided else None
        for role_id in ("7", "8"):
            db.add(
                Breaker(server_id=server.id or 0, role_id=role_id, would_lose=6, holders=9, dismissed_at=at)
            )  # fmt: skip
    async with transaction() as db:
        await pausing.role_gone(db, server.id or 0, "7")
    async with transaction() as db:
        assert [row.role_id for row in (await db.exec(select(Breaker))).all()] == ["8"]


async def test_a_deleted_role_of_a_deleted_rule_leaves_nothing_behind() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        rule.deleted_at = now()
        db.add(rule)
        await a_grant(db, await a_member(db, server, roles=("7",)), rule)
        db.add(Breaker(server_id=server.id or 0, role_id="7", would_lose=6, holders=9))
    bot = MemberFacts("1", "the bot", frozenset(), bot=True)
    everyone = RoleFacts(server.discord_id, "@everyone", 0, False, 0)
    guild = GuildFacts(server.discord_id, "A server", None, server.owner_id or "", "1", (everyone,), (bot,))
    async with transaction() as db:
        await gateway_events.check_roles(db, guild)
    async with transaction() as db:
        assert [(await db.exec(select(table))).all() for table in (Grant, Breaker, Rule)] == [[], [], []]
        assert (await db.exec(select(Event.kind).where(Event.server_id == server.id))).all() == ["role.deleted"]


async def test_a_renamed_role_has_its_new_name_in_rules_and_in_what_pauses_them() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        other = await a_rule(db, server, "7")
        other.deleted_at = now()
        db.add(other)
        await a_grant(db, await a_member(db, server, roles=("7",)), other)
    bot = MemberFacts("1", "the bot", frozenset({"5"}), bot=True)

    async def roles_are(name: str, position: int) -> None:
        roles = (
            RoleFacts(server.discord_id, "@everyone", 0, False, MANAGE_ROLES),
            RoleFacts("5", "bot", 5, True, MANAGE_ROLES),
            RoleFacts("7", name, position, False, 0),
        )
        guild = GuildFacts(server.discord_id, "A server", None, server.owner_id or "", "1", roles, (bot,))
        async with transaction() as db:
            await gateway_events.check_roles(db, guild)

    async def named() -> list[tuple[str, str | None]]:
        async with transaction() as db:
            found = await db.exec(select(Rule.role_name, Rule.pause_reason).order_by(col(Rule.id)))
            return list(found.all())

    await roles_are("Whale", 1)
    assert await named() == [("Whale", None), ("Whale", None)]
    await roles_are("Whale", 9)
    await roles_are("Blue Whale", 9)
    reason = "Blue Whale is above the bot's own role. Move the bot's role above it in Server Settings › Roles."
    assert await named() == [("Blue Whale", reason), ("Blue Whale", None)]
    async with transaction() as db:
        (view,) = await views.of_rules(db, server.id or 0, [rule.id or 0])
        assert (view.role_name, view.pause_reason) == ("Blue Whale", reason)
        assert (await db.exec(select(Event.kind).where(Event.server_id == server.id))).all() == ["rule.paused"]


async def test_a_recolored_role_has_its_new_color_in_the_rules_that_have_its_old_one() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rules = [await a_rule(db, server, "7") for _ in range(3)]
        for rule, color in zip(rules, ("#3498db", "#3498DB", "#ABCDEF"), strict=True):
            rule.role_color = color
            db.add(rule)
    bot = MemberFacts("1", "the bot", frozenset({"5"}), bot=True)

    async def shown_with(color: int) -> list[str]:
        roles = (
            RoleFacts(server.discord_id, "@everyone", 0, False, MANAGE_ROLES),
            RoleFacts("5", "bot", 5, True, MANAGE_ROLES),
            RoleFacts("7", "Whale", 1, False, 0, color=color),
        )
        guild = GuildFacts(server.discord_id, "A server", None, server.owner_id or "", "1", roles, (bot,))
        async with transaction() as db:
            await gateway_events.check_roles(db, guild)
            snapshot = {"roles": [{"id": role.id, "color": role.color} for role in roles]}
            await guild_snapshots.keep(db, guild.id, json.dumps(snapshot))
        async with transaction() as db:
            return list((await db.exec(select(Rule.role_color).order_by(col(Rule.id)))).all())

    assert await shown_with(0x3498DB) == ["#3498db", "#3498DB", "#ABCDEF"], "nothing is known of another colour"
    assert await shown_with(0xE67E22) == ["#E67E22", "#E67E22", "#ABCDEF"], "a program chose the last one"
    assert await shown_with(0) == ["#5865F2", "#5865F2", "#ABCDEF"]
