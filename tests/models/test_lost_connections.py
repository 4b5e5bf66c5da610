"""A database that vanishes silently: statements end, pools and listeners recover, and locks are released."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import waiting
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

import models
from models import connect, reading, transaction
from models.db import lost_connections
from models.db.lost_connections import NETWORK, parameters
from services.roles.writer_lease import Lease, LeaseLost, lease
from services.runtime import postgres_listen
from services.runtime.postgres_listen import Listener
from setting_checks import libpq_url
from settings import settings


class Proxy:
    """A proxy to the database that can drop all traffic of its present connections, while new ones work."""

    def __init__(self, address: dict[str, Any]) -> None:
        self.address, self.port, self.opened = address, 0, 0
        self._lost = asyncio.Event()
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    def fall_silent(self) -> None:
        self._lost.set()
        self._lost = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        host, port = str(self.address["host"]), self.address.get("port") or "5432"
        if host.startswith("/"):
            there = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            there = await asyncio.open_connection(host, int(port))
        self._writers += [writer, there[1]]
        lost = self._lost
        for source, sink in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._pipe(source, sink, lost))
            self._pipes.add(task)

    async def _pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                if not lost.is_set():
                    sink.write(data)
                    await sink.drain()
        if not lost.is_set():
            sink.close()

    async def end(self) -> None:
        for task in self._pipes:
            task.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.fixture
async def proxy(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    """A migrated database behind a proxy, used by the process; a silence is checked after half a second."""
    monkeypatch.setattr(lost_connections, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(lost_connections, "SURE_SECONDS", 0.1)
    monkeypatch.setattr(postgres_listen, "_PING_SECONDS", 0.2)
    monkeypatch.setattr(postgres_listen, "_RECONNECT_SECONDS", 0.1)
    made = Proxy(dict(conninfo_to_dict(libpq_url(database_url))))
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    user, name = made.address.get("user"), made.address["dbname"]
    password = f":{made.address['password']}" if made.address.get("password") else ""
    url = f"postgresql://{user}{password}@127.0.0.1:{made.port}/{name}"
    monkeypatch.setenv("DATABASE_URL", url)
    settings.cache_clear()
    await models.use(url)
    async with listening:
        yield made
        await models.use(None)
        await made.end()
    settings.cache_clear()


async def test_a_statement_on_a_connection_that_is_lost_ends_and_the_next_one_works(proxy: Proxy) -> None:
    async with transaction() as db:
        await db.execute(text("CREATE TABLE kept (number integer)"))
        await db.execute(text("INSERT INTO kept VALUES (1)"))

    async def change_and_lose() -> None:
        async with transaction() as db:
            await db.execute(text("UPDATE kept SET number = 2"))
            proxy.fall_silent()
            await db.execute(text("SELECT 1"))

    async with asyncio.timeout(60):
        with pytest.raises(DBAPIError):
            await change_and_lose()
        # The server's side of it has ended too: its row lock would block this statement for ever.
        async with transaction() as db:
            await db.execute(text("UPDATE kept SET number = number + 10"))
        async with reading() as db:
            assert (await db.execute(text("SELECT number FROM kept"))).scalar_one() == 11


async def test_all_connections_of_the_pool_are_made_again(proxy: Proxy) -> None:
    async def one() -> None:
        async with reading() as db:
            await db.execute(text("SELECT pg_sleep(0.1)"))

    await asyncio.gather(*(one() for _ in range(5)))
    proxy.fall_silent()
    async with asyncio.timeout(60):
        await asyncio.gather(*(one() for _ in range(5)), return_exceptions=True)
        await asyncio.gather(*(one() for _ in range(5)))


async def test_a_statement_that_the_server_works_on_may_take_its_time(proxy: Proxy) -> None:
    async with reading() as db:
        assert (await db.execute(text("SELECT 7 FROM pg_sleep(3)"))).scalar_one() == 7


async def test_a_server_that_tracks_no_states_is_waited_for(proxy: Proxy) -> None:
    async with await connect() as connection:
        await connection.execute("SET track_activities = off")
        cursor = await connection.execute("SELECT 7 FROM pg_sleep(2)")
        assert await cursor.fetchone() == (7,)


async def test_the_listener_notices_that_it_is_cut_off_and_hears_again(proxy: Proxy) -> None:
    called = asyncio.Event()
    task = asyncio.create_task(Listener({"news": called}).run())

    async def heard() -> None:
        async with asyncio.timeout(60):
            await called.wait()
        called.clear()

    async def call() -> None:
        async with reading() as db:
            await db.execute(text("NOTIFY news"))

    try:
        await heard()  # it reads once when it begins
        await call()
        await heard()
        for _ in range(3):  # the pings lose no notification
            await asyncio.sleep(0.15)
            await call()
            await heard()
        proxy.fall_silent()
        await heard()  # and once when it is connected again
        await models.use(settings().database_url)
        await call()
        await heard()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_lease_that_is_cut_off_is_lost_and_free_for_the_next(proxy: Proxy) -> None:
    async def once_free() -> None:
        while True:
            async with lease() as held:
                if held is not None:
                    return

    async with asyncio.timeout(60), lease() as held:
        assert isinstance(held, Lease)
        proxy.fall_silent()
        with pytest.raises(LeaseLost):
            await held.ask(("SELECT 1", {}))
        await once_free()


async def test_a_caller_that_is_stopped_meanwhile_does_not_wait_for_ever(proxy: Proxy) -> None:
    async with await connect() as connection:
        proxy.fall_silent()
        task = asyncio.create_task(connection.execute("SELECT 1"))
        await asyncio.sleep(0.05)
        task.cancel()
        async with asyncio.timeout(60):
            await asyncio.gather(task, return_exceptions=True)


async def test_every_connection_has_the_networks_timeouts(proxy: Proxy) -> None:
    async with await connect() as connection:
        used = connection.info.get_parameters()
    assert {name: used[name] for name in NETWORK} == {name: str(value) for name, value in NETWORK.items()}
    async with transaction() as db:
        raw: Any = (await (await db.connection()).get_raw_connection()).driver_connection
        assert raw.info.get_parameters()["tcp_user_timeout"] == "10000"


def test_what_the_address_says_is_the_operators_choice() -> None:
    address = make_conninfo(host="db.example", keepalives_idle=60, application_name="mine")
    found = parameters(address)
    assert "keepalives_idle" not in found
    assert found["connect_timeout"] == 5
    assert str(found["application_name"]).startswith("mine ")
    assert found["application_name"] != parameters(address)["application_name"]
    long = parameters(make_conninfo(host="db.example", application_name="é" * 80))["application_name"]
    assert long.isascii()
    assert len(long) <= 63


async def test_an_address_where_nobody_answers_is_an_operational_error() -> None:
    with pytest.raises(psycopg.OperationalError):
        await lost_connections.WatchedConnection.connect("host=127.0.0.1 port=1")


async def test_who_is_told_to_end_ends_though_the_connection_is_lost(proxy: Proxy) -> None:
    begun = asyncio.Event()

    async def wait_in_a_transaction() -> None:
        async with transaction() as db:
            await db.execute(text("SELECT 1"))
            proxy.fall_silent()
            begun.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(60):
        task = asyncio.create_task(wait_in_a_transaction())
        await begun.wait()
        task.cancel()
        # The rollback fails, but its error must not replace the cancellation: a part that survives errors would go on.
        with pytest.raises(asyncio.CancelledError):
            await task
        async with reading() as db:
            assert (await db.execute(text("SELECT 1"))).scalar_one() == 1


async def test_where_nothing_is_open_a_rollback_is_no_moment_in_which_to_be_cancelled(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setattr(waiting, "MAX_BUSY_TIME", -1.0)
    async with await lost_connections.WatchedConnection.connect(libpq_url(database_url)) as connection:
        ending = connection.rollback()
        with pytest.raises(StopIteration):
            ending.send(None)
        await connection.execute("SELECT 1")
        await connection.rollback()
        assert connection.info.transaction_status is TransactionStatus.IDLE


async def test_a_block_that_is_cancelled_while_it_ends_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    # psycopg then yields to other tasks before it reports that there was nothing to commit.
    monkeypatch.setattr(waiting, "MAX_BUSY_TIME", -1.0)
    connection = await lost_connections.WatchedConnection.connect(libpq_url(database_url), autocommit=True)
    ending = connection.__aexit__(None, None, None)
    ending.send(None)
    with pytest.raises(asyncio.CancelledError):
        ending.throw(asyncio.CancelledError())
    assert connection.closed
