"""Members wait in one table: marked once, claimed by one worker, never lost."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from jobs.reconciler import Reconciler
from models import AsyncSession, Due, now, transaction
from models.db.session import GuardFailed
from services.core import queue
from services.core.queue import Claim, mark_due
from services.core.queue.claims import CLAIM, LEASE, pause_after
from services.engine import reconcile
from services.runtime.task_cancellation import stop
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("database")


async def claimed(worker: str = "w1", limit: int = 10) -> list[Claim]:
    async with transaction() as db:
        return await queue.claim(db, worker, limit)


async def ours(db: AsyncSession, claims: Sequence[Claim]) -> list[str]:
    (((keys, _),),) = await db.together(queue.still_ours("w1", claims))
    return list(keys)


async def rows() -> list[Due]:
    async with transaction() as db:
        return [Due(**dict(row._mapping)) for row in await db.execute(text("SELECT * FROM due ORDER BY key"))]


async def mark(server_id: int, who: str, priority: int = queue.CHANGED) -> None:
    async with transaction() as db:
        await queue.mark_member(db, server_id, who, priority)


async def test_marking_twice_is_one_row_with_the_greater_urgency() -> None:
    await mark(1, "5", queue.SWEPT)
    await mark(1, "5", queue.WAITING)
    await mark(1, "5", queue.CHANGED)
    (row,) = await rows()
    assert (row.priority, row.version) == (queue.WAITING, 3)


async def test_the_most_urgent_are_claimed_first_and_by_one_worker_only() -> None:
    await mark(1, "5", queue.SWEPT)
    await mark(1, "6", queue.WAITING)
    assert [claim.discord_id for claim in await claimed("w1", 1)] == ["6"]
    assert [claim.discord_id for claim in await claimed("w2")] == ["5"]
    assert await claimed("w3") == []


async def test_two_workers_at_once_never_claim_the_same_member() -> None:
    async with transaction() as db:
        for number in range(60):
            await queue.mark_member(db, 1, str(number), queue.CHANGED)
    batches = await asyncio.gather(*(claimed(f"w{number}", 20) for number in range(4)))
    keys = [claim.key for batch in batches for claim in batch]
    assert len(keys) == len(set(keys)) == 60


async def test_a_lapsed_lease_is_claimed_again() -> None:
    await mark(1, "5")
    assert len(await claimed("w1")) == 1
    async with transaction() as db:
        await db.execute(text("UPDATE due SET claimed_until = now() - interval '1 second'"))
    assert len(await claimed("w2")) == 1


async def test_done_deletes_only_what_nobody_marked_meanwhile() -> None:
    await mark(1, "5")
    await mark(1, "6")
    claims = await claimed()
    await mark(1, "6")
    async with transaction() as db:
        assert await ours(db, claims) == ["1:5"]
        queue.complete(db, "w1", claims)
    (row,) = await rows()
    assert row.key == "1:6"
    assert row.claimed_until is None
    assert [claim.discord_id for claim in await claimed("w2")] == ["6"]


async def test_what_is_done_for_claims_is_done_only_while_nothing_new_became_known() -> None:
    async def doing(worker: str = "w1") -> None:
        async with transaction() as db:
            queue.check_unchanged(db, worker, claims)
            db.later("UPDATE due SET reason = 'done'", {})

    await mark(1, "5")
    await mark(1, "6")
    claims = await claimed()
    with pytest.raises(GuardFailed):
        await doing("w2")
    await mark(1, "6")
    with pytest.raises(GuardFailed):
        await doing()
    assert [row.reason for row in await rows()] == [None, None]
    claims = [claim for claim in claims if claim.discord_id == "5"]
    await doing()
    assert [row.reason for row in await rows()] == ["done", "done"]


async def test_pauses_grow_with_the_attempts_and_a_new_mark_ends_them() -> None:
    await mark(1, "5")
    pauses: list[float] = []
    for _ in range(3):
        async with transaction() as db:
            await db.execute(text("UPDATE due SET due_at = now()"))
        async with transaction() as db:
            await queue.retry_later(db, "w1", claims := await queue.claim(db, "w1", 10), [None] * len(claims))
        (row,) = await rows()
        pauses.append(round((row.due_at - now()).total_seconds()))
    assert pauses == [5, 10, 20]
    assert await claimed() == []
    await mark(1, "5")
    assert len(await claimed()) == 1


async def test_a_member_who_waits_comes_before_a_sweep_and_so_does_their_second_try() -> None:
    await mark(1, "waits", queue.WAITING)
    async with transaction() as db:
        await queue.retry_later(db, "w1", await queue.claim(db, "w1", 1), ["a node did not answer"])
    for who in ("5", "6"):
        await mark(1, who, queue.SWEPT)
    async with transaction() as db:
        await db.execute(text("UPDATE due SET due_at = now() - interval '1 minute' WHERE key <> '1:waits'"))
        await db.execute(text("UPDATE due SET due_at = now() WHERE key = '1:waits'"))
    await mark(1, "7", queue.CHANGED)
    assert [claim.discord_id for _ in range(2) for claim in await claimed(limit=1)] == ["7", "waits"]


async def test_a_second_try_of_the_sweep_stays_behind_those_not_tried_yet() -> None:
    await mark(1, "5", queue.SWEPT)
    async with transaction() as db:
        await queue.retry_later(db, "w1", await queue.claim(db, "w1", 1), ["a node did not answer"])
    await mark(1, "6", queue.SWEPT)
    async with transaction() as db:
        await db.execute(text("UPDATE due SET due_at = now() WHERE key = '1:5'"))
    assert [claim.discord_id for claim in await claimed(limit=1)] == ["6"]


async def test_pauses_reach_two_hours_and_no_more() -> None:
    await mark(1, "5")
    claim = (await claimed())[0]
    for attempts, pause in ((9, 2560), (11, 7200), (4_000, 7200)):
        async with transaction() as db:
            await db.execute(text("UPDATE due SET claimed_by = 'w1', claimed_until = now() + interval '1 minute'"))
            await queue.retry_later(db, "w1", [replace(claim, attempts=attempts)], [None])
        (row,) = await rows()
        assert round((row.due_at - now()).total_seconds()) == pause


def test_a_look_that_may_soon_succeed_is_made_then_and_after_many_vain_ones_once_a_minute() -> None:
    assert [pause_after(0, 61.2), pause_after(3, 61.2), pause_after(40, 61.2)] == [62, 62, 62]
    assert [pause_after(attempts, 3.0) for attempts in (0, 1, 3, 4, 40)] == [5, 10, 40, 60, 60]


async def test_news_about_a_member_ends_the_growth_of_their_pauses_and_a_sweep_does_not() -> None:
    async with transaction() as db:
        member = await a_member(db, await a_server(db), wallet=address())
    await mark(member.server_id, member.discord_id)
    async with transaction() as db:
        await queue.retry_later(db, "w1", await queue.claim(db, "w1", 1), ["a node did not answer"])
        await queue.mark_swept(db, [member.server_id])
    (row,) = await rows()
    assert row.attempts == 1
    await mark(member.server_id, member.discord_id, queue.SEEN)
    (row,) = await rows()
    assert row.attempts == 0


async def test_servers_take_turns_so_that_a_large_one_does_not_hold_back_a_small_one() -> None:
    async with transaction() as db:
        large, small = await a_server(db), await a_server(db)
        for _ in range(40):
            await a_member(db, large, wallet=address())
        for _ in range(3):
            await a_member(db, small, wallet=address())
        await queue.mark_server(db, large.id or 0, queue.CHANGED)
    async with transaction() as db:
        await queue.mark_server(db, small.id or 0, queue.CHANGED)
    first = await claimed(limit=6)
    assert Counter(claim.server_id for claim in first) == {large.id: 3, small.id: 3}
    assert len(await claimed(limit=100)) == 37


async def test_the_sweep_claims_members_of_a_server_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_due, "EACH_TURN", 5)
    async with transaction() as db:
        servers = [await a_server(db) for _ in range(4)]
        for number in range(7 * len(servers)):
            await a_member(db, servers[number % len(servers)], wallet=address())
    async with transaction() as db:
        assert await queue.mark_swept(db, [server.id or 0 for server in servers]) == 28

    async def batch() -> Counter[int]:
        async with transaction() as db:
            # Use the plan of a large table: a small one may be sorted instead, which leaves equal rows in any order.
            await db.execute(text("SET LOCAL enable_sort = off"))
            return Counter(claim.server_id for claim in await queue.claim(db, "w1", 10))

    batches = [await batch() for _ in range(3)]
    # The first five members of two servers, then of the other two, and then the rest of all four.
    assert [sorted(batch.values()) for batch in batches] == [[5, 5], [5, 5], [2, 2, 2, 2]]


async def test_members_who_stay_unknown_keep_neither_the_sweep_nor_what_is_new_from_being_claimed() -> None:
    for number in range(40):
        await mark(1, f"unknown {number}")
    async with transaction() as db:
        await queue.retry_later(db, "w1", claims := await queue.claim(db, "w1", 40), [None] * len(claims))
        await db.execute(text("UPDATE due SET due_at = now() - interval '1 hour'"))
    for number in range(10):
        await mark(2, f"round {number}", queue.SWEPT)
        await mark(3, f"new {number}", queue.SEEN)
    first = await claimed(limit=8)
    assert Counter(claim.discord_id.split()[0] for claim in first) == {"new": 4, "unknown": 2, "round": 2}


async def test_a_server_whose_members_are_all_new_does_not_stop_the_sweep_of_the_others() -> None:
    for number in range(40):
        await mark(1, f"new {number}")
    for number in range(10):
        await mark(2, f"round {number}", queue.SWEPT)
    first = await claimed(limit=8)
    assert Counter(claim.discord_id.split()[0] for claim in first) == {"new": 6, "round": 2}


async def test_the_members_of_servers_that_are_busy_are_left_alone() -> None:
    for server_id in (1, 11, 111):
        await mark(server_id, "5")
    async with transaction() as db:
        assert {claim.server_id for claim in await queue.claim(db, "w1", 10, without={11})} == {1, 111}


async def test_a_sighting_is_told_from_what_else_may_have_become_known() -> None:
    async with transaction() as db:
        server = await a_server(db)
        first, second, third = [await a_member(db, server, wallet=address()) for _ in range(3)]
        for member in (first, second, third):
            await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
    claims = {claim.discord_id: claim for claim in await claimed("w1")}
    async with transaction() as db:
        wallets = {str(who): str(wallet) for who, wallet in (await db.execute(text(WALLETS))).all()}
        queue.mark_holders(db, "base", [wallets[second.discord_id], wallets[third.discord_id]], queue.SEEN)
        await queue.mark_member(db, third.server_id, third.discord_id, queue.CHANGED)
    async with transaction() as db:
        (((keys, seen),),) = await db.together(queue.still_ours("w1", list(claims.values())))
    assert (keys, seen) == ([claims[first.discord_id].key], [claims[second.discord_id].key])
    async with transaction() as db:
        queue.check_unchanged(db, "w1", [claims[first.discord_id]])
    for marked in (second, third):
        with pytest.raises(GuardFailed):
            async with transaction() as db:
                queue.check_unchanged(db, "w1", [claims[first.discord_id], claims[marked.discord_id]])
    async with transaction() as db:
        queue.complete(db, "w1", list(claims.values()), {claims[second.discord_id].key})
    assert {claim.discord_id: claim.overtaken for claim in await claimed("w2")} == {
        second.discord_id: 1, third.discord_id: 0,
    }  # fmt: skip


WALLETS = 'SELECT u.discord_id, w.address FROM wallet w JOIN "user" u ON u.id = w.user_id'


async def test_what_is_put_off_comes_again_after_its_pause_and_counts_as_no_attempt() -> None:
    await mark(1, "5")
    async with transaction() as db:
        await queue.postpone(db, "w1", await queue.claim(db, "w1", 1), 30)
    assert await claimed() == []
    async with transaction() as db:
        await db.execute(text("UPDATE due SET due_at = due_at - interval '30 seconds'"))
    (claim,) = await claimed()
    assert claim.attempts == 0


async def test_a_grace_time_brings_the_member_back_when_it_ends() -> None:
    await mark(1, "5")
    claims = await claimed()
    async with transaction() as db:
        await queue.reschedule(db, "w1", [(claims[0], now() + timedelta(hours=3))])
    (row,) = await rows()
    assert timedelta(hours=2) < row.due_at - now() < timedelta(hours=4)


async def test_the_sweep_finds_holders_of_wallets_or_roles_and_nobody_else() -> None:
    async with transaction() as db:
        server, without_bot = await a_server(db), await a_server(db, bot_invited=False)
        rule = await a_rule(db, server, snowflake())
        proved = await a_member(db, server, wallet=address())
        granted = await a_member(db, server)
        await a_grant(db, granted, rule)
        await a_member(db, server)
        await a_member(db, without_bot, wallet=address())
    async with transaction() as db:
        assert await queue.mark_swept(db, [server.id or 0, without_bot.id or 0]) == 2
    assert {claim.discord_id for claim in await claimed()} == {proved.discord_id, granted.discord_id}


async def test_a_sweep_does_not_disturb_a_running_reconcile() -> None:
    async with transaction() as db:
        member = await a_member(db, await a_server(db), wallet=address())
        await queue.mark_swept(db, [member.server_id])
    claims = await claimed()
    async with transaction() as db:
        await queue.mark_swept(db, [member.server_id])
        assert len(await ours(db, claims)) == 1


async def test_marks_that_overlap_do_not_deadlock() -> None:
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(30):
            await a_member(db, server, wallet=address())

    async def mark_all() -> None:
        async with transaction() as db:
            await queue.mark_server(db, server.id or 0, queue.CHANGED)

    await asyncio.gather(*(mark_all() for _ in range(8)))
    assert len(await rows()) == 30


async def test_who_takes_the_urgent_only_leaves_the_others() -> None:
    await mark(1, "5", queue.SWEPT)
    await mark(1, "6", queue.SEEN)
    async with transaction() as db:
        (claim,) = await queue.claim(db, "w1", 10, queue.SEEN)
    assert claim.discord_id == "6"


async def test_what_is_let_go_of_is_there_for_the_next() -> None:
    await mark(1, "5")
    async with transaction() as db:
        await queue.release(db, "w1", await queue.claim(db, "w1", 10))
    assert [claim.key for claim in await claimed("w2")] == ["1:5"]


@pytest.mark.parametrize("write", ["renew", "release_leases", "let_go", "put_off", "still_ours"])
async def test_writes_to_many_rows_wait_for_each_other_and_never_deadlock(write: str) -> None:
    for who in ("9", "5"):  # the table holds them in this order, and marks lock them in the opposite one
        await mark(1, who)
    claims = await claimed("w1")
    async with transaction() as db:  # a sighting
        await db.execute(text("UPDATE due SET version = version + 1, seen = seen + 1 WHERE key = '1:5'"))

    async def change() -> None:
        async with transaction() as db:
            if write == "renew":
                await queue.renew(db, "w1")
            elif write == "release_leases":
                await queue.release_leases(db, {"w1"}.__contains__)
            elif write == "still_ours":
                await db.together(queue.still_ours("w1", claims))
            elif write == "let_go":
                await queue.release(db, "w1", claims)
            else:
                await queue.postpone(db, "w1", claims, 30)

    async with transaction() as db:
        await queue.mark_member(db, 1, "5", queue.SEEN)
        changing = asyncio.create_task(change())
        await until_one_waits()
        await queue.mark_member(db, 1, "9", queue.SEEN)
    await changing
    assert {row.priority for row in await rows()} == {queue.SEEN}


async def test_claiming_never_compares_each_row_with_each() -> None:
    for number in range(20):
        await mark(1, str(number))
    async with transaction() as db:
        await db.execute(text("DELETE FROM due"))
        await db.execute(text("ANALYZE due"))  # as after a round: the planner expects an empty table
    for number in range(20):
        await mark(1, str(number))
    async with transaction() as db:
        values = {
            "limit": 10, "half": 5, "quarter": 3, "least": 0, "again": queue.AGAIN, "lease": LEASE,
            "worker": "w1", "busy": ["7"],
        }  # fmt: skip
        lines = (await db.execute(text(f"EXPLAIN {CLAIM}"), values)).scalars().all()
    plan = "\n".join(lines)
    assert "Nested Loop" not in plan, plan
    assert len(await claimed(limit=10)) == 10
    assert len(await claimed("w2", limit=20)) == 10


async def test_who_claims_a_full_batch_lets_the_database_analyze_the_queue() -> None:
    async with transaction() as db:
        server = await a_server(db)
        members = [await a_member(db, server) for _ in range(6)]
        for member in members:
            await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
        await db.execute(text("UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE oid = 'due'::regclass"))
    reconciler = Reconciler(asyncio.Event())
    reconciler.batch = 4
    assert await reconciler.once() == 4
    async with transaction() as db:
        said = (await db.execute(text("SELECT reltuples FROM pg_class WHERE oid = 'due'::regclass"))).scalar_one()
    assert said == 6


async def test_what_a_worker_had_in_hand_when_the_database_left_is_taken_up_once_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await mark(1, "5", queue.WAITING)
    looked_at: list[Claim] = []

    async def parts(_db: AsyncSession, _outside: object, claims: list[Claim]) -> list[reconcile.BatchPart]:
        looked_at.extend(claims)
        if len(looked_at) == 1:
            raise OperationalError("the look", {}, Exception("the server closed the connection"))
        seen_again.set()
        return []

    seen_again = asyncio.Event()
    monkeypatch.setattr(reconcile, "parts", parts)
    monkeypatch.setattr("jobs.reconciler.IDLE_SECONDS", 0.01)
    working = asyncio.create_task(Reconciler(asyncio.Event()).run())
    try:
        await asyncio.wait_for(seen_again.wait(), LEASE.total_seconds() / 2)
    finally:
        await stop(working)
    assert [claim.discord_id for claim in looked_at] == ["5", "5"]
