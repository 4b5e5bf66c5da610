"""This process's database engine and its transactions, through which all code uses the database."""

import asyncio
import select as waiting
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from models.db import clock
from models.db.lost_connections import WatchedConnection
from models.db.session import AsyncSession
from setting_checks import libpq_url, psycopg_url
from settings import settings

_engine: AsyncEngine | None = None
_alone: AsyncEngine | None = None
"""The same engine and pool, but each statement is committed separately."""
_returning: set[asyncio.Task[None]] = set()
"""Tasks that return sessions' connections; they continue when the waiting task is cancelled once more."""
_statement_seconds: float | None = None


class DatabaseUrlMissing(Exception):
    """No database URL: start with `python -m app`, or set DATABASE_URL."""


def engine() -> AsyncEngine:
    """Return the process's engine, made at first use: granian forks, and an earlier engine would be shared."""
    if _engine is None:
        url = settings().database_url
        if not url:
            raise DatabaseUrlMissing("DATABASE_URL is not set; `python -m app` sets it for its processes.")
        return _set(url, max_overflow=20)
    return _engine


def _set(url: str, max_overflow: int = 10) -> AsyncEngine:
    global _engine, _alone
    _engine = create_async_engine(
        psycopg_url(url), pool_size=20, max_overflow=max_overflow, pool_use_lifo=True,
        connect_args={"async_creator_fn": _connect},
        hide_parameters=True,  # an error would quote them, and the log must not have what they contain
    )  # fmt: skip
    event.listen(_engine.sync_engine, "checkout", _check_connection)
    _alone = _engine.execution_options(isolation_level="AUTOCOMMIT")
    return _engine


def limit_statements(seconds: float | None) -> None:
    """Limit each statement of this process to `seconds`; call it before the first use of the engine."""
    global _statement_seconds
    _statement_seconds = seconds


async def _connect(*arguments: Any, **options: Any) -> WatchedConnection:
    """Open a connection for the pool. A statement sets the time limit, because poolers refuse it as a parameter."""
    made = await WatchedConnection.connect(*arguments, **options)
    try:
        if _statement_seconds is not None:
            milliseconds = str(round(1000 * _statement_seconds))
            await made.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
            await made.commit()
        if clock.is_due():
            await _ask_for_the_time(made)
            await made.commit()
    except BaseException:
        # The pool does not know this connection yet.
        await made.close()
        raise
    return made


async def _ask_for_the_time(connection: WatchedConnection) -> None:
    began = time.monotonic()
    row = await (await connection.execute(clock.QUESTION)).fetchone()
    if row is not None:
        clock.measured(row[0], time.monotonic() - began)


async def _measure_clock() -> None:
    """Measure the database's clock once a minute. Errors are ignored, because the caller meets them too."""
    if clock.is_due():
        made = engine()
        with suppress(SQLAlchemyError, psycopg.Error):
            # The session notices a connection that is lost meanwhile. The pool would report it with a traceback.
            async with _closing(AsyncSession(_alone or made)) as db:
                await db.connection()
                began = time.monotonic()
                ((said,),) = (await db.together((clock.QUESTION, {})))[0]
                clock.measured(said, time.monotonic() - began)


def _check_connection(connection: Any, record: object, proxy: object) -> None:
    """Raise DisconnectionError for a dead connection, so that the pool opens another.

    A server that stops sends a message or closes the connection; both make the socket readable, and an idle server
    sends nothing. The pool's own `pool_pre_ping` would cost a sixth of the time of a signed-in call.
    """
    raw = connection.driver_connection
    if raw.closed:
        raise DisconnectionError("it is closed")
    quiet = waiting.poll()
    quiet.register(raw.fileno(), waiting.POLLIN)
    if quiet.poll(0):
        raise DisconnectionError("the server has left, or said something that nobody asked for")


async def use(url: str | None) -> None:
    """Use another database in this process (tests), or drop the engine if `url` is None."""
    global _engine, _alone
    if _engine is not None:
        # A disposed pool no longer closes connections that are returned to it.
        await asyncio.gather(*_returning, return_exceptions=True)
        await _engine.dispose()
    _engine = _alone = None
    clock.forget()
    if url is not None:
        _set(url)


async def connect() -> WatchedConnection:
    """Open a plain autocommit connection to this process's database, for uses without a pool: LISTEN, locks.

    Raises psycopg.OperationalError.
    """
    return await WatchedConnection.connect(libpq_url(settings().database_url or ""), autocommit=True)


@asynccontextmanager
async def transaction() -> AsyncGenerator[AsyncSession]:
    """Open a session for one use case, which is committed when the block ends and rolled back when it raises."""
    await _measure_clock()
    async with _closing(AsyncSession(engine(), expire_on_commit=False)) as db:
        yield db
        await db.commit()


@asynccontextmanager
async def reading() -> AsyncGenerator[AsyncSession]:
    """Open a session for reads, or for separate statements, which are sent without BEGIN and COMMIT.

    As in a transaction, each statement sees the data that was committed when it began.
    """
    await _measure_clock()
    made = engine()
    async with _closing(AsyncSession(_alone or made, expire_on_commit=False)) as db:
        yield db


@asynccontextmanager
async def _closing(db: AsyncSession) -> AsyncGenerator[AsyncSession]:
    """Return the connection to the pool when the block ends.

    The session's own context manager always creates a task for that, in case of a cancellation. After success nothing
    is left to send, so no cancellation can interrupt the return, and no task is needed.
    """
    try:
        yield db
    except BaseException:
        # On a lost connection nothing is left to roll back, and the original error must be raised, above all a
        # cancellation: a caller that retries after database errors would otherwise start over instead of ending.
        with suppress(DBAPIError):
            returning = asyncio.create_task(db.close())
            _returning.add(returning)
            returning.add_done_callback(_returning.discard)
            await asyncio.shield(returning)
        raise
    await db.close()


async def release(db: AsyncSession) -> None:
    """Return the connection to the pool before waiting for a provider; the next statement takes a new one.

    This commits and releases locks, so call it before writes that must be rolled back together with later ones. It does
    nothing within a savepoint.
    """
    if not db.in_nested_transaction():
        await db.commit()
