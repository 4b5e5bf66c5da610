"""The engine of this process and the transaction, the one way to the database."""

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
"""The same engine and pool, with each statement committed by itself."""


_statement_seconds: float | None = None


class DatabaseUrlMissing(Exception):
    """Nobody said where the database is: start with `python -m app`, or set DATABASE_URL."""


def engine() -> AsyncEngine:
    """The process's engine, made at first use (granian forks: an engine made at import would be shared)."""
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
    event.listen(_engine.sync_engine, "checkout", _refuse_a_dead_one)
    _alone = _engine.execution_options(isolation_level="AUTOCOMMIT")
    return _engine


def limit_statements(seconds: float | None) -> None:
    """Have the server end each statement of this process after so many seconds; before the engine is first used."""
    global _statement_seconds
    _statement_seconds = seconds


async def _connect(*arguments: Any, **options: Any) -> WatchedConnection:
    """Open a connection of the pool. The limit is set by a statement, because poolers refuse it as a parameter."""
    made = await WatchedConnection.connect(*arguments, **options)
    if _statement_seconds is not None:
        milliseconds = str(round(1000 * _statement_seconds))
        await made.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
        await made.commit()
    if clock.is_due():
        await _ask_for_the_time(made)
        await made.commit()
    return made


async def _ask_for_the_time(connection: WatchedConnection) -> None:
    began = time.monotonic()
    row = await (await connection.execute(clock.QUESTION)).fetchone()
    if row is not None:
        clock.measured(row[0], time.monotonic() - began)


async def _mind_the_clock() -> None:
    """Measure how far the database's clock is from ours, once a minute; a missing database is left to the caller."""
    if clock.is_due():
        made = engine()
        with suppress(SQLAlchemyError, psycopg.Error):
            async with (_alone or made).connect() as connection:
                raw = (await connection.get_raw_connection()).driver_connection
                if isinstance(raw, WatchedConnection):
                    await _ask_for_the_time(raw)


def _refuse_a_dead_one(connection: Any, record: object, proxy: object) -> None:
    """Let no connection out of the pool that the server has left: DisconnectionError makes the pool open another.

    A server that goes says so or hangs up, and either can be read; one at rest says nothing. The pool's own
    `pool_pre_ping` asks the server instead, which costs a signed-in call a sixth of its time.
    """
    raw = connection.driver_connection
    if raw.closed:
        raise DisconnectionError("it is closed")
    quiet = waiting.poll()
    quiet.register(raw.fileno(), waiting.POLLIN)
    if quiet.poll(0):
        raise DisconnectionError("the server has left, or said something that nobody asked for")


def psycopg_url(url: str) -> str:
    """The same address with psycopg 3 as its driver, whichever way the operator wrote it."""
    for prefix in ("postgres://", "postgresql://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def libpq_url(url: str) -> str:
    """The same address as libpq reads it, for plain psycopg connections (LISTEN, advisory locks)."""
    return psycopg_url(url).replace("postgresql+psycopg://", "postgresql://", 1)


async def use(url: str | None) -> None:
    """Point this process at another database (tests), or with None drop the engine."""
    global _engine, _alone
    if _engine is not None:
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
    """One use case: committed when the block ends, undone when it raises."""
    await _mind_the_clock()
    async with _closing(AsyncSession(engine(), expire_on_commit=False)) as db:
        yield db
        await db.commit()


@asynccontextmanager
async def reading() -> AsyncGenerator[AsyncSession]:
    """Questions that change nothing, or one statement that stands alone: each is sent without BEGIN and COMMIT.

    Like those of a transaction, each statement sees what was committed when it began.
    """
    await _mind_the_clock()
    made = engine()
    async with _closing(AsyncSession(_alone or made, expire_on_commit=False)) as db:
        yield db


@asynccontextmanager
async def _closing(db: AsyncSession) -> AsyncGenerator[AsyncSession]:
    """Gives the connection back when the block ends.

    The session's own way to do so takes a task, in case that somebody is stopped meanwhile. When all went well there
    is nothing left to be sent, and so no moment in which to be stopped.
    """
    try:
        yield db
    except BaseException:
        # Where the connection is lost there is nothing to be undone, and what ended the block counts, above all a
        # cancellation: who goes on after faults of the database would otherwise begin anew instead of ending.
        with suppress(DBAPIError):
            await asyncio.shield(asyncio.create_task(db.close()))
        raise
    await db.close()


async def release(db: AsyncSession) -> None:
    """Give the connection back before somebody outside is waited for; the next statement takes one again.

    What was written so far is committed, and locks end: so before anything is written that must be undone if the rest
    fails. Within a savepoint nothing happens.
    """
    if not db.in_nested_transaction():
        await db.commit()
