"""Access to the database: the connections that the pool gives out, and the cost of a statement."""

import asyncio
import gc

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

import models
from models import SpentTransaction, reading, transaction
from models.db import clock
from models.db import database as pool
from models.db.lost_connections import WatchedConnection
from services.runtime.task_cancellation import stop
from setting_checks import libpq_url


async def backend() -> int:
    """Return the id of the server process at the other end of a connection."""
    async with transaction() as db:
        return (await db.execute(text("SELECT pg_backend_pid()"))).scalar_one()


async def test_a_connection_that_the_server_has_ended_is_not_handed_out(database: str) -> None:
    first = await backend()
    assert await backend() == first, "the pool keeps it"
    with psycopg.connect(libpq_url(database), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    assert await backend() != first


async def test_an_error_does_not_quote_what_was_asked_for(database: str) -> None:
    with pytest.raises(DBAPIError) as raised:
        async with transaction() as db:
            await db.execute(text("SELECT 1 / (length(CAST(:query AS text)) - 5)"), {"query": "alice"})
    assert "division by zero" in str(raised.value)
    assert "alice" not in str(raised.value)


async def test_a_question_opens_no_transaction_and_sees_what_is_committed_meanwhile(database: str) -> None:
    async with reading() as db:
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 0
        with psycopg.connect(libpq_url(database), autocommit=True) as other:
            idle = other.execute("SELECT state FROM pg_stat_activity WHERE query LIKE 'SELECT count%spent%'").fetchall()
            other.execute("INSERT INTO spent_transaction (hash, chain, spent_at) VALUES ('a', 'base', now())")
        assert idle == [("idle",)]
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 1
    async with transaction() as db:  # the same connection: its writes are rolled back when it fails
        db.add(SpentTransaction(hash="b", chain="base"))
        await db.flush()
        await db.rollback()
    async with reading() as db:
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 1


async def test_taking_a_connection_out_of_the_pool_has_no_pause_in_which_to_be_cancelled(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the event loop had been busy for so long that psycopg yields at every step.
    monkeypatch.setattr("psycopg.waiting.MAX_BUSY_TIME", -1.0)
    async with await WatchedConnection.connect(libpq_url(database)) as connection:
        for setting in (
            connection.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE), connection.set_autocommit(True)
        ):  # fmt: skip
            with pytest.raises(StopIteration):
                setting.send(None)
        assert connection.autocommit
        assert connection.isolation_level is psycopg.IsolationLevel.SERIALIZABLE


async def test_a_task_that_is_cancelled_twice_leaves_no_connection_behind(database: str) -> None:
    open_at_the_end: list[bool] = []

    async def working(connections: list[WatchedConnection]) -> None:
        async with transaction() as db:
            raw = await (await db.connection()).get_raw_connection()
            assert isinstance(raw.driver_connection, WatchedConnection)
            connections.append(raw.driver_connection)
            await asyncio.Event().wait()

    for steps in range(12):
        connections: list[WatchedConnection] = []
        task = asyncio.create_task(working(connections))
        while not connections:
            await asyncio.sleep(0.001)
        task.cancel()
        for _ in range(steps):
            await asyncio.sleep(0)
        await stop(task)
        await models.use(database)
        open_at_the_end += [not one.closed for one in connections]
    assert not any(open_at_the_end)


async def test_a_connection_that_is_cancelled_before_the_pool_has_it_is_closed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[WatchedConnection] = []

    async def cancelled(connection: WatchedConnection) -> None:
        made.append(connection)
        raise asyncio.CancelledError

    monkeypatch.setattr(pool, "_ask_for_the_time", cancelled)
    monkeypatch.setattr(clock, "is_due", lambda: True)
    with pytest.raises(asyncio.CancelledError):
        await pool._connect(libpq_url(database))  # pyright: ignore[reportPrivateUsage]
    assert [one.closed for one in made] == [True]


@pytest.mark.parametrize("how", ["ended", "cancelled"])
async def test_a_connection_that_is_lost_while_the_clock_is_measured_is_no_error_of_the_pool(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    first, due = await backend(), [True]
    monkeypatch.setattr(clock, "is_due", lambda: bool(due) and due.pop())
    monkeypatch.setattr(clock, "QUESTION", "SELECT clock_timestamp() FROM pg_sleep(60)")
    with psycopg.connect(libpq_url(database), autocommit=True) as admin:
        task = asyncio.create_task(backend())
        sleeps = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        while not admin.execute(sleeps, [first]).fetchall():
            await asyncio.sleep(0.01)
        if how == "ended":
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
            assert await task != first
        else:
            # The second one reaches psycopg while it cancels the statement, and closes the connection.
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
    await models.use(None)
    gc.collect()
    assert [one.message for one in caplog.records if one.name.startswith("sqlalchemy")] == []
