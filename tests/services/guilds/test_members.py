"""What follows when members leave or their rules are paused."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Member, ServerMove, now, transaction
from services.core import queue
from services.guilds import members
from services.rules import pausing
from services.triggers import gateway_events
from tests.services.roles.test_outbox import change, guilds
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("database")
VAULT = "0x" + "aa" * 20


async def due_versions() -> dict[str, int]:
    async with transaction() as db:
        found = await db.execute(text("SELECT key, version FROM due"))
        return {str(key): int(version) for key, version in found.all()}


async def test_with_the_oldest_claimant_of_a_vault_gone_the_next_one_is_reconciled() -> None:
    await guilds(1, 0)
    for place, name in enumerate(("p1", "p2"), start=1):
        wallet = "0x" + f"{place}{place}" * 20
        await change(
            'INSERT INTO "user" (id, discord_id, username, connected, created_at, updated_at) '
            "VALUES (:id, :name, :name, false, now(), now())",
            id=place, name=name,
        )  # fmt: skip
        await change(
            "INSERT INTO wallet (user_id, family, address, method, evidence, created_at) "
            "VALUES (:id, 'evm', :address, 'x', '{}', now())",
            id=place, address=wallet,
        )  # fmt: skip
        await change(
            "INSERT INTO member (server_id, discord_id, name, roles, pending, bot, seen_at) "
            "VALUES (1, :name, 'P', '{}', false, false, now())",
            name=name,
        )
        await change(
            "INSERT INTO delegation (chain, delegate, vault, contract, token_id, single, first_seen_at)"
            " VALUES ('base', :delegate, :vault, '', '', false, now())",
            delegate=wallet, vault=VAULT,
        )  # fmt: skip
    async with transaction() as db:
        await members.left_many(db, [(1, "p1")])
    assert await due_versions() == {"1:p2": 1}
    async with transaction() as db:
        await gateway_events.member_left(db, "g1", "p1")
    assert await due_versions() == {"1:p2": 1}, "they were gone already"


async def test_a_list_waits_for_a_reconcile_of_its_members_with_no_lock_that_the_reconcile_needs() -> None:
    """A reconcile has locked the member's row in the queue when it stores them, because they lost a role of ours."""
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, snowflake())
        member = await a_member(db, server, roles=(rule.role_id,), wallet=address())
    shown = members.MemberFacts(member.discord_id, "somebody", frozenset())

    async def listed() -> None:
        async with transaction() as db:
            await members.listed(db, member.server_id, [shown])

    async with transaction() as db:
        await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
        listing = asyncio.create_task(listed())
        await until_one_waits()
        await members.keep(db, member.server_id, [shown])
    await listing
    async with transaction() as db:
        assert [claim.priority for claim in await queue.claim(db, "w1", 9)] == [queue.JOINED]


async def test_a_list_with_somebody_who_is_just_joining_waits_for_that_with_no_lock_that_it_needs() -> None:
    async with transaction() as db:
        server = await a_server(db)
        gone = await a_member(db, server, wallet=address())
        await db.delete(gone)
    shown = members.MemberFacts(gone.discord_id, "somebody", frozenset())

    async def listed() -> None:
        async with transaction() as db:
            await members.listed(db, gone.server_id, [shown])

    async with transaction() as db:
        await queue.mark_member(db, gone.server_id, gone.discord_id, queue.JOINED)
        listing = asyncio.create_task(listed())
        await until_one_waits()
        await members.joined(db, gone.server_id, shown)
    await listing
    async with transaction() as db:
        assert (await db.get_one(Member, (gone.server_id, gone.discord_id))).name == "somebody"
        assert [claim.discord_id for claim in await queue.claim(db, "w1", 9)] == [gone.discord_id]


async def test_of_those_who_are_new_in_a_list_only_whom_a_rule_can_concern_is_reconciled() -> None:
    async with transaction() as db:
        server = await a_server(db)
        server_id, handed, moved = server.id or 0, await a_rule(db, server, snowflake()), snowflake()
        handed.takes_over = True
        db.add(ServerMove(server_id=server_id, begins_at=now(), until=now() + timedelta(days=1), roles=[moved]))
        known = [await a_member(db, server, wallet=address()) for _ in range(2)]
        owing = await a_member(db, server)
        await a_grant(db, owing, handed)
        for one in (known[1], owing):
            await db.delete(one)
        known[0].left_at = now()
    concerned = {
        **{one.discord_id: frozenset[str]() for one in (*known, owing)},
        snowflake(): frozenset({handed.role_id}), snowflake(): frozenset({moved}),
    }  # fmt: skip
    others = {snowflake(): frozenset[str](), snowflake(): frozenset({snowflake()})}
    shown = [members.MemberFacts(who, "somebody", roles) for who, roles in (concerned | others).items()]
    bot = members.MemberFacts(snowflake(), "a bot", frozenset({handed.role_id}), bot=True)
    async with transaction() as db:
        await members.listed(db, server_id, [*shown, bot])
    async with transaction() as db:
        assert {claim.discord_id for claim in await queue.claim(db, "w1", 99)} == set(concerned)
        stored = (await db.exec(select(Member.discord_id).where(col(Member.left_at).is_(None)))).all()
        assert set(stored) == {*concerned, *others, bot.discord_id}


@pytest.mark.parametrize("with_a_wallet", [True, False])
async def test_somebody_who_was_thought_to_have_left_is_reconciled_when_an_event_shows_them(
    with_a_wallet: bool,
) -> None:
    """Nothing else reports that they are there: the event of their return was lost."""
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=address() if with_a_wallet else None)
        guild, who = server.discord_id, member.discord_id
    async with transaction() as db:
        await gateway_events.member_left(db, guild, who)
        await gateway_events.member_changed(db, guild, members.MemberFacts(who, "Somebody", frozenset()))
    async with transaction() as db:
        claimed = [(one.discord_id, one.priority) for one in await queue.claim(db, "w1", 9)]
    assert claimed == ([(who, queue.JOINED)] if with_a_wallet else [])


async def test_a_pause_makes_looks_that_are_under_way_count_for_nothing() -> None:
    await guilds(2, 0)
    for key, claimed in (("1:5", True), ("1:6", False), ("2:5", True)):
        await change(
            "INSERT INTO due (kind, key, priority, due_at, version, attempts, claimed_until) VALUES "
            "('member', :key, 0, now(), 1, 0, CASE WHEN :claimed THEN now() + interval '1 minute' END)",
            key=key, claimed=claimed,
        )  # fmt: skip
    async with transaction() as db:
        await pausing.pause_role(db, 1, "7", "It is too high.", "above_bot")
    assert await due_versions() == {"1:5": 2, "1:6": 1, "2:5": 1}
