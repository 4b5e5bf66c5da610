"""Changes of several roles in Discord wait for reconciles of their members, and never deadlock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, delete, select

from models import Breaker, Grant, Rule, Server, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.guilds.members import MemberFacts
from services.guilds.role_safety import MANAGE_ROLES
from services.rules import pausing
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import until_it_waits

pytestmark = pytest.mark.usefixtures("database")
BELOW, ABOVE = 1, 9
"""Positions of roles, for a bot whose own role is at 5."""


def guild_with(server: Server, positions: dict[str, int], name: str = "Role") -> GuildFacts:
    """Return the server's guild with these roles, all of this name."""
    roles = (
        RoleFacts(server.discord_id, "@everyone", 0, False, MANAGE_ROLES),
        RoleFacts("5", "bot", 5, True, MANAGE_ROLES),
        *(RoleFacts(role_id, name, position, False, 0) for role_id, position in positions.items()),
    )
    bot = MemberFacts("1", "the bot", frozenset({"5"}), bot=True)
    return GuildFacts(server.discord_id, "A server", None, server.owner_id or "", "1", roles, (bot,))


async def while_it_waits(guild: GuildFacts, discord_id: str, then: Callable[[AsyncSession], Awaitable[object]]) -> None:
    """Lock a member's grants, check the guild's roles, and do `then` beside the lock once the check waits for it."""

    async def check() -> None:
        async with transaction() as db:
            await gateway_events.check_roles(db, guild)

    async with transaction() as db:
        await db.exec(grants_of(discord_id))
        checking = asyncio.create_task(check())
        await until_it_waits(checking)
        await then(db)
    await checking


def grants_of(discord_id: str) -> Any:
    return select(Grant.id).where(Grant.discord_id == discord_id).with_for_update()


@pytest.mark.parametrize(
    ("causes", "positions", "left"),
    [
        ((None, None), (ABOVE, ABOVE), [("paused", "above_bot")] * 2),
        ((None, None), (None, None), [("paused", "role_gone")] * 2),
        (("above_bot", None), (BELOW, ABOVE), [("active", None), ("paused", "above_bot")]),
        (("above_bot", "above_bot"), (BELOW, BELOW), [("active", None)] * 2),
        ((None, None), (ABOVE, None), [("paused", "above_bot"), ("paused", "role_gone")]),
    ],
    ids=["two pause", "two are deleted", "one resumes and one pauses", "two resume", "one pauses, one is deleted"],
)
@pytest.mark.parametrize("locked", ["a grant", "a breaker"])
async def test_roles_that_change_together_wait_for_a_reconcile_of_two_members_and_never_deadlock(
    causes: tuple[str | None, ...], positions: tuple[int | None, ...], left: list[tuple[str, str | None]], locked: str
) -> None:
    async with transaction() as db:
        server, roles = await a_server(db), [snowflake(), snowflake()]
        first, last = [await a_member(db, server) for _ in roles]
        # The keys of grants put the first member's role before the last member's, which is the lesser one.
        for member, role_id, cause in zip((last, first), roles, causes, strict=True):
            rule = await a_rule(db, server, role_id, state="paused" if cause else "active")
            rule.pause_cause = cause
            grant = await a_grant(db, member, rule, state="held" if cause else "taking")
            grant.no_since = now()
            db.add(Breaker(server_id=server.id or 0, role_id=role_id, would_lose=6, holders=9))

    async def go_on(db: AsyncSession) -> None:
        of_first_role = select(Breaker).where(Breaker.role_id == roles[0]).with_for_update()
        await db.exec(grants_of(last.discord_id) if locked == "a grant" else of_first_role)

    there = {role_id: place for role_id, place in zip(roles, positions, strict=True) if place is not None}
    await while_it_waits(guild_with(server, there), first.discord_id, go_on)
    async with transaction() as db:
        rules = (await db.exec(select(Rule.state, Rule.pause_cause).order_by(col(Rule.id)))).all()
        states = (await db.exec(select(Grant.role_id, Grant.state).order_by(col(Grant.role_id)))).all()
    assert rules == left
    assert states == [(role_id, "held") for role_id in sorted(there)]


async def test_a_removal_that_settles_a_deleted_rule_skips_one_that_is_being_renamed() -> None:
    async with transaction() as db:
        server, role_id = await a_server(db), snowflake()
        gone = await a_rule(db, server, role_id)
        gone.deleted_at = now()
        member = await a_member(db, server)
        grant = await a_grant(db, member, await a_rule(db, server, role_id), state="taking")
        grant.rule_ids = [*grant.rule_ids, gone.id or 0]

    async def end_the_removal(db: AsyncSession) -> None:
        await db.exec(delete(Grant).where(col(Grant.id) == grant.id))
        assert await pausing.sweep_deleted(db, grant.rule_ids) == 0

    await while_it_waits(guild_with(server, {role_id: ABOVE}, "Another name"), member.discord_id, end_the_removal)
    async with transaction() as db:
        assert await pausing.sweep_deleted(db) == 1, "housekeeping deletes it"


async def test_roles_of_several_servers_that_are_tried_again_queue_their_members_in_the_order_of_all_marks() -> None:
    async with transaction() as db:
        for server_id in (9, 10):  # whose keys in the queue begin with these numbers as texts
            server = Server(id=server_id, discord_id=snowflake(), name="A server", bot_invited=True)
            db.add(server)
            await db.flush()
            rule = await a_rule(db, server, snowflake())
            member = await a_member(db, server)
            await a_grant(db, member, rule)
            await queue.mark_member(db, server_id, member.discord_id, queue.SWEPT)
            await pausing.refused(db, server_id, rule.role_id, "Discord refused")
        await db.execute(text("UPDATE role_refusal SET next_at = now() - interval '1 second' / server_id"))
        keys = [str(key) for (key,) in (await db.execute(text("SELECT key FROM due ORDER BY key"))).all()]
    assert [key.partition(":")[0] for key in keys] == ["10", "9"]

    async def try_again() -> int:
        async with transaction() as db:
            return await pausing.retry_refused(db)

    async def mark(db: AsyncSession, key: str) -> None:
        server_id, _, discord_id = key.partition(":")
        await queue.mark_member(db, int(server_id), discord_id, queue.SWEPT)

    first, last = keys
    async with transaction() as db:
        await mark(db, first)
        trying = asyncio.create_task(try_again())
        await until_it_waits(trying)
        await mark(db, last)
    assert await trying == 2
