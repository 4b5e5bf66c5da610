"""Several statements in one round trip."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import psycopg
import psycopg.waiting
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, IntegrityError, OperationalError, ProgrammingError
from sqlmodel import select

from models import Counter, transaction
from models.db.database import reading
from models.db.session import AsyncSession, GuardFailed
from services.runtime.task_cancellation import stop
from tests.services.conftest import database as database

pytestmark = pytest.mark.usefixtures("database")

ADD = "INSERT INTO counter (name, label, outcome, total) VALUES (:name, '', '', :total)"
TOTALS = "SELECT name, total FROM counter ORDER BY name"


async def totals() -> list[tuple[str, int]]:
    async with reading() as db:
        (rows,) = await db.together((TOTALS, {}))
    return [(name, total) for name, total in rows]


# Found by their wait event: the text of a query remains there after the query ends.
SLEEPING = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"


async def asleep() -> None:
    async with reading() as db:
        while not (await db.together((f"SELECT pid {SLEEPING}", {})))[0]:
            await asyncio.sleep(0.01)


async def test_each_question_has_its_own_rows_in_their_order() -> None:
    async with transaction() as db:
        said = await db.together(
            ("SELECT :a || '%', :a", {"a": "100"}),
            (ADD, {"name": "one", "total": 1}),
            (TOTALS, {}),
            ("SELECT 1 WHERE false", {}),
        )
    assert said == [[("100%", "100")], [], [("one", 1)], []]
    assert await totals() == [("one", 1)]


async def test_what_waits_goes_before_whatever_comes_next() -> None:
    async def count(db: AsyncSession) -> int:
        return int((await db.execute(text("SELECT count(*) FROM counter"))).scalar_one())

    async with transaction() as db:
        db.later(ADD, {"name": "one", "total": 1})
        assert await count(db) == 1
        db.later(ADD, {"name": "two", "total": 2})
        assert await db.together((TOTALS, {})) == [[("one", 1), ("two", 2)]]
        db.later(ADD, {"name": "three", "total": 3})
        assert len((await db.exec(select(Counter))).all()) == 3
        db.later(ADD, {"name": "four", "total": 4})
        await (await db.connection()).execute(text("UPDATE counter SET total = 0"))
        db.later("UPDATE counter SET total = total + 1", {})
    assert await totals() == [("four", 1), ("one", 1), ("three", 1), ("two", 1)]


async def test_a_transaction_that_fails_leaves_nothing_of_what_waited() -> None:
    async def failing() -> None:
        async with transaction() as db:
            db.later(ADD, {"name": "one", "total": 1})
            raise KeyError

    with pytest.raises(KeyError):
        await failing()
    async with transaction() as db:
        db.later(ADD, {"name": "two", "total": 2})
        await db.rollback()
    assert await totals() == []


async def test_a_fault_is_told_as_of_any_statement_and_undoes_the_transaction(caplog: pytest.LogCaptureFixture) -> None:
    async def asking(*statements: str) -> None:
        async with transaction() as db:
            for statement in statements[:-1]:
                db.later(statement, {"name": "one", "total": 1})
            await db.together((statements[-1], {"name": "one", "total": 1}))

    with pytest.raises(ProgrammingError, match="nonsense"):
        await asking(ADD, "SELECT nonsense")
    with pytest.raises(IntegrityError):
        await asking(ADD, ADD, TOTALS)
    with pytest.raises(GuardFailed, match="there is no rule"):
        await asking(ADD, "SELECT guard(count(*) > 0, 'there is no rule') FROM rule", *200 * [TOTALS])
    with pytest.raises(DataError, match="division by zero"):
        await asking(ADD, "SELECT 1 / count(*) FROM rule", *200 * [TOTALS])
    assert await totals() == []
    assert caplog.messages == [], "what a fault keeps from being done is not a fault of its own"


async def test_a_connection_that_was_lost_is_not_used_again() -> None:
    async def losing() -> None:
        async with transaction() as db:
            await db.together((ADD, {"name": "one", "total": 1}))
            await db.together(("SELECT pg_terminate_backend(pg_backend_pid())", {}))

    with pytest.raises(OperationalError):
        await losing()
    assert await totals() == []


@pytest.mark.parametrize("opened", [transaction, reading])
async def test_who_is_stopped_while_they_wait_leaves_a_connection_that_serves_the_next(
    opened: Callable[[], AbstractAsyncContextManager[AsyncSession]],
) -> None:
    async def waiting() -> None:
        async with opened() as db:
            db.later("SELECT 1", {})
            await db.together(("SELECT pg_sleep(60)", {}), ("SELECT 2", {}))

    for _ in range(3):
        task = asyncio.create_task(waiting())
        await asleep()
        await stop(task)
        assert await totals() == []
        async with transaction() as db:
            assert await db.together(("SELECT 5", {})) == [[(5,)]]


@pytest.mark.parametrize("opened", [transaction, reading])
async def test_who_is_stopped_is_stopped_though_the_connection_was_closed_for_it(
    opened: Callable[[], AbstractAsyncContextManager[AsyncSession]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_way(*arguments: object, **options: object) -> None:
        raise OSError("the server hears of no end")

    async def asking() -> None:
        async with opened() as db:
            await db.together(("SELECT pg_sleep(60)", {}), ("SELECT 2", {}))

    monkeypatch.setattr(psycopg.AsyncConnection, "_try_cancel", no_way)
    task = asyncio.create_task(asking())
    await asleep()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with reading() as db:
        assert await db.together((f"SELECT pg_terminate_backend(pid) {SLEEPING}", {})) == [[(True,)]]


async def test_a_task_cancelled_at_any_step_leaves_a_connection_that_serves_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # psycopg then yields to other tasks after each command, as it does in a busy loop.
    monkeypatch.setattr(psycopg.waiting, "MAX_BUSY_TIME", -1.0)

    async def asking() -> None:
        async with transaction() as db:
            await db.together((TOTALS, {}), (TOTALS, {}))

    ended, steps = False, 0
    while not ended:  # the last one is cancelled when everything is done
        task = asyncio.create_task(asking())
        for _ in range(steps):
            await asyncio.sleep(0)
        ended = task.done()
        await stop(task)
        async with transaction() as db:
            assert (await db.execute(text("SELECT 5"))).all() == [(5,)], steps
        # The number of times depends on how long the server takes.
        steps += 1 + steps // 20


async def test_what_waits_at_the_end_is_committed_with_the_rest_or_nothing_is() -> None:
    async with transaction() as db:
        db.later(ADD, {"name": "one", "total": 1})
    async with transaction() as db:
        db.add(Counter(name="two", label="", outcome="", total=2))
        await db.execute(text("UPDATE counter SET total = 5"))
        db.later("UPDATE counter SET total = total + 1", {})
    assert await totals() == [("one", 6), ("two", 6)]

    async def failing() -> None:
        async with transaction() as db:
            await db.execute(text("DELETE FROM counter"))
            db.add(Counter(name="three", label="", outcome="", total=3))
            for _ in range(2):
                db.later(ADD, {"name": "four", "total": 4})

    with pytest.raises(IntegrityError):
        await failing()
    assert await totals() == [("one", 6), ("two", 6)]


async def test_what_was_added_by_its_class_is_there_for_the_next_question() -> None:
    async with transaction() as db:
        db.add(Counter(name="one", label="", outcome="", total=1))
        assert await db.together((TOTALS, {})) == [[("one", 1)]]
        db.add(Counter(name="two", label="", outcome="", total=2))
        db.later("UPDATE counter SET total = 0", {})
    assert await totals() == [("one", 0), ("two", 0)]


async def test_a_name_is_locked_in_its_space_until_the_transaction_ends() -> None:
    # The number of the lock stays the same between versions: an old one and a new one must exclude each other.
    free = "SELECT pg_try_advisory_xact_lock(hashtextextended(:name, :space))"
    tried = [("rule", 1), ("rule", 0), ("role", 1)]
    async with transaction() as db:
        await db.lock("rule", 1)
        async with transaction() as other:
            rows = await other.together(*((free, {"name": name, "space": space}) for name, space in tried))
    async with transaction() as later:
        ((after,),) = (await later.together((free, {"name": "rule", "space": 1})))[0]
    assert ([held for ((held,),) in rows], after) == ([False, True, True], True)
