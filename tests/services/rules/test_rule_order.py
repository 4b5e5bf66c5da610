"""Changes of several rules lock them in one order, before refusals and members, and never deadlock with each other."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Grant, Member, Rule, Server, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.privacy import erasure
from services.rules import pausing, rules
from services.rules.rule_rows import document
from services.triggers import gateway_events
from tests.services.rules.test_pausing_order import ABOVE, BELOW, guild_with
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import Step, meet

pytestmark = pytest.mark.usefixtures("database")

EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


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
