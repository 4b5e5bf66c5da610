"""Which faults mean that the database is away, and how often the others are logged in full."""

import logging
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, select

import models
from models import Due, transaction
from models.db.database import engine
from services.runtime import database_faults, logs
from services.runtime.database_faults import first_line, is_absent, is_the_databases, log_fault
from services.runtime.logs import LOGGED_EVERY
from services.runtime.retries import database_errors_logged

pytestmark = pytest.mark.usefixtures("database")

NOWHERE = "postgresql+psycopg://holdfast@/holdfast?host=/nowhere&port=5432"
ABSENT, UNABLE, OURS = (True, True), (False, True), (False, False)
log = logging.getLogger(__name__)


async def fault_of(*statements: str) -> SQLAlchemyError:
    async def run() -> None:
        async with transaction() as db:
            for statement in statements:
                await db.execute(text(statement))

    with pytest.raises(SQLAlchemyError) as caught:
        await run()
    return caught.value


async def raised(state: str) -> SQLAlchemyError:
    """Return the error that PostgreSQL itself raises with this SQLSTATE."""
    return await fault_of(f"DO $$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{state}'; END $$")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("08006", ABSENT), ("08P01", ABSENT), ("57P01", ABSENT), ("57P02", ABSENT), ("57P03", ABSENT),
        ("57P05", ABSENT), ("53300", ABSENT), ("40P01", UNABLE), ("40001", UNABLE), ("57014", UNABLE),
        ("53100", UNABLE), ("55P03", UNABLE), ("58030", UNABLE), ("25006", UNABLE), ("53200", OURS), ("54001", OURS),
        ("23505", OURS), ("42P01", OURS), ("22012", OURS),
    ],
)  # fmt: skip
async def test_only_a_database_that_does_not_answer_is_absent(state: str, expected: tuple[bool, bool]) -> None:
    fault = await raised(state)
    assert (is_absent(fault), is_the_databases(fault)) == expected
    assert first_line(fault) == "as told"


async def test_a_connection_that_the_server_ends_is_absent() -> None:
    fault = await fault_of("SELECT pg_terminate_backend(pg_backend_pid())")
    assert (is_absent(fault), is_the_databases(fault)) == ABSENT


async def test_a_server_that_nobody_reaches_is_absent() -> None:
    await models.use(NOWHERE)
    fault = await fault_of("SELECT 1")
    assert (is_absent(fault), is_the_databases(fault)) == ABSENT


async def test_what_a_standby_and_a_statement_without_an_end_say_is_no_absence() -> None:
    standby = await fault_of("SET TRANSACTION READ ONLY", "CREATE TABLE notes ()")
    late = await fault_of("SET LOCAL statement_timeout = 20", "SELECT pg_sleep(60)")
    assert [(is_absent(one), is_the_databases(one)) for one in (standby, late)] == [UNABLE, UNABLE]


async def test_when_no_connection_is_free_waiting_helps_and_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool = engine().sync_engine.pool
    monkeypatch.setattr(pool, "_timeout", 0.01)
    monkeypatch.setattr(pool, "_max_overflow", 0)
    async with AsyncExitStack() as all_of_them:
        for _ in range(20):
            await all_of_them.enter_async_context(engine().connect())
        fault = await fault_of("SELECT 1")
    assert (is_absent(fault), is_the_databases(fault)) == UNABLE
    log_fault(log, fault, "it is tried again")
    assert [(one.levelname, one.exc_info) for one in caplog.records] == [("WARNING", None)]


async def test_a_statement_that_asks_too_much_at_once_is_a_fault_of_ours() -> None:
    with pytest.raises(SQLAlchemyError) as caught:
        async with transaction() as db:
            await db.execute(select(col(Due.key)).where(col(Due.key).in_([str(one) for one in range(70_000)])))
    assert (is_absent(caught.value), is_the_databases(caught.value)) == OURS


async def test_what_fails_among_statements_of_one_round_trip_says_the_same() -> None:
    with pytest.raises(SQLAlchemyError) as caught:
        async with transaction() as db:
            await db.together(("SELECT 1", {}), ("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", {}), ("SELECT 2", {}))
    assert (is_absent(caught.value), is_the_databases(caught.value)) == UNABLE


async def test_a_fault_is_told_in_full_once_and_an_absent_database_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        log_fault(log, await raised("53100"), "it is tried again")
        log_fault(log, await raised("57P01"), "it goes on later")
    log_fault(log, await raised("40P01"), "it is tried again")
    log_fault(log, await raised("53100"), "it goes on later")
    told = [(record.levelname, bool(record.exc_info), record.getMessage()) for record in caplog.records]
    assert told == [
        ("ERROR", True, "database error, it is tried again reason=as told"),
        ("WARNING", False, "database did not answer, it goes on later reason=as told times=1"),
        ("ERROR", True, "database error, it is tried again reason=as told"),
        ("WARNING", False, "same database error again, it goes on later reason=as told times=1"),
    ]


@pytest.mark.parametrize(
    ("state", "said"), [("53100", "same database error again"), ("57P01", "database did not answer")]
)
async def test_a_disk_that_is_full_all_hour_writes_few_lines(
    state: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each poll of each follower fails then, and so does what looks for work each second."""
    seconds, fault = 0.0, await raised(state)
    monkeypatch.setattr(logs, "monotonic", lambda: seconds)
    while seconds < 3 * LOGGED_EVERY:
        for _ in range(24):
            with database_errors_logged(log, "following will be retried"):
                raise fault
        seconds += 1.0
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert lines[1:] == [f"{said}, following will be retried reason=as told times={24 * int(LOGGED_EVERY)}"] * 2


async def test_each_absence_of_the_database_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    fault = await raised("57P01")
    for _ in range(2):
        for _ in range(3):
            with database_errors_logged(log, "following will be retried"):
                raise fault
        with database_errors_logged(log, "following will be retried"):
            pass  # it is there again
    assert len(caplog.records) == 2


async def test_a_database_that_only_reads_writes_no_line_for_each_poll_between_those_that_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault = await raised("53100")
    for _ in range(5):
        with database_errors_logged(log, "following will be retried"):
            raise fault
        with database_errors_logged(log, "following will be retried"):
            pass  # a poll without news, which only reads
    assert len(caplog.records) == 1


def test_a_fault_that_comes_again_after_an_hour_is_told_in_full_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fault in (ValueError("one"), ValueError("two"), KeyError("three")):
        log_fault(log, fault, "it is tried again")
    monkeypatch.setattr(database_faults, "TOLD_FOR_SECONDS", 0.0)
    log_fault(log, ValueError("four"), "it is tried again")
    assert [bool(record.exc_info) for record in caplog.records] == [True, True, True]
