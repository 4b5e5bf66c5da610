"""The engine of this process and the transaction, the one way to the database."""

import asyncio
import select as waiting
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Result, event, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSessionTransaction, create_async_engine
from sqlalchemy.ext.asyncio import AsyncSession as PlainAsyncSession
from sqlalchemy.orm import Session as PlainSession
from sqlalchemy.sql import Executable
from sqlmodel import Session
from sqlmodel.ext.asyncio.session import AsyncSession as TypedAsyncSession

from settings import settings

Driver = psycopg.AsyncConnection[tuple[Any, ...]]
_engine: AsyncEngine | None = None
_alone: AsyncEngine | None = None
"""The same engine and pool, with each statement committed by itself."""


class DatabaseUrlMissing(Exception):
    """Nobody said where the database is: start with `python -m app`, or set DATABASE_URL."""


class _Session(Session):
    """SQLModel's session, whose plain `execute` is welcome here: the work in sets is written as SQL."""

    def execute(self, *arguments: Any, **options: Any) -> Result[*tuple[Any, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return PlainSession.execute(self, *arguments, **options)


class AsyncSession(TypedAsyncSession):
    """The session of a transaction: `exec` for rows of a table, `execute` for statements over sets.

    On the way from a transfer to its role each round trip to the database counts, so several statements can make one:
    `together` asks several questions at once, and what is handed to `later` goes along with whatever comes next.
    """

    sync_session_class: type[Session] = _Session

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: list[Question] = []
        self._driver: Driver | None = None
        """The driver's connection while the session has one: to ask for it each time costs as much as a question."""

    async def execute(self, statement: Executable, params: Any = None) -> Result[*tuple[Any, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run a statement; `params` is one mapping, or a list of them to run it for each."""
        await self._send_waiting()
        return await PlainAsyncSession.execute(self, statement, params)

    if not TYPE_CHECKING:  # who checks types is to see what SQLModel and SQLAlchemy say of these two

        async def exec(self, *arguments: Any, **options: Any) -> Any:
            """Run a statement about the rows of a table."""
            await self._send_waiting()
            return await super().exec(*arguments, **options)

        async def connection(self, *arguments: Any, **options: Any) -> AsyncConnection:
            """The connection of the transaction."""
            await self._send_waiting()
            return await super().connection(*arguments, **options)

    async def commit(self) -> None:
        """Write down for good what was done, what waits included; that goes in one round trip with the commit."""
        if self._waiting:
            await self._together([], commit=True)
        self._driver = None
        await super().commit()

    def later(self, statement: str, values: Mapping[str, object]) -> None:
        """Run a statement, `:name` for its values, together with what comes next; nobody waits for what it tells."""
        self._waiting.append((statement, values))

    async def together(self, *questions: "Question") -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, `:name` for their values, for the price of one round trip.

        What waits is run before them. Raises what the first that fails would raise by itself.
        """
        return await self._together(questions)

    async def _together(self, questions: Sequence["Question"], *, commit: bool = False) -> list[list[tuple[Any, ...]]]:
        asked, self._waiting = [*self._waiting, *questions], []
        if not asked:
            return []
        # As before any other statement: what was added by its class is there for it to see.
        if self.new or self.dirty or self.deleted:
            await self.flush()
        raw = await self._raw()
        try:
            begun = raw.info.transaction_status is TransactionStatus.INTRANS
            if len(asked) == 1 and not commit and (begun or raw.autocommit):
                # There is nothing that it could go together with.
                return [await ask(raw, asked[0])][len(asked) - len(questions) :]
            async with raw.pipeline():
                cursors = [await raw.execute(_percents(statement), values) for statement, values in asked]
                if commit and not raw.autocommit:
                    # As a statement: of a transaction that begins in here psycopg does not know yet.
                    await raw.execute(b"COMMIT", prepare=False)
            told = cursors[len(asked) - len(questions) :]
            return [await _rows(cursor) for cursor in told]
        except BaseException as fault:
            self._driver = None
            if raw.closed:
                # Also when somebody is stopped: the driver closes what it cannot bring to rest.
                await (await super().connection()).invalidate(fault)
            if isinstance(fault, psycopg.Error):
                raise DBAPIError.instance(None, None, fault, psycopg.Error) from fault
            raise

    async def _raw(self) -> Driver:
        if self._driver is None:
            connection = await super().connection()
            adapted = await connection.get_raw_connection()
            self._driver = cast(Driver, adapted.driver_connection)
        return self._driver

    async def rollback(self) -> None:
        """Undo what was done, and do not begin what waits."""
        self._waiting.clear()
        self._driver = None
        await super().rollback()

    async def close(self) -> None:
        """Give the connection back."""
        self._driver = None
        await super().close()

    def begin_nested(self) -> AsyncSessionTransaction:
        """A savepoint; nothing may wait then, for it would be undone with what comes after."""
        assert not self._waiting
        return super().begin_nested()

    async def _send_waiting(self) -> None:
        if self._waiting:
            await self.together()


Question = tuple[str, Mapping[str, object]]
"""A statement, and its values by name."""
Rows = Sequence[tuple[Any, ...]]
"""What a question is answered with."""


async def ask(driver: Driver, question: Question) -> list[tuple[Any, ...]]:
    """The rows of a statement, `:name` for its values, by a connection of the driver's. Raises psycopg.Error."""
    statement, values = question
    return await _rows(await driver.execute(_percents(statement), values))


async def _rows(cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return await cursor.fetchall() if cursor.description else []


@lru_cache(maxsize=200)
def _percents(statement: str) -> bytes:
    """The statement as psycopg reads it, with `%(name)s` for its values."""
    return str(text(statement).compile(dialect=PGDialectAsync_psycopg())).encode()


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
    _engine = create_async_engine(psycopg_url(url), pool_size=20, max_overflow=max_overflow, pool_use_lifo=True)
    event.listen(_engine.sync_engine, "checkout", _refuse_a_dead_one)
    _alone = _engine.execution_options(isolation_level="AUTOCOMMIT")
    return _engine


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
    if url is not None:
        _set(url)


def joined(values: Iterable[object]) -> str:
    """Many ids, addresses or numbers as one parameter, for `string_to_array(:name, ',')`.

    The driver looks at each element of a list to quote it, which would cost a round more than all its decisions.
    """
    return ",".join(map(str, values))


@asynccontextmanager
async def transaction() -> AsyncGenerator[AsyncSession]:
    """One use case: committed when the block ends, undone when it raises."""
    async with _closing(AsyncSession(engine(), expire_on_commit=False)) as db:
        yield db
        await db.commit()


@asynccontextmanager
async def reading() -> AsyncGenerator[AsyncSession]:
    """Questions that change nothing, or one statement that stands alone: each is sent without BEGIN and COMMIT.

    Like those of a transaction, each statement sees what was committed when it began.
    """
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
