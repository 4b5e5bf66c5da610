"""The role writer's lease: of all processes that could write roles, only its holder does; the others wait for it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg

from models import WatchedConnection, connect
from models.db.lost_connections import NOTICE_OUR_END
from models.db.session import Question, ask
from services.runtime.database_faults import first_line, is_absent
from setting_checks import libpq_url

Connect = Callable[..., Awaitable[psycopg.AsyncConnection[tuple[Any, ...]]]]
KEY = 4_815_162_342
"""The advisory lock of the present writer; it ends with its connection, however the process ends."""


class LeaseLost(Exception):
    """The connection that held the lease is gone: another process may be writing by now."""


class Lease:
    """A held lease; `since` is the database's time when it began."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[Any, ...]], since: datetime) -> None:
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] = connection
        self.since: datetime = since

    async def ask(self, question: Question) -> list[tuple[Any, ...]]:
        """Run a query on the connection of the lease; an answer proves that the lease was held.

        Raises LeaseLost, and psycopg.OperationalError if the query fails but the connection lives.
        """
        try:
            return await ask(self._connection, question)
        except psycopg.OperationalError as fault:
            if not is_absent(fault):
                raise
            raise LeaseLost(first_line(fault)) from fault


@asynccontextmanager
async def lease() -> AsyncGenerator[Lease | None]:
    """Yield the lease, or None while another process has it. Raises LeaseLost when the database does not answer."""
    try:
        connection = await connect()
    except psycopg.OperationalError as fault:
        raise LeaseLost(first_line(fault)) from fault
    try:
        yield await _taken(connection)
    finally:
        await connection.close()


async def _taken(connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> Lease | None:
    try:
        await connection.execute(NOTICE_OUR_END)
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s), clock_timestamp()", (KEY,))
        row = await cursor.fetchone()
    except psycopg.OperationalError as fault:
        raise LeaseLost(first_line(fault)) from fault
    return Lease(connection, row[1]) if row is not None and row[0] else None


async def keeps_sessions(url: str, connect: Connect = WatchedConnection.connect) -> bool:
    """Return whether a connection to this URL keeps one session of the server between statements.

    A pooler in transaction mode gives the session to other connections in between, and with it the lock and the LISTEN.
    Raises psycopg.OperationalError.
    """
    address, session = libpq_url(url), "SELECT pg_backend_pid()"
    async with await connect(address, autocommit=True) as mine:
        before = await (await mine.execute(session)).fetchone()
        async with AsyncExitStack() as others:
            # Each takes the most recently used free session, and keeps it. That session is ours if ours is free.
            for _ in range(3):
                other = await others.enter_async_context(await connect(address, autocommit=False))
                taken = await (await other.execute(session)).fetchone()
                if taken == before:
                    return False
            return await (await mine.execute(session)).fetchone() == before
