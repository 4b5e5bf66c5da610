"""Removals that are called off: the grant is held, and notes that its role was never given unless it is there."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from sqlmodel import select

from models import Breaker, Event, Grant, Rule, Server, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.roles import breaker
from services.rules import pausing
from services.triggers import gateway_events
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import until_one_waits


async def called_off(db: AsyncSession, *, given: bool, there: bool) -> tuple[str, Mapping[str, Any]]:
    """Return the state and the evidence of a grant after its removal was called off."""
    server, role_id = await a_server(db), snowflake()
    member = await a_member(db, server, roles=(role_id,) if there else ())
    grant = await a_grant(db, member, await a_rule(db, server, role_id), state="taking")
    grant.evidence = {} if given else {"given": False}
    await db.flush()
    await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
    await queue.call_off_removals_from(db, member.discord_id)
    found = await db.exec(select(Grant.state, Grant.evidence).where(Grant.discord_id == member.discord_id))
    return found.one()


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("there", [True, False])
async def test_the_note_that_a_role_was_never_given_stays_until_it_is_there(
    database: str, given: bool, there: bool
) -> None:
    async with transaction() as db:
        noted = {} if given or there else {"given": False}
        assert await called_off(db, given=given, there=there) == ("held", noted)


async def change_all(step: str, server: Server, rule: Rule) -> None:
    """Do something that concerns everybody who has a role."""
    server_id = server.id or 0
    async with transaction() as db:
        match step:
            case "call off":
                await pausing.call_off_removals(db, server_id)
            case "begin grace times":
                await pausing.begin_grace_again(db, server_id, [rule.id or 0])
            case "role deleted":
                await pausing.role_gone(db, server_id, rule.role_id)
            case _:
                assert await breaker.approve(db, server_id, "an admin") == 1


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("call off", [("held", True), ("held", True)]), ("begin grace times", [("held", True), ("held", True)]),
        ("role deleted", []), ("approve", [("held", False), ("held", False)]),
    ],
)  # fmt: skip
async def test_what_concerns_everybody_with_a_role_waits_for_a_reconcile_and_never_deadlocks(
    database: str, step: str, left: list[tuple[str, bool]]
) -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        people = [await a_member(db, server) for _ in range(2)]
        first, last = sorted(people, key=lambda member: member.discord_id)
        for member in (last, first):  # the table holds them in this order, and a reconcile locks them in the other
            grant = await a_grant(db, member, rule, state="taking" if step == "call off" else "held")
            grant.no_since = grant.held_back_at = now()
        db.add(Breaker(server_id=server.id or 0, role_id=rule.role_id, would_lose=2, holders=2))

    def locked(discord_id: str) -> Any:
        return select(Grant).where(Grant.discord_id == discord_id).with_for_update()

    async with transaction() as db:
        await db.exec(locked(first.discord_id))
        changing = asyncio.create_task(change_all(step, server, rule))
        await until_one_waits()
        await db.exec(locked(last.discord_id))
    await changing
    async with transaction() as db:
        found = (await db.exec(select(Grant))).all()
    assert [(grant.state, grant.held_back_at is not None) for grant in found] == left


@pytest.mark.parametrize("decide", [breaker.approve, breaker.dismiss], ids=["approve", "dismiss"])
async def test_a_decision_about_held_back_removals_waits_for_the_deletion_of_the_role_and_never_deadlocks(
    database: str, decide: Callable[[AsyncSession, int, str], Awaitable[int]]
) -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        grant = await a_grant(db, await a_member(db, server, roles=(rule.role_id,)), rule)
        grant.held_back_at = now()
        db.add(Breaker(server_id=server.id or 0, role_id=rule.role_id, would_lose=1, holders=1))

    async def decided() -> int:
        async with transaction() as db:
            return await decide(db, server.id or 0, "an admin")

    async with transaction() as db:
        await db.exec(select(Grant).with_for_update())  # which the deletion locks before the breaker
        deciding = asyncio.create_task(decided())
        await until_one_waits()
        await pausing.role_gone(db, server.id or 0, rule.role_id)
    assert await deciding == 0
    async with transaction() as db:
        assert (await db.exec(select(Breaker))).all() == []


async def test_the_bot_that_leaves_waits_for_a_refusal_and_never_deadlocks(database: str) -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        await a_grant(db, await a_member(db, server, roles=(rule.role_id,)), rule, state="taking")

    async def leave() -> None:
        async with transaction() as db:
            await gateway_events.left(db, server.discord_id)

    async with transaction() as db:
        await db.exec(select(Rule).with_for_update())  # which a refusal locks before the grants
        leaving = asyncio.create_task(leave())
        await until_one_waits()
        await pausing.refused(db, server.id or 0, rule.role_id, "Discord refused")
    await leaving
    async with transaction() as db:
        assert (await db.exec(select(Grant.state))).all() == ["held"]
        assert (await db.get_one(Rule, rule.id)).pause_cause == pausing.AWAY
        (line,) = (await db.exec(select(Event.data).where(Event.kind == "bot.left"))).all()
        assert line == {"removalsLeftUndone": 1}
