"""The writer's lease: one process holds it, and only a connection that still holds it answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from models import WatchedConnection, transaction
from services.roles.writer_lease import KEY, LeaseLost, keeps_sessions, lease
from setting_checks import libpq_url
from settings import settings

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def address(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("DATABASE_URL", database_url)
        settings.cache_clear()
        yield
    settings.cache_clear()


async def test_one_has_it_and_the_next_gets_it_when_they_let_go() -> None:
    async with lease() as first, lease() as second:
        assert first is not None
        assert second is None
        assert await first.ask(("SELECT CAST(:number AS integer)", {"number": 7})) == [(7,)]
    async with asyncio.timeout(30):
        while not await is_taken():
            # The server ends a session, and so releases its lock, a moment after the client has closed the connection.
            await asyncio.sleep(0.01)


async def is_taken() -> bool:
    async with lease() as third:
        return third is not None


async def test_whose_connection_is_gone_gets_no_answer() -> None:
    async with lease() as held:
        assert held is not None
        async with transaction() as db:
            of_ours = text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objid = :low "
                "AND classid = :high AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            await db.execute(of_ours, {"low": KEY % 2**32, "high": KEY // 2**32})
        with pytest.raises(LeaseLost):
            await held.ask(("SELECT 1", {}))
        async with lease() as other:
            assert other is not None, "and somebody else may write by now"


class Pooler:
    """PgBouncer in transaction mode: each statement or transaction takes the free session that was used last."""

    def __init__(self) -> None:
        self.free: list[psycopg.AsyncConnection[tuple[Any, ...]]] = []

    async def connect(self, address: str, *, autocommit: bool) -> Any:
        return self.client(address, autocommit=autocommit)

    @asynccontextmanager
    async def client(self, address: str, *, autocommit: bool) -> AsyncIterator["Client"]:
        made = Client(self, address, autocommit=autocommit)
        yield made
        if made.session is not None:
            self.free.append(made.session)


class Client:
    def __init__(self, pooler: Pooler, address: str, *, autocommit: bool) -> None:
        self._pooler, self._address, self._autocommit = pooler, address, autocommit
        self.session: psycopg.AsyncConnection[tuple[Any, ...]] | None = None

    async def execute(self, statement: str) -> Any:
        if self.session is None:
            free = self._pooler.free
            self.session = free.pop() if free else await WatchedConnection.connect(self._address, autocommit=True)
        session = self.session
        cursor = await session.execute(statement.encode())
        if self._autocommit:
            self.session = None
            self._pooler.free.append(session)
        return cursor


async def test_a_pooler_in_transaction_mode_is_noticed(database_url: str) -> None:
    assert await keeps_sessions(database_url)
    pooler = Pooler()
    try:
        assert not await keeps_sessions(libpq_url(database_url), pooler.connect)
    finally:
        for session in pooler.free:
            await session.close()
