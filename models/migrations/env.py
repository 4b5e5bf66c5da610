"""Run alembic over the product's own engine."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from alembic import context
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlmodel import SQLModel

from models.db.lost_connections import NOTICE_OUR_END, WatchedConnection
from setting_checks import NO_POSTGRESQL, is_postgresql, libpq_url, psycopg_url
from settings import environment, version

LOCK_SECONDS, TRIES, PAUSE_SECONDS = 5.0, 12, 5.0
"""A waiting ALTER TABLE blocks later queries, so a migration uses a short lock_timeout and retries.

`alembic -x lock_seconds=… -x pause_seconds=… upgrade head` overrides both.
"""
IN_USE = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
"""The errors of a migration that met somebody else's locks; nothing is wrong with it."""
ABSENT = ("08", "28", "3D", "57P", "53300")
"""The SQLSTATEs, or their beginnings, of a server that accepts no connection from us, or ended ours."""
MIGRATING, TURN_SECONDS = 7_164_000, 0.2
"""The number of the lock on migrations, and the pause between two attempts to take it."""


def _run(connection: Connection) -> None:
    connection.execute(text(f"SET lock_timeout = {round(1000 * _told('lock_seconds', LOCK_SECONDS))}"))
    connection.commit()
    context.configure(
        connection=connection, target_metadata=SQLModel.metadata, compare_type=True, include_name=_is_ours(connection)
    )  # fmt: skip
    known = {script.revision for script in context.script.walk_revisions()}
    unknown = sorted(set(context.get_context().get_current_heads()) - known)
    connection.rollback()
    if unknown:
        raise SystemExit(
            f"The database is of a newer version than {version()}: its migration {unknown[0]} is unknown here. Install "
            "that version, or restore a backup from before it."
        )
    with context.begin_transaction():
        context.run_migrations()


def _is_ours(connection: Connection) -> Callable[[str | None, str, Any], bool]:
    """Return a filter for the comparison by name, which leaves out partitions: they are parts of their table."""
    partitions = set(connection.execute(text("SELECT relname FROM pg_class WHERE relispartition")).scalars())
    connection.commit()
    return lambda name, kind, _: kind != "table" or name not in partitions


async def _migrate() -> None:
    url = environment().get("DATABASE_URL")
    if not url:
        raise SystemExit("DATABASE_URL is not set, neither in the environment nor in .env.")
    if not is_postgresql(url):
        raise SystemExit(NO_POSTGRESQL)
    engine = create_async_engine(psycopg_url(url), connect_args={"async_creator_fn": WatchedConnection.connect})
    try:
        for attempt in range(1, TRIES + 1):
            try:
                async with engine.connect() as connection, _turn(connection):
                    await connection.run_sync(_run)
                return
            except OperationalError as fault:
                if not isinstance(fault.orig, IN_USE):
                    raise SystemExit(_unreachable(url, fault) if _is_absent(fault) else _failed(url, fault)) from None
                if attempt == TRIES:
                    raise SystemExit("A table stayed locked, so nothing was changed. Start again later.") from None
                pause = _told("pause_seconds", PAUSE_SECONDS)
                print(f"a table is in use; trying again in {pause:g} s ({attempt} of {TRIES})", flush=True)
                await asyncio.sleep(pause)
            except DBAPIError as fault:
                if isinstance(fault.orig, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
                    raise SystemExit(_not_allowed(url, fault)) from None
                raise
    finally:
        await engine.dispose()


@asynccontextmanager
async def _turn(connection: AsyncConnection) -> AsyncGenerator[None]:
    """Wait until no other process migrates this database; meanwhile no other one begins.

    It asks again and again: a statement that waits would have a snapshot, for which building an index waits.
    """
    told = False
    await connection.execute(text(NOTICE_OUR_END))
    while not (await connection.execute(text(f"SELECT pg_try_advisory_lock({MIGRATING})"))).scalar_one():
        await connection.commit()
        if not told:
            # Not to the output, from which an update reads the revision.
            print("another process brings the database up to date; waiting for it", file=sys.stderr, flush=True)
            told = True
        await asyncio.sleep(TURN_SECONDS)
    await connection.commit()
    try:
        yield
    finally:
        # A pooler in transaction mode keeps the session for its next client, and with it the lock. The end of a session
        # that cannot be asked any more ends the turn too.
        with suppress(DBAPIError):
            await connection.rollback()
            await connection.execute(text(f"SELECT pg_advisory_unlock({MIGRATING})"))
            await connection.commit()


def _told(name: str, usual: float) -> float:
    """Return a number from alembic's own `-x` option, or the default."""
    return float(context.get_x_argument(as_dictionary=True).get(name, usual))


def _is_absent(fault: OperationalError) -> bool:
    """Return whether the database refused or lost the connection, rather than a statement."""
    state = fault.orig.sqlstate if isinstance(fault.orig, psycopg.Error) else None
    return state is None or state.startswith(ABSENT)


def _failed(url: str, fault: OperationalError) -> str:
    """Return what prevents a migration, such as a full disk of the database."""
    reason = str(fault.orig).strip().splitlines()[0]
    name = conninfo_to_dict(libpq_url(url)).get("dbname", "")
    return (
        f"The database {name} could not be brought up to date: {reason}\n"
        "Start again once the reason is gone. What is done so far stays, and the rest follows."
    )


def _unreachable(url: str, fault: OperationalError) -> str:
    """Return advice for an operator whose database refuses the connection, without the password."""
    parts = conninfo_to_dict(libpq_url(url))
    where = f"{parts.get('host') or 'this machine'}:{parts.get('port') or 5432}"
    reason = str(fault.orig).strip().splitlines()[0]
    return (
        f"The database {parts.get('dbname', '')} at {where} does not let us in: {reason}\n"
        "Is it running, is DATABASE_URL right (postgresql://user:password@host:5432/database), and may this machine "
        "reach it? Without DATABASE_URL the product brings a database of its own."
    )


def _not_allowed(url: str, fault: DBAPIError) -> str:
    """Return advice for an operator whose database does not let the product make or change tables."""
    reason = str(fault.orig).strip().splitlines()[0]
    return (
        f"The database {conninfo_to_dict(libpq_url(url)).get('dbname', '')} does not let us make or change tables: "
        f"{reason}\nThe account in DATABASE_URL has to own the tables, on a server that takes writes. "
        "The `doctor` of your installation says what is missing."
    )


asyncio.run(_migrate())
