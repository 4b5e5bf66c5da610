"""This process's engine, and the transaction, the only way to the database."""

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
from models.db.session import AsyncSession
from models.db.watched import WatchedConnection
from settings import settings

_engine: AsyncEngine | None = None
_alone: AsyncEngine | None = None
"""The same engine and pool, with each statement committed on its own."""
_returning: set[asyncio.Task[None]] = set()
"""Sessions that return their connections, also after the task that waits for it is cancelled once more."""
_statement_seconds: float | None = None


class DatabaseUrlMissing(Exception):
    """No database URL: start with `python -m app`, or set DATABASE_URL."""


def engine() -> AsyncEngine:
    """Return the process's engine, made at first use (granian forks, and an earlier engine would be shared)."""
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
    )  # fmt: skip
    event.listen(_engine.sync_engine, "checkout", _check_connection)
    _alone = _engine.execution_options(isolation_level="AUTOCOMMIT")
    return _engine


def limit_statements(seconds: float | None) -> None:
    """Limit each statement of this process to so many seconds; call it before the first use of the engine."""
    global _statement_seconds
    _statement_seconds = seconds


async def _connect(*arguments: Any, **options: Any) -> WatchedConnection:
    """Open a connection of the pool. A statement sets the limit, because poolers refuse it as a parameter."""
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
        # The pool does not know of it yet.
        await made.close()
        raise
    return made


async def _ask_for_the_time(connection: WatchedConnection) -> None:
    began = time.monotonic()
    row = await (await connection.execute(clock.QUESTION)).fetchone()
    if row is not None:
        clock.measured(row[0], time.monotonic() - began)


async def _measure_clock() -> None:
    """Measure the database's clock once a minute; an absent database is left to the caller."""
    if clock.is_due():
        made = engine()
        with suppress(SQLAlchemyError, psycopg.Error):
            async with (_alone or made).connect() as connection:
                raw = (await connection.get_raw_connection()).driver_connection
                if isinstance(raw, WatchedConnection):
                    await _ask_for_the_time(raw)


def _check_connection(connection: Any, record: object, proxy: object) -> None:
    """Keep the pool from handing out a dead connection: DisconnectionError makes it open another.

    A server that stops sends a message or closes the connection, and both can be read; an idle one sends nothing. The
    pool's own `pool_pre_ping` would cost a signed-in call a sixth of its time.
    """
    raw = connection.driver_connection
    if raw.closed:
        raise DisconnectionError("it is closed")
    quiet = waiting.poll()
    quiet.register(raw.fileno(), waiting.POLLIN)
    if quiet.poll(0):
        raise DisconnectionError("the server has left, or said something that nobody asked for")


def psycopg_url(url: str) -> str:
    """Return the URL with psycopg 3 as its driver, in whichever form the operator wrote it."""
    for prefix in ("postgres://", "postgresql://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def is_unreadable(fault: psycopg.Error) -> bool:
    """Return whether the client could not read the address of a database.

    Never show the text of such an error: it has the whole address, with the password.
    """
    return isinstance(fault, psycopg.ProgrammingError) and fault.sqlstate is None


def libpq_url(url: str) -> str:
    """Return the URL for libpq, for plain psycopg connections (LISTEN, advisory locks)."""
    return psycopg_url(url).replace("postgresql+psycopg://", "postgresql://", 1)


async def use(url: str | None) -> None:
    """Point this process at another database (tests), or with None drop the engine."""
    global _engine, _alone
    if _engine is not None:
        # A pool that is disposed of no longer closes what comes back to it.
        await asyncio.gather(*_returning, return_exceptions=True)
        await _engine.dispose()
    _engine = _alone = None
    clock.forget()
    if url is not None:
        _set(url)


async def connect() -> WatchedConnection:
    """Open a plain connection to this process's database, in autocommit, for what a pool cannot do: LISTEN, locks.

    Raises psycopg.OperationalError.
    """
    return await WatchedConnection.connect(libpq_url(settings().database_url or ""), autocommit=True)


@asynccontextmanager
async def transaction() -> AsyncGenerator[AsyncSession]:
    """One use case: committed when the block ends, rolled back when it raises."""
    await _measure_clock()
    async with _closing(AsyncSession(engine(), expire_on_commit=False)) as db:
        yield db
        await db.commit()


@asynccontextmanager
async def reading() -> AsyncGenerator[AsyncSession]:
    """A session for reads, or for one separate statement: each is sent without BEGIN and COMMIT.

    As in a transaction, each statement sees what was committed when it began.
    """
    await _measure_clock()
    made = engine()
    async with _closing(AsyncSession(_alone or made, expire_on_commit=False)) as db:
        yield db


@asynccontextmanager
async def _closing(db: AsyncSession) -> AsyncGenerator[AsyncSession]:
    """Return the connection to the pool when the block ends.

    The session's own way takes a task, in case of a cancellation. After success nothing is left to send, so there is no
    moment in which to be cancelled.
    """
    try:
        yield db
    except BaseException:
        # On a lost connection nothing is left to undo, and the original error must win, above all a cancellation: a
        # caller that retries after database errors would otherwise start over instead of ending.
        with suppress(DBAPIError):
            returning = asyncio.create_task(db.close())
            _returning.add(returning)
            returning.add_done_callback(_returning.discard)
            await asyncio.shield(returning)
        raise
    await db.close()


async def release(db: AsyncSession) -> None:
    """Return the connection to the pool before waiting for a provider; the next statement takes a new one.

    This commits and ends locks, so call it before writes that must roll back with what follows. Does nothing within a
    savepoint.
    """
    if not db.in_nested_transaction():
        await db.commit()
