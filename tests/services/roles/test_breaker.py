"""The breaker: it stops removals when many members would lose a role at once, but not when few would."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Breaker, Event, Grant, Server, now, transaction
from services.core import audit
from services.core.event_kinds import Kind
from services.roles import breaker
from services.roles.breaker import Removal
from services.servers import breaker_review
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    ("losing", "holders", "stops"),
    [
        (5, 5, False),
        (6, 6, True),
        (6, 29, True),
        (6, 30, False),
        (7, 30, True),
        (200, 1000, False),
        (201, 1000, True),
        (650, 10_000, False),
        (651, 10_000, True),
    ],
)
def test_over_five_people_and_over_a_fifth_and_less_in_a_large_role(losing: int, holders: int, stops: bool) -> None:
    assert breaker.too_many(losing, holders) is stops


async def a_role_with(holders: int, *, taking: int = 0, taken: int = 0) -> tuple[Server, str]:
    role = snowflake()
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, role)
        for number in range(holders):
            await a_grant(db, await a_member(db, server), rule, state="taking" if number < taking else "held")
        await audit.record_all(
            db, [audit.line("role.taken", server_id=server.id, role_id=role, subject=snowflake()) for _ in range(taken)]
        )
    return server, role


async def stopped(server: Server, role: str, losing: int, **how: bool) -> bool:
    async with transaction() as db:
        holders = await db.exec(
            select(Grant.discord_id).where(Grant.role_id == role, Grant.state == "held").limit(losing)
        )
        people = [*holders.all(), *(snowflake() for _ in range(losing))][:losing]
        return bool(await breaker.stop_excess(db, [Removal(server.id or 0, role, who, **how) for who in people]))


async def test_removals_done_and_pending_count_with_the_new_ones() -> None:
    server, role = await a_role_with(20, taking=2, taken=1)
    assert not await stopped(server, role, 1)
    assert await stopped(server, role, 3)


async def test_a_few_removals_read_few_lines_of_the_ledger_however_many_hold_the_role() -> None:
    server, role = await a_role_with(200)
    removals = [Removal(server.id or 0, role, snowflake()) for _ in range(breaker.MOST_PEOPLE)]
    async with transaction() as db:
        await db.execute(text('ANALYZE "grant"'))
    async with transaction() as db:
        # Of so few rows, the planner would read all at once.
        await db.execute(text("SET LOCAL enable_seqscan = off"))
        assert not await breaker.stop_excess(db, removals)
        read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'grant'"
        assert (await db.execute(text(read))).scalar_one() <= 2 * len(removals)


async def test_the_holders_of_a_trip_include_those_who_lost_the_role_and_each_once() -> None:
    server, role = await a_role_with(20, taking=2, taken=3)
    async with transaction() as db:
        held = select(Grant.discord_id).where(Grant.role_id == role, Grant.state == "held").limit(4)
        being_taken = select(Grant.discord_id).where(Grant.role_id == role, Grant.state == "taking").limit(1)
        people = [*(await db.exec(held)).all(), *(await db.exec(being_taken)).all(), snowflake()]
        assert await breaker.stop_excess(db, [Removal(server.id or 0, role, who) for who in people])
        (trip,) = await breaker.tripped(db, server.id or 0)
    assert (trip.would_lose, trip.holders) == (2 + 3 + 4 + 1, 20 + 3 + 1)


async def test_a_tripped_role_stays_stopped_until_an_admin_approves() -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    assert await stopped(server, role, 1)
    async with transaction() as db:
        assert [row.role_id for row in await breaker.tripped(db, server.id or 0)] == [role]
        assert await breaker.approve(db, server.id or 0, "ada") == 1
    assert not await stopped(server, role, 6)
    async with transaction() as db:
        newest = select(Event.kind).where(Event.server_id == server.id).order_by(col(Event.id).desc())
        kinds = list((await db.exec(newest)).all())
    assert kinds == ["breaker.approved", "breaker.tripped"]


async def test_one_person_who_sells_and_buys_often_trips_nothing() -> None:
    server, role = await a_role_with(2)
    async with transaction() as db:
        who = (await db.exec(select(Grant.discord_id).where(Grant.role_id == role))).first()
        taken = [audit.line("role.taken", server_id=server.id, role_id=role, subject=who) for _ in range(9)]
        await audit.record_all(db, taken)
        assert not await breaker.stop_excess(db, [Removal(server.id or 0, role, who or "")])


async def test_another_role_of_the_server_is_not_concerned() -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    assert not await stopped(server, snowflake(), 3)


async def test_an_approval_is_for_a_day_and_not_for_ever() -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        await breaker.approve(db, server.id or 0, "ada")
        row = await db.get_one(Breaker, (server.id or 0, role))
        assert row.approved_at is not None
        row.approved_at -= breaker.APPROVED_FOR
        db.add(row)
    assert not await stopped(server, role, 1)
    assert await stopped(server, role, 6)


@pytest.mark.parametrize(
    ("kind", "of_role", "data", "ends"),
    [
        ("rule.changed", True, {"minTokens": 2}, True),
        ("rule.changed", True, {"name": "Cats"}, False),
        ("rule.changed", True, {"roleId": "7"}, True),
        ("rule.changed", False, {"minTokens": 2}, False),
        ("rule.deleted", True, {}, True),
        ("rule.deleted", False, {}, False),
        ("rule.created", True, {"takesOver": False}, False),
        ("rule.created", True, {"takesOver": True}, True),
        ("rule.paused", True, {}, False),
        ("rule.resumed", True, {}, False),
        ("role.protected", True, {"protected": False}, True),
        ("role.protected", True, {"protected": True}, False),
        ("role.protected", False, {"protected": False}, False),
    ],
)
async def test_an_approval_ends_with_the_causes_that_it_was_given_for(
    kind: Kind, of_role: bool, data: dict[str, object], ends: bool
) -> None:
    server, role = await a_role_with(20)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        await breaker.approve(db, server.id or 0, "ada")
    assert not await stopped(server, role, 6), "an honest sale of many goes on"
    named = role if of_role else snowflake()
    document: dict[str, object] = {"name": "Dogs", "roleId": named}
    said: dict[str, object] = {"rule": document | data}
    if kind == "rule.changed":
        said = {"before": document, "after": document | data}
    elif kind == "role.protected":
        said = data
    line = audit.line(kind, server_id=server.id, role_id=str(data.get("roleId", named)), data=said)
    async with transaction() as db:
        await audit.record(db, line)
    assert await stopped(server, role, 6) is ends


async def test_what_an_approval_permitted_is_no_part_of_the_next_trip() -> None:
    server, role = await a_role_with(20)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        await breaker.approve(db, server.id or 0, "ada")
        gone = [audit.line("role.taken", server_id=server.id, role_id=role, subject=snowflake()) for _ in range(6)]
        deleted = audit.line("rule.deleted", server_id=server.id, role_id=role)
        await audit.record_all(db, [*gone, deleted])
    assert not await stopped(server, role, 1)
    assert await stopped(server, role, 6)


async def test_a_trip_ends_when_nobody_waits_any_more() -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        first, second = (await db.exec(select(Grant).where(Grant.role_id == role).limit(2))).all()
        first.held_back_at, second.state = now(), "taking"
    for grant in (first, second):
        async with transaction() as db:
            assert await breaker.end_idle(db) == 0
            row = await db.get_one(Grant, grant.id)
            row.held_back_at, row.state = None, "held"
    async with transaction() as db:
        assert await breaker.end_idle(db) == 1
        assert await breaker.tripped(db, server.id or 0) == []
        assert await breaker.end_idle(db) == 0
        kinds = (await db.exec(select(Event.kind).where(Event.server_id == server.id).order_by(col(Event.id)))).all()
    assert kinds == ["breaker.tripped", "breaker.ended"]
    assert not await stopped(server, role, 1)
    assert await stopped(server, role, 6)


async def test_a_trip_that_somebody_decided_about_does_not_end() -> None:
    server, role = await a_role_with(10)
    await dismissed(server, role, timedelta(0))
    async with transaction() as db:
        assert await breaker.end_idle(db) == 0
        assert await breaker.approve(db, server.id or 0, "ada", role) == 1


async def test_a_dismissed_trip_lets_everybody_keep_the_role_and_starts_the_count_again() -> None:
    server, role = await a_role_with(10, taking=1)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        held = (await db.exec(select(Grant).where(Grant.role_id == role, Grant.state == "held").limit(6))).all()
        for grant in held:
            grant.held_back_at = now()
        assert await breaker.dismiss(db, server.id or 0, "ada", snowflake()) == 0
        assert await breaker.dismiss(db, server.id or 0, "ada", role) == 1
        assert await breaker.tripped(db, server.id or 0) == []
    async with transaction() as db:
        gifts = (await db.exec(select(Grant).where(col(Grant.gift_since).is_not(None)))).all()
        assert sorted(grant.state for grant in gifts) == ["giving", *["held"] * 6]
    assert not await stopped(server, role, 1)
    assert await stopped(server, role, 6), "what comes later is counted like any other day"


async def test_what_was_dismissed_can_be_approved_all_the_same() -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    async with transaction() as db:
        grant = (await db.exec(select(Grant).where(Grant.role_id == role).limit(1))).one()
        grant.held_back_at = now()
        await breaker.dismiss(db, server.id or 0, "ada")
    async with transaction() as db:
        assert await breaker.approve(db, server.id or 0, "ada") == 1
        assert (await db.exec(select(Grant).where(col(Grant.gift_since).is_not(None)))).all() == []
    assert not await stopped(server, role, 6)


async def dismissed(server: Server, role: str, ago: timedelta) -> None:
    """Trip the role's breaker and let an admin dismiss it `ago`, with one member who keeps the role."""
    assert await stopped(server, role, 6)
    async with transaction() as db:
        grant = (await db.exec(select(Grant).where(Grant.role_id == role).limit(1))).one()
        grant.held_back_at = now()
        await db.flush()
        assert await breaker.dismiss(db, server.id or 0, "ada", role) == 1
        row = await db.get_one(Breaker, (server.id or 0, role))
        row.dismissed_at = now() - ago
        db.add(row)


async def gifts(role: str) -> int:
    async with transaction() as db:
        return len(
            (await db.exec(select(Grant).where(Grant.role_id == role, col(Grant.gift_since).is_not(None)))).all()
        )


@pytest.mark.parametrize("another_waits", [True, False])
async def test_approving_all_leaves_what_was_dismissed_before(another_waits: bool) -> None:
    server, role = await a_role_with(10)
    await dismissed(server, role, timedelta(days=2) if not another_waits else timedelta(hours=1))
    other = snowflake()
    async with transaction() as db:
        rule = await a_rule(db, server, other)
        for _ in range(10):
            await a_grant(db, await a_member(db, server), rule)
    assert not another_waits or await stopped(server, other, 6)
    async with transaction() as db:
        assert await breaker.approve(db, server.id or 0, "ada") == int(another_waits)
        row = await db.get_one(Breaker, (server.id or 0, role))
    assert (row.approved_at, row.dismissed_at is not None, await gifts(role)) == (None, True, 1)
    async with transaction() as db:
        assert await breaker.approve(db, server.id or 0, "ada", role) == 1, "by its name it can be"
    assert await gifts(role) == 0


@pytest.mark.parametrize("decision", [breaker.approve, breaker.dismiss])
async def test_what_was_dismissed_is_no_part_of_the_next_trip(decision: Callable[..., Awaitable[int]]) -> None:
    server, role = await a_role_with(10)
    await dismissed(server, role, timedelta(days=2))
    assert await stopped(server, role, 6), "others lose it, two days later"
    async with transaction() as db:
        kept = (await db.exec(select(Grant).where(Grant.role_id == role, col(Grant.gift_since).is_not(None)))).one()
        others = select(Grant).where(Grant.role_id == role, col(Grant.gift_since).is_(None))
        for grant in (await db.exec(others.limit(6))).all():
            grant.held_back_at = now()
    async with transaction() as db:
        assert (await breaker_review.trips(db, server.id or 0))[role].total == 6
        assert await decision(db, server.id or 0, "ada", role) == 1
    async with transaction() as db:
        still = await db.get_one(Grant, kept.id)
        assert (still.gift_since, still.held_back_at) == (kept.gift_since, kept.held_back_at)
    assert await gifts(role) == (1 if decision is breaker.approve else 7)
    async with transaction() as db:
        await breaker.approve(db, server.id or 0, "ada", role)
    assert await gifts(role) == 1, "nobody asked about the first one again"


@pytest.mark.parametrize("first", ["approve", "dismiss"])
async def test_of_two_admins_at_the_same_moment_the_second_decides_nothing(first: str) -> None:
    server, role = await a_role_with(10)
    assert await stopped(server, role, 6)
    decide = {"approve": breaker.approve, "dismiss": breaker.dismiss}

    async def late() -> int:
        async with transaction() as db:
            return await decide["dismiss"](db, server.id or 0, "bob", role)

    async with transaction() as db:
        assert await decide[first](db, server.id or 0, "ada", role) == 1
        await db.flush()
        second = asyncio.create_task(late())
        await asyncio.sleep(0.2)
    assert await second == 0
    async with transaction() as db:
        row = await db.get_one(Breaker, (server.id or 0, role))
    assert (row.approved_by, row.dismissed_by) == (("ada", None) if first == "approve" else (None, "ada"))


async def test_those_who_only_wait_for_the_role_are_no_holders() -> None:
    server, role = await a_role_with(20)
    async with transaction() as db:
        rule = await a_rule(db, server, role)
        for _ in range(100):
            await a_grant(db, await a_member(db, server), rule, state="giving")
    assert await stopped(server, role, 6)


async def test_who_never_had_the_role_does_not_count() -> None:
    server, role = await a_role_with(6)
    assert not await stopped(server, role, 50, counts=False)
    assert await stopped(server, role, 6)
    assert await stopped(server, role, 1, counts=False), "what is stopped is stopped for them too"


async def test_removals_by_one_source_alone_are_five_a_day_however_large_the_role() -> None:
    server, role = await a_role_with(200)
    assert not await stopped(server, role, 5, one_source=True)
    assert not await stopped(server, role, 7)
    async with transaction() as db:
        rule = await a_rule(db, server, role)
        for _ in range(3):
            row = await a_grant(db, await a_member(db, server), rule, state="taking")
            row.evidence = {"readings": [{"oneSource": True}]}
            db.add(row)
        data = {"readings": [{"answer": "no"}, {"oneSource": True}]}
        await audit.record(
            db, audit.line("role.taken", server_id=server.id, role_id=role, subject=snowflake(), data=data)
        )
    assert not await stopped(server, role, 1, one_source=True)
    assert not await stopped(server, role, 2)
    assert await stopped(server, role, 2, one_source=True)
