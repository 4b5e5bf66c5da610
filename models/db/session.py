"""A database session that can send several statements in one round trip."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy import ARRAY, ColumnElement, Result, any_, literal, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSessionTransaction
from sqlalchemy.ext.asyncio import AsyncSession as PlainAsyncSession
from sqlalchemy.orm import Session as PlainSession
from sqlalchemy.sql import Executable
from sqlmodel import Session, col
from sqlmodel.ext.asyncio.session import AsyncSession as TypedAsyncSession

Driver = psycopg.AsyncConnection[tuple[Any, ...]]
Question = tuple[str, Mapping[str, object]]
"""A statement, and its values by name."""
Rows = Sequence[tuple[Any, ...]]
"""The rows of a statement's result."""

ROWS_A_STEP = 1_000
"""Rows converted in one step of the event loop."""


GUARD_FAILED = "HF001"
"""The SQLSTATE with which the database function `guard(holds, what)` ends a transaction."""


class GuardFailed(Exception):
    """A guard statement failed, because its condition is no longer true. The text says which condition."""


class _Session(Session):
    """SQLModel's session with plain `execute` allowed: bulk work is written as SQL."""

    def execute(self, *arguments: Any, **options: Any) -> Result[*tuple[Any, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return PlainSession.execute(self, *arguments, **options)


class AsyncSession(TypedAsyncSession):
    """The session of a transaction: `exec` for rows of a table, `execute` for statements over sets.

    Each round trip to the database adds to the delay between a transfer and its role, so several statements can share
    one: `together` sends several at once, and `later` sends a statement along with the next one.
    """

    sync_session_class: type[Session] = _Session

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: list[Question] = []
        self._driver: Driver | None = None
        """The driver's connection while the session has one, because getting it costs as much as a statement."""

    async def execute(self, statement: Executable | str, params: Any = None) -> Result[*tuple[Any, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run a statement; a text has `:name` for its values.

        `params` is one mapping, or a list of mappings to run it once for each.
        """
        await self._send_waiting()
        asked = text(statement) if isinstance(statement, str) else statement
        return await PlainAsyncSession.execute(self, asked, params)

    if not TYPE_CHECKING:  # type checkers use SQLModel's and SQLAlchemy's own signatures

        async def exec(self, *arguments: Any, **options: Any) -> Any:
            """Run a statement about the rows of a table."""
            await self._send_waiting()
            return await super().exec(*arguments, **options)

        async def connection(self, *arguments: Any, **options: Any) -> AsyncConnection:
            """Return the connection of the transaction."""
            await self._send_waiting()
            return await super().connection(*arguments, **options)

    async def commit(self) -> None:
        """Commit, with deferred statements in the same round trip."""
        if self._waiting:
            await self._together([], commit=True)
        self._driver = None
        await super().commit()

    def later(self, statement: str, values: Mapping[str, object]) -> None:
        """Defer a statement, with `:name` for its values, to the next round trip; its result is dropped."""
        self._waiting.append((statement, values))

    async def together(self, *questions: Question) -> list[list[tuple[Any, ...]]]:
        """Run several statements, with `:name` for their values, in one round trip, and return their rows.

        Deferred statements run first. Raises the error of the first statement that fails. Raises GuardFailed if the
        condition of a `guard(holds, what)` is false, which aborts everything sent with it.
        """
        return await self._together(questions)

    async def now(self) -> datetime:
        """Return the database's time: the beginning of the transaction, or outside of a transaction the present."""
        ((at,),) = (await self.together(("SELECT now()", {})))[0]
        return at

    async def lock(self, name: object, space: int = 0) -> None:
        """Wait until no other transaction holds this name in this space, and hold it until the transaction ends.

        Sort several names of one space before you lock them, or two transactions may deadlock.
        """
        # An advisory lock needs no row, so a row that does not exist yet can be locked.
        await self.together(
            ("SELECT pg_advisory_xact_lock(hashtextextended(:name, :space))", {"name": str(name), "space": space})
        )

    async def try_lock(self, name: object, space: int = 0) -> bool:
        """Hold this name until the transaction ends; return False at once if another transaction holds it."""
        values = {"name": str(name), "space": space}
        asked = "SELECT pg_try_advisory_xact_lock(hashtextextended(:name, :space))", values
        ((is_ours,),) = (await self.together(asked))[0]
        return bool(is_ours)

    async def _together(self, questions: Sequence[Question], *, commit: bool = False) -> list[list[tuple[Any, ...]]]:
        asked, self._waiting = [*self._waiting, *questions], []
        if not asked:
            return []
        # As before any other statement: the statements must see objects that were added to the session.
        if self.new or self.dirty or self.deleted:
            await self.flush()
        raw = await self._raw()
        try:
            begun = raw.info.transaction_status is TransactionStatus.INTRANS
            if len(asked) == 1 and not commit and (begun or raw.autocommit):
                # There is no other statement to combine it with.
                return [await ask(raw, asked[0])][len(asked) - len(questions) :]
            cursors = await _in_one(raw, asked, commit=commit and not raw.autocommit)
            told = cursors[len(asked) - len(questions) :]
            return [await _rows(cursor) for cursor in told]
        except BaseException as fault:
            self._driver = None
            if raw.closed or raw.pgconn.pipeline_status != PipelineStatus.OFF or not isinstance(fault, Exception):
                # If a task is cancelled while psycopg enters or leaves a pipeline, the connection stays in the
                # pipeline. The pool would give it to other callers, who would all read no rows.
                await (await super().connection()).invalidate(fault)
            if isinstance(fault, psycopg.Error):
                if fault.diag.sqlstate == GUARD_FAILED:
                    raise GuardFailed(fault.diag.message_primary) from fault
                raise DBAPIError.instance(None, None, fault, psycopg.Error) from fault
            raise

    async def _raw(self) -> Driver:
        if self._driver is None:
            connection = await super().connection()
            adapted = await connection.get_raw_connection()
            self._driver = cast(Driver, adapted.driver_connection)
        return self._driver

    async def rollback(self) -> None:
        """Roll back, and drop deferred statements."""
        self._waiting.clear()
        self._driver = None
        await super().rollback()

    async def close(self) -> None:
        """Return the connection to the pool."""
        self._driver = None
        await super().close()

    def begin_nested(self) -> AsyncSessionTransaction:
        """Return a savepoint. No statement may be deferred, or a rollback to the savepoint would undo it."""
        assert not self._waiting
        return super().begin_nested()

    async def _send_waiting(self) -> None:
        if self._waiting:
            await self.together()


def any_of(column: int | str | None, values: Iterable[int | str]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values, as one parameter: a statement takes 65,535."""
    of_the_column = cast(Any, column).type
    return col(column) == any_(literal(list(values), ARRAY(of_the_column)))


def joined(values: Iterable[object]) -> str:
    """Join many ids, addresses or numbers into one parameter, for `string_to_array(:name, ',')`.

    The driver quotes each element of a list, which for a large batch would cost more than all its decisions.
    """
    return ",".join(map(str, values))


async def ask(driver: Driver, question: Question) -> list[tuple[Any, ...]]:
    """Run a statement, with `:name` for its values, on the driver's connection. Raises psycopg.Error."""
    statement, values = question
    return await _rows(await driver.execute(_percents(statement), values))


async def _in_one(
    driver: Driver, asked: Sequence[Question], *, commit: bool
) -> list[psycopg.AsyncCursor[tuple[Any, ...]]]:
    """Run several statements in one round trip. Raises the first error."""
    fault: psycopg.Error | None = None
    cursors: list[psycopg.AsyncCursor[tuple[Any, ...]]] = []
    try:
        async with driver.pipeline():
            try:
                cursors += [await driver.execute(_percents(statement), values) for statement, values in asked]
                if commit:
                    # As a statement, because psycopg does not know about a transaction that begins in the pipeline.
                    await driver.execute(b"COMMIT", prepare=False)
            except psycopg.Error as first:
                # Raised after the pipeline, which would report skipped statements as another error.
                fault = first
    except psycopg.Error as last:
        raise fault or last from None
    if fault is not None:
        raise fault
    return cursors


async def _rows(cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    if not cursor.description:
        return []
    rows = await cursor.fetchmany(ROWS_A_STEP)
    while len(rows) < cursor.rowcount:
        # Building Python objects for many rows takes long and would block the event loop.
        await asyncio.sleep(0)
        rows += await cursor.fetchmany(ROWS_A_STEP)
    return rows


@lru_cache(maxsize=200)
def _percents(statement: str) -> bytes:
    """Return the statement in psycopg's form, with `%(name)s` for its values."""
    return str(text(statement).compile(dialect=PGDialectAsync_psycopg())).encode()
