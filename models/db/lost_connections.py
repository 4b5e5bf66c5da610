"""Database connections that notice when the server, or the network to it, has vanished silently."""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Generator
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

log = logging.getLogger(f"holdfast.{__name__}")

NETWORK: dict[str, int] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""libpq's connection parameters (seconds; tcp_user_timeout in milliseconds). Without them Linux waits a quarter of an
hour for a machine that vanished during a statement, and two hours for one that vanished between statements."""
NOTICE_OUR_END = (
    "SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '10000', false)"
)
"""Lets the database server notice within half a minute, instead of two hours, that this machine has vanished."""
SILENT_SECONDS = 10.0
"""Seconds without an answer after which another connection checks on the statement."""
SURE_SECONDS = 1.0
"""Seconds between the two checks that must agree that the server does not work on the statement."""

_PSYCOPGS = frozenset({"autocommit", "prepare_threshold", "context", "row_factory", "cursor_factory"})
"""The arguments of `connect` that are psycopg's own; the others are libpq's."""
# A pooler may add to the name, and a server may be configured not to track states ("disabled").
_ACTIVE = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity "
    "WHERE strpos(application_name, %s) > 0 AND coalesce(state, '') NOT LIKE 'idle%%')"
)
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE strpos(application_name, %s) > 0"


def parameters(conninfo: str) -> dict[str, Any]:
    """Return the parameters for a connection to this URL, without those that the operator set in the URL."""
    given = conninfo_to_dict(conninfo)
    found: dict[str, Any] = {name: value for name, value in NETWORK.items() if name not in given}
    # The server stores 63 bytes, and replaces characters outside ASCII with question marks.
    name = str(given.get("application_name") or "holdfast").encode("ascii", "replace").decode()
    found["application_name"] = f"{name[:40]} {secrets.token_hex(8)}"
    return found


class WatchedConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection whose statements cannot wait forever.

    TCP notices a dead peer, but not a proxy or firewall that accepts bytes and loses them. So when a statement has no
    answer for SILENT_SECONDS, a second connection asks whether the server works on it. If not, the statement raises
    psycopg.OperationalError, and the server releases everything that it still holds for this connection: locks, a
    lease.
    """

    _token: str = ""
    """A unique part of the connection's name."""
    _conninfo: str = ""

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Connect as psycopg does, with NETWORK's timeouts. Raises psycopg.OperationalError."""
        own = {name: kwargs.pop(name) for name in _PSYCOPGS if name in kwargs}
        address = make_conninfo(conninfo, **kwargs)
        added = parameters(address)
        made = await super().connect(address, **added, **own)
        made._token, made._conninfo = added["application_name"].rpartition(" ")[2], address
        return made

    async def __aexit__(self, *fault: Any) -> None:
        """Commit or roll back, and close, also when cancelled, which psycopg's own version does not."""
        try:
            await super().__aexit__(*fault)
        finally:
            await self.close()

    async def set_autocommit(self, value: bool) -> None:
        """Set autocommit without a pause (see `_at_once`)."""
        _at_once(self._set_autocommit_gen(value))

    async def set_isolation_level(self, value: psycopg.IsolationLevel | None) -> None:
        """Set the isolation level without a pause (see `_at_once`)."""
        _at_once(self._set_isolation_level_gen(value))

    async def rollback(self) -> None:
        """Roll back; without a pause if no transaction is open, as when a session ends (see `_at_once`)."""
        if self.info.transaction_status is not TransactionStatus.IDLE:
            await super().rollback()

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server as psycopg does; if the call has no timeout, check on a silent server."""
        if kwargs.get("timeout") is not None or not self._token:
            return await super().wait(*args, **kwargs)
        looking: list[asyncio.Task[None]] = []
        alarm = asyncio.get_running_loop().call_later(
            SILENT_SECONDS, lambda: looking.append(asyncio.create_task(self._look()))
        )
        try:
            return await super().wait(*args, **kwargs)
        finally:
            alarm.cancel()
            for task in looking:
                task.cancel()

    async def _look(self) -> None:
        """Close the connection once the server is known not to work on its statement."""
        while True:
            with contextlib.suppress(psycopg.Error):
                if await self._is_lost():
                    break
            await asyncio.sleep(SILENT_SECONDS)
        log.warning("database connection lost silently silent_seconds=%g", SILENT_SECONDS)
        # The statement waits for this socket and now finds it closed, as if the server had closed the connection.
        with socket.socket(fileno=socket.dup(self.pgconn.socket)) as line, contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    async def _is_lost(self) -> bool:
        more = parameters(self._conninfo)
        async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True, **more) as other:
            for _ in range(2):
                row = await (await other.execute(_ACTIVE, [self._token], prepare=False)).fetchone()
                if row is None or row[0]:
                    return False
                await asyncio.sleep(SURE_SECONDS)
            # The server's side of the lost connection keeps its locks until it ends.
            await other.execute(_END, [self._token], prepare=False)
        return True


def _at_once(setting: Generator[Any, Any, None]) -> None:
    """Run psycopg's steps for a setting that sends nothing to the server, outside of a pipeline.

    psycopg itself would pause here after a busy time. The pool changes these settings after it has taken a connection
    out, and a task that is cancelled in such a pause would lose the connection.
    """
    for _ in setting:
        raise psycopg.ProgrammingError("a setting has to wait for the server; end the pipeline first")
