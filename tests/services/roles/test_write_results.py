"""Results of role changes after the ledger has changed its mind, or the membership has ended."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, update
from sqlmodel import col, select

from gateways.discord.types import MemberGone
from models import Event, Grant, Member, Rule, Server, ServerMove, User, Wallet, now, transaction
from services.core import queue
from services.guilds import members
from services.roles import outbox, write_results
from services.roles.outbox import Intent, WriteOutcome, WriteResult
from services.rules import pausing
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, open_intents, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("database")


async def being_given(role: str) -> Intent:
    """Return a role that the writer is giving just now."""
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, role)
        grant = await a_grant(db, await a_member(db, server), rule, state="giving")
        grant.intended_at = grant.next_at = grant.created_at
        db.add(grant)
        await db.execute("UPDATE member SET seen_at = now() - interval '1 minute'")
    async with transaction() as db:
        (intent,) = await open_intents(db, 1, ())
    return intent


async def grants() -> list[tuple[str, dict[str, Any]]]:
    async with transaction() as db:
        return [(row.state, row.evidence) for row in (await db.exec(select(Grant))).all()]


async def done(intent: Intent) -> None:
    async with transaction() as db:
        await write_results.record(db, intent, WriteOutcome(WriteResult.DONE))


@pytest.mark.parametrize("state", ["taking", "held"])
async def test_a_role_that_comes_although_it_is_not_wanted_any_more_is_ours_and_decided_again(state: str) -> None:
    intent = await being_given(role := snowflake())
    async with transaction() as db:
        # Meanwhile the member sold, and perhaps a rule changed.
        await db.execute(update(Grant).values(state=state, evidence={"given": False}, intended_at=func.now()))
    await done(intent)
    assert await grants() == [(state, {})]
    async with transaction() as db:
        assert (await db.get_one(Member, (intent.server_id, intent.discord_id))).roles == [role]
        assert [row.kind for row in (await db.exec(select(Event))).all()] == ["role.given"]
        assert [claim.discord_id for claim in await queue.claim(db, "w", 9)] == [intent.discord_id]


async def test_a_role_that_was_given_in_a_membership_that_has_ended_is_nobodys() -> None:
    intent = await being_given(snowflake())
    async with transaction() as db:
        await members.left_many(db, [(intent.server_id, intent.discord_id)])
    async with transaction() as db:
        await members.joined(db, intent.server_id, members.MemberFacts(intent.discord_id, "back", frozenset()))
    await done(intent)
    assert await grants() == []


class Returning:
    """A Discord that a member has left; the bot hears that they came back before the last answer about them arrives."""

    def __init__(self, intent: Intent, comes_back: bool) -> None:
        self.intent, self.comes_back = intent, comes_back
        self.discord = self

    async def add_role(self, *_: str) -> None:
        raise MemberGone("Discord", "Unknown Member", status=404, code=10007)

    async def membership(self, *_: str) -> None:
        if self.comes_back:
            async with transaction() as db:
                facts = members.MemberFacts(self.intent.discord_id, "back", frozenset())
                await members.joined(db, self.intent.server_id, facts)


@pytest.mark.parametrize("comes_back", [True, False])
async def test_who_comes_back_while_a_role_is_given_has_not_left(comes_back: bool) -> None:
    """The event that they left was lost, so their grant is still there."""
    intent = await being_given(snowflake())
    outside: Any = Returning(intent, comes_back)
    outcome = await outbox.carry_out(outside, intent, sure=True)
    assert outcome.result is WriteResult.LEFT
    async with transaction() as db:
        await write_results.record(db, intent, outcome)
    async with transaction() as db:
        left_at = (await db.get_one(Member, (intent.server_id, intent.discord_id))).left_at
        again = await open_intents(db, 1, ())
    assert (left_at is None, len(await grants())) == ((True, 1) if comes_back else (False, 0))
    assert len(again) == comes_back, "the next try shows whether they are there"


async def record_left(intent: Intent) -> None:
    """Record that Discord, which is asked now, does not know the member."""
    outcome = WriteOutcome(WriteResult.LEFT)
    async with transaction() as db:
        await write_results.record(db, intent, outcome)


async def test_a_result_that_waits_for_the_event_that_the_member_came_back_does_not_end_their_membership() -> None:
    intent = await being_given(snowflake())
    async with transaction() as db:
        await members.keep(db, intent.server_id, [members.MemberFacts(intent.discord_id, "back", frozenset())])
        recording = asyncio.create_task(record_left(intent))
        await until_one_waits()
        # They came back after the question, and before the answer was recorded.
        began = "SELECT max(query_start) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        await db.execute(f"UPDATE member SET seen_at = ({began} AND datname = current_database())")
    await recording
    assert len(await grants()) == 1


async def test_a_member_who_left_is_not_asked_about_again_and_again_where_a_clock_was_ahead() -> None:
    intent = await being_given(snowflake())
    async with transaction() as db:
        await db.execute("UPDATE member SET seen_at = now() + interval '1 hour'")
    await record_left(intent)
    assert await grants() == []


@pytest.mark.parametrize(
    ("locks", "result", "left"),
    [
        ("member", WriteResult.DONE, 2), ("member", WriteResult.LEFT, 0), ("queue", WriteResult.DONE, 2),
        ("member", WriteResult.NO_ROLE, 1),
    ],
    ids=["stores the member", "stores one who left", "decides again", "deletes the grants of the role"],
)  # fmt: skip
async def test_a_result_waits_for_a_reconcile_of_the_member_with_no_lock_that_the_reconcile_needs(
    locks: str, result: WriteResult, left: int
) -> None:
    """A reconcile has locked the member's row in the queue, stores them if Discord was asked, and then their grants."""
    intent = await being_given(snowflake())
    async with transaction() as db:
        member = await db.get_one(Member, (intent.server_id, intent.discord_id))
        rule = (await db.exec(select(Rule))).one()
        before = await a_grant(db, member, await a_rule(db, await db.get_one(Server, intent.server_id), snowflake()))
        # It is taken once the member has the role that its rule gives now.
        before.rule_ids, before.no_since = [rule.id or 0], now()
    async with transaction() as db:
        if locks == "member":
            await members.keep(db, intent.server_id, [members.MemberFacts(intent.discord_id, "new", frozenset())])
            await db.execute("UPDATE member SET seen_at = now() - interval '1 minute'")
        else:
            await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)

        async def record() -> None:
            async with transaction() as db:
                await write_results.record(db, intent, WriteOutcome(result))

        recording = asyncio.create_task(record())
        await until_one_waits()
        await db.execute(update(Grant).where(col(Grant.id) == intent.id).values(updated_at=func.now()))
    await recording
    assert len(await grants()) == left


@pytest.mark.parametrize("result", [WriteResult.REFUSED, WriteResult.NO_ROLE])
async def test_a_refusal_waits_for_a_change_of_the_roles_rules_without_the_members_lock(result: WriteResult) -> None:
    """Such a change queues the members next, and a reconcile that has the queue's row of the member stores them."""
    intent = await being_given(snowflake())

    async def record() -> None:
        async with transaction() as db:
            await write_results.record(db, intent, WriteOutcome(result))

    async with transaction() as admin:
        await admin.execute("UPDATE rule SET name = 'Another name'")
        recording = asyncio.create_task(record())
        await until_one_waits()
        async with transaction() as reconcile:
            await queue.mark_member(reconcile, intent.server_id, intent.discord_id, queue.SEEN)
            (member,) = await reconcile.together(("SELECT discord_id FROM member FOR UPDATE SKIP LOCKED", {}))
        assert member == [(intent.discord_id,)]
        await queue.mark_server(admin, intent.server_id, queue.CHANGED)
    await recording


async def test_a_deleted_rule_goes_with_its_last_role_and_no_removal_looks_through_other_rules() -> None:
    role = snowflake()
    async with transaction() as db:
        server, elsewhere = await a_server(db), await a_server(db)
        rule, others = await a_rule(db, server, role), await a_rule(db, elsewhere, snowflake())
        rule.deleted_at = others.deleted_at = now()
        for _ in range(2):
            grant = await a_grant(db, await a_member(db, server, roles=(role,)), rule, state="taking")
            grant.intended_at = grant.next_at = grant.created_at
    async with transaction() as db:
        first, second = await open_intents(db, 2, ())

    async def left() -> set[int | None]:
        async with transaction() as db:
            return set((await db.exec(select(Rule.id))).all())

    await done(first)
    assert await left() == {rule.id, others.id}
    await done(second)
    assert await left() == {others.id}, "only housekeeping looks through the deleted rules of all servers"
    async with transaction() as db:
        assert await pausing.sweep_deleted(db) == 1


@pytest.mark.parametrize("protected", [False, True])
async def test_a_role_that_came_unseen_is_not_taken_where_it_is_protected(protected: bool) -> None:
    """Nobody saw it come, so the decision to take it could not know that there was something to protect."""
    await being_given(role := snowflake())
    async with transaction() as db:
        await db.execute(update(Grant).values(state="taking", evidence={"given": False}))
        if protected:
            await db.execute(update(Server).values(protected_roles=[role]))
    async with transaction() as db:
        (intent,) = await open_intents(db, 1, ())
        assert await write_results.is_still_wanted(db, intent) is not protected


@pytest.mark.parametrize(
    ("had_before", "wallet", "kept"), [(False, False, True), (True, True, True), (False, True, False)]
)
async def test_a_role_that_came_unseen_is_not_taken_where_an_open_move_keeps_it(
    had_before: bool, wallet: bool, kept: bool
) -> None:
    """Once the bot has seen the role, the next reconcile keeps it for the same reason."""
    intent = await being_given(role := snowflake())
    async with transaction() as db:
        await db.execute(update(Grant).values(state="taking", evidence={"given": False}, had_before=had_before))
        until = now() + timedelta(days=1)
        db.add(ServerMove(server_id=intent.server_id, begins_at=now(), until=until, roles=[role]))
        if wallet:
            db.add(user := User(discord_id=intent.discord_id, username="somebody"))
            await db.flush()
            db.add(Wallet(user_id=user.id or 0, family="evm", address=address(), method="opensea_bio"))
    async with transaction() as db:
        (intent,) = await open_intents(db, 1, ())
        assert await write_results.is_still_wanted(db, intent) is not kept


TRIP = """
    INSERT INTO breaker (server_id, role_id, would_lose, holders, tripped_at)
    SELECT server_id, role_id, 9, 9, now() FROM "grant"
"""
EARLIER = """UPDATE "grant" SET intended_at = intended_at - interval '{} seconds'"""


@pytest.mark.parametrize(
    ("since", "age", "wanted"),
    [
        ("SELECT 1", 0, True),
        (EARLIER.format(1), 0, False),
        (EARLIER.format(61), 61, False),
        ("UPDATE rule SET state = 'paused'", 0, False),
        ("UPDATE rule SET state = 'paused', deleted_at = now()", 0, True),
        (TRIP, 0, False),
    ],
    ids=["as it was", "another one", "too old", "paused", "deleted", "tripped"],
)
async def test_a_removal_is_sent_only_if_nothing_stops_it_at_the_last_moment(
    since: str, age: int, wanted: bool
) -> None:
    await being_given(snowflake())
    async with transaction() as db:
        await db.execute(update(Grant).values(state="taking"))
        (intent,) = await open_intents(db, 1, ())
        await db.execute(since)
        intent = replace(intent, intended_at=intent.intended_at - timedelta(seconds=age))
        assert await write_results.is_still_wanted(db, intent) is wanted


@pytest.mark.parametrize("result", [WriteResult.NO_ROLE, WriteResult.REFUSED])
async def test_changes_of_one_role_that_fail_at_the_same_moment_wait_for_each_other_and_never_deadlock(
    result: WriteResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several members' changes of one role are sent at a time, so a role that is deleted or moved up fails them all."""
    role = snowflake()
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, role)
        for _ in range(2):
            grant = await a_grant(db, await a_member(db, server, roles=(role,)), rule, state="taking")
            grant.intended_at = grant.next_at = grant.created_at
    async with transaction() as db:
        intents = await open_intents(db, 2, ())
    both, tell_others = asyncio.Barrier(2), write_results._tell_others

    async def tell_together(*arguments: Any) -> None:
        await both.wait()
        await tell_others(*arguments)

    monkeypatch.setattr(write_results, "_tell_others", tell_together)

    async def record(intent: Intent) -> None:
        async with transaction() as db:
            await write_results.record(db, intent, WriteOutcome(result, error="Discord says no"))

    await asyncio.gather(*map(record, intents))
    async with transaction() as db:
        assert (await db.get_one(Rule, rule.id)).state == "paused"
    assert [state for state, _ in await grants()] == ([] if result is WriteResult.NO_ROLE else ["held", "held"])
