"""The sweep over all members: who is due in it, and what is retried."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import text

from jobs import scheduler
from models import AsyncSession, Grant, Schedule, now, transaction
from services.core import queue
from services.health import backlog
from services.triggers import sweep
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, open_intents, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("state", ["giving", "taking"])
async def test_a_sweep_tries_again_what_waits_for_discord_to_recover(state: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        grant = await a_grant(db, await a_member(db, server), await a_rule(db, server, snowflake()), state=state)
        grant.next_at, grant.attempts = now() + timedelta(minutes=5), 8
        db.add(grant)
    async with transaction() as db:
        assert await open_intents(db, 10, set()) == []
        await sweep.start_sweep(db)
        (intent,) = await open_intents(db, 10, set())
        assert (intent.id, intent.attempts) == (grant.id, 8)


async def test_a_sweep_leaves_alone_what_nobody_intends() -> None:
    async with transaction() as db:
        server = await a_server(db)
        grant = await a_grant(db, await a_member(db, server), await a_rule(db, server, snowflake()))
    async with transaction() as db:
        assert await sweep.start_sweep(db) == 1
        assert await open_intents(db, 10, set()) == []
        assert (await db.get_one(Grant, grant.id)).next_at is None


async def test_a_sweep_missed_while_nothing_ran_begins_at_once_and_only_once() -> None:
    async with transaction() as db:
        db.add(Schedule(name=sweep.SCHEDULE, next_at=now() - timedelta(days=3)))
    began = []
    for _ in range(2):
        await scheduler.prepare(scheduler.all_jobs())
        for job in scheduler.all_jobs():
            await scheduler.take_turn(job)
        async with transaction() as db:
            row = await db.get_one(Schedule, sweep.SCHEDULE)
            began.append(row.started_at)
            assert row.next_at > now(), "the next one comes in its turn"
    assert began[0] is not None
    assert began == [began[0]] * 2


async def servers_with_a_member(count: int) -> list[str]:
    """Store servers, each with a member who has a wallet; return the members' keys in the queue."""
    async with transaction() as db:
        people = [await a_member(db, await a_server(db), wallet=address()) for _ in range(count)]
    return [f"{one.server_id}:{one.discord_id}" for one in people]


async def is_free(key: str) -> bool:
    """Return whether a member is queued, and nobody holds the row."""
    async with transaction() as db:
        free = text("SELECT 1 FROM due WHERE key = :key FOR UPDATE SKIP LOCKED")
        return (await db.execute(free, {"key": key})).first() is not None


async def test_nobody_waits_for_a_sweep_that_queues_the_members_of_other_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = await servers_with_a_member(2)
    monkeypatch.setattr(sweep, "MOST_AT_ONCE", 1)

    async def start() -> int:
        async with transaction() as db:
            return await sweep.start_sweep(db)

    async with transaction() as db:
        server_id, _, who = second.partition(":")
        await queue.mark_member(db, int(server_id), who, queue.CHANGED)
        starting = asyncio.create_task(start())
        await until_one_waits()
        assert await is_free(first)
    assert await starting == 2


async def test_a_sweep_that_ends_early_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await servers_with_a_member(2)
    monkeypatch.setattr(sweep, "MOST_AT_ONCE", 1)
    job = next(one for one in scheduler.all_jobs() if one.name == sweep.SCHEDULE)
    await scheduler.prepare([job])
    async with transaction() as db:
        await sweep.ask_for_sweep(db)
    mark_swept = queue.mark_swept

    async def only_the_first(db: AsyncSession, servers: Sequence[int]) -> int:
        if await is_free(first):
            raise InterruptedError
        return await mark_swept(db, servers)

    with monkeypatch.context() as patched:
        patched.setattr(queue, "mark_swept", only_the_first)
        with pytest.raises(InterruptedError):
            await scheduler.take_turn(job)
    assert [await is_free(key) for key in (first, second)] == [True, False]
    assert await scheduler.take_turn(job)
    assert [await is_free(key) for key in (first, second)] == [True, True]
    async with transaction() as db:
        assert (await sweep.progress(db)).total == 2


async def test_the_end_of_a_sweep_is_not_taken_for_that_of_the_next() -> None:
    async with transaction() as db:
        await sweep.start_sweep(db)

    async def finish() -> bool:
        async with transaction() as db:
            return await sweep.finish_if_done(db)

    async with transaction() as db:
        await sweep.start_sweep(db)
        await queue.mark_member(db, 1, "5", queue.SWEPT)
        finishing = asyncio.create_task(finish())
        await until_one_waits()
    assert not await finishing
    async with transaction() as db:
        assert (await sweep.progress(db)).finished_at is None


async def test_a_running_sweep_says_how_much_longer_it_takes() -> None:
    moment = now()
    assert sweep.seconds_left(moment - timedelta(seconds=60), moment, total=100, left=75) == 180
    assert sweep.seconds_left(moment, moment, total=100, left=100) is None
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(4):
            await a_member(db, server, wallet=address())
    async with transaction() as db:
        await sweep.start_sweep(db)
        row = await db.get_one(Schedule, sweep.SCHEDULE, populate_existing=True)
        row.total, row.started_at = 8, now() - timedelta(minutes=2)
        db.add(row)
        await db.flush()
        told = (await backlog.last_sweep(db, now())).text
    assert told.startswith("A daily sweep is in progress: 4 of 8 members still wait, which takes")
    assert told.endswith("about 2 minutes more.")
