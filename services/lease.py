"""The writer's lease: of all processes that could write roles, one does, and the others wait for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg

from models import libpq_url
from models.session import Question, ask
from settings import settings

KEY = 4_815_162_342
"""The advisory lock that only the present writer holds; it ends with its connection, however the process ends."""


class LeaseLost(Exception):
    """The connection that held the lease is gone: another process may be writing by now."""


class Lease:
    """The lease while it is held; `since` is the database's time of its beginning."""

    def __init__(self, connection: psycopg.AsyncConnection[tuple[Any, ...]], since: datetime) -> None:
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] = connection
        self.since: datetime = since

    async def ask(self, question: Question) -> list[tuple[Any, ...]]:
        """What the database tells; an answer says that the lease stood when it was asked. Raises LeaseLost."""
        try:
            return await ask(self._connection, question)
        except psycopg.OperationalError as fault:
            raise LeaseLost(str(fault).splitlines()[0]) from fault


@asynccontextmanager
async def lease() -> AsyncGenerator[Lease | None]:
    """The lease, or None while another process has it. Raises LeaseLost when the database does not answer."""
    url = libpq_url(settings().database_url or "")
    try:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    except psycopg.OperationalError as fault:
        raise LeaseLost(str(fault).splitlines()[0]) from fault
    try:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s), clock_timestamp()", (KEY,))
        row = await cursor.fetchone()
        yield Lease(connection, row[1]) if row is not None and row[0] else None
    finally:
        await connection.close()
