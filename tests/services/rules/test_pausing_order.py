"""Changes of rules and of several roles in Discord wait for each other and for reconciles, and never deadlock."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, delete, select

from models import Breaker, Grant, Member, Rule, Server, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.guilds.members import MemberFacts
from services.guilds.role_safety import MANAGE_ROLES
from services.privacy import erasure
from services.rules import pausing, rules
from services.rules.rule_rows import document
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import Step, meet, until_it_waits

pytestmark = pytest.mark.usefixtures("database")
BELOW, ABOVE = 1, 9
"""Positions of roles, for a bot whose own role is at 5."""
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


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


def locked(rule: Rule) -> Step:
    """Return what locks a rule, as an admin's change of it does."""
    return lambda db: db.exec(select(Rule).where(Rule.id == rule.id).with_for_update())


def refused(server: Server, role_id: str) -> Step:
    return lambda db: pausing.refused(db, server.id or 0, role_id, "Discord refused")


async def two_rules(db: AsyncSession) -> tuple[Server, Rule, Rule]:
    """Return a server with two rules, the older one for the greater role and behind the other one in its table."""
    server, lesser, greater = await a_server(db), snowflake(), snowflake()
    first, last = await a_rule(db, server, greater), await a_rule(db, server, lesser)
    while await _comes_first(db, first):
        await db.execute(text("UPDATE rule SET updated_at = now() WHERE id = :id"), {"id": first.id})
    return server, first, last


async def _comes_first(db: AsyncSession, rule: Rule) -> bool:
    """Return whether the table holds this rule before all others."""
    return (await db.execute(text("SELECT id FROM rule ORDER BY ctid LIMIT 1"))).scalar_one() == rule.id


@pytest.mark.parametrize(
    "change",
    ["roles are renamed", "roles rise", "roles are deleted", "roles fall", "the bot left", "are tried again", "erased"],
)
async def test_a_change_of_many_rules_waits_for_an_admin_who_changes_them_in_the_order_of_their_ids(
    change: str,
) -> None:
    async with transaction() as db:
        server, first, last = await two_rules(db)
        roles = [first.role_id, last.role_id]
        if change == "are tried again":
            for role_id in roles:
                await refused(server, role_id)(db)
            await db.execute(text("UPDATE role_refusal SET next_at = now()"))
        if change == "roles fall":
            await pausing.roles_judged(db, server.id or 0, paused=dict.fromkeys(roles, ("Too high.", "above_bot")))
        if change == "erased":
            creator = first.created_by = last.created_by
            await db.execute(erasure._AT_ONCE[0], {"who": creator, "pseudonym": "forgotten-1"})

    async def step(db: AsyncSession) -> None:
        match change:
            case "the bot left":
                await gateway_events.left(db, server.discord_id)
            case "are tried again":
                assert await pausing.retry_refused(db) == 2
            case "erased":
                await erasure.finish(db)
            case "roles are renamed":
                await gateway_events.check_roles(db, guild_with(server, dict.fromkeys(roles, BELOW), "Another name"))
            case _:
                there = {"roles rise": dict.fromkeys(roles, ABOVE), "roles fall": dict.fromkeys(roles, BELOW)}
                await gateway_events.check_roles(db, guild_with(server, there.get(change, {})))

    await meet(step, locked(first), locked(last))
    async with transaction() as db:
        found = (await db.exec(select(Rule).order_by(col(Rule.id)))).all()
    changed = {
        "roles are renamed": ("active", "Another name"), "roles rise": ("paused", "Role"), "roles fall":
        ("active", "Role"), "roles are deleted": ("paused", "Role"), "the bot left": ("paused", "Role"),
        "are tried again": ("active", "Role"), "erased": ("active", "Role"),
    }  # fmt: skip
    assert {(rule.state, rule.role_name) for rule in found} == {changed[change]}


@pytest.mark.parametrize("step", ["accepted", "tried again"])
async def test_the_end_of_a_refusal_waits_for_the_next_refusal_and_never_deadlocks(step: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, snowflake())
        await refused(server, rule.role_id)(db)
        await db.execute(text("UPDATE role_refusal SET next_at = now()"))

    async def ends(db: AsyncSession) -> None:
        if step == "accepted":
            await pausing.accepted(db, server.id or 0, rule.role_id)
        else:
            assert await pausing.retry_refused(db) == 0, "the next try is a minute away"

    await meet(ends, locked(rule), refused(server, rule.role_id))
    async with transaction() as db:
        assert (await db.get_one(Rule, rule.id)).state == ("active" if step == "accepted" else "paused")


async def test_the_bot_that_comes_back_waits_for_a_change_of_a_rule_before_it_queues_the_members() -> None:
    async with transaction() as db:
        server = await a_server(db, bot_invited=False)
        rule = await a_rule(db, server, snowflake(), state="paused")
        rule.pause_cause = pausing.AWAY
        member = await a_member(db, server)
        await a_grant(db, member, rule)
        await queue.mark_member(db, member.server_id, member.discord_id, queue.SWEPT)

    async def comes(db: AsyncSession) -> None:
        await gateway_events.guild_available(db, guild_with(server, {rule.role_id: BELOW}))

    async def goes_on(db: AsyncSession) -> None:
        await pausing.decide_again(db, server.id or 0, [rule.role_id])

    await meet(comes, locked(rule), goes_on)
    async with transaction() as db:
        assert (await db.get_one(Rule, rule.id)).state == "active"


async def test_a_rule_that_decides_again_waits_for_a_member_who_leaves_with_two_roles_and_never_deadlocks() -> None:
    """The removal of one role is called off, and the grace time of the other one begins again."""
    async with transaction() as db:
        server, lesser, greater = await a_server(db), snowflake(), snowflake()
        rule = await a_rule(db, server, greater, state="shadow")
        member = await a_member(db, server, roles=(lesser, greater))
        held = await a_grant(db, member, await a_rule(db, server, lesser))
        held.rule_ids, held.no_since = [rule.id or 0], EARLIER
        await a_grant(db, member, rule, state="taking")

    async def activate(db: AsyncSession) -> None:
        row = await db.get_one(Rule, rule.id)
        before, row.state = document(row), "active"
        await db.flush()
        await rules.mark_changed(db, row, before)

    await meet(activate, grant_of(member, lesser), grant_of(member, greater))
    async with transaction() as db:
        grants = (await db.exec(select(Grant).order_by(col(Grant.role_id)))).all()
    assert [grant.state for grant in grants] == ["held", "held"]
    assert grants[0].no_since != EARLIER


async def test_the_bot_that_leaves_waits_for_a_member_who_leaves_with_two_roles_and_never_deadlocks() -> None:
    """The removal of one role was caused by a rule that is paused now, that of the other one by a deleted rule."""
    async with transaction() as db:
        server, lesser, greater = await a_server(db), snowflake(), snowflake()
        member = await a_member(db, server, roles=(lesser, greater))
        (await a_grant(db, member, await a_rule(db, server, lesser), state="taking")).rule_ids = []
        await a_grant(db, member, await a_rule(db, server, greater), state="taking")

    async def leave(db: AsyncSession) -> None:
        await gateway_events.left(db, server.discord_id)

    await meet(leave, grant_of(member, lesser), grant_of(member, greater))
    async with transaction() as db:
        assert set((await db.exec(select(Grant.state))).all()) == {"held"}


def grant_of(member: Member, role_id: str) -> Step:
    """Return what locks the member's grant of a role, as the event that they left does with one after the other."""
    return lambda db: db.exec(
        select(Grant.id).where(Grant.discord_id == member.discord_id, Grant.role_id == role_id).with_for_update()
    )


async def two_servers(db: AsyncSession) -> tuple[Rule, Rule, list[Grant]]:
    """Return a rule and a removal in each of two servers, the first one with the younger rule and the greater guild id.

    The rules and the grants are in the order of their keys.
    """
    lesser, greater = sorted((snowflake(), snowflake()))
    first, last = [
        Server(discord_id=guild_id, name="A server", bot_invited=True) for guild_id in (greater, lesser)
    ]  # fmt: skip
    for server in (first, last):
        db.add(server)
        await db.flush()
    older, younger = await a_rule(db, last, snowflake()), await a_rule(db, first, snowflake())
    removals = [
        await a_grant(db, await a_member(db, server), rule, state="taking")
        for server, rule in ((first, younger), (last, older))
    ]
    return older, younger, removals


@pytest.mark.parametrize("rows", ["rules", "grants"])
async def test_servers_that_the_bot_left_wait_for_who_changes_several_of_them_in_the_order_of_their_keys(
    rows: str,
) -> None:
    async with transaction() as db:
        older, younger, (of_first, of_last) = await two_servers(db)

    def removal(one: Grant) -> Step:
        return lambda db: db.exec(select(Grant.id).where(Grant.id == one.id).with_for_update())

    async def leave(db: AsyncSession) -> None:
        await gateway_events.left_others(db, list)

    if rows == "rules":
        await meet(leave, locked(older), locked(younger))
    else:
        await meet(leave, removal(of_first), removal(of_last))
    async with transaction() as db:
        assert set((await db.exec(select(Rule.pause_cause))).all()) == {pausing.AWAY}
        assert set((await db.exec(select(Grant.state))).all()) == {"held"}
