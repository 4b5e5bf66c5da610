"""Whether the parts that must work together have started."""

import asyncio
import json
import logging
from typing import ClassVar

import psycopg

from models.db import schema_version
from models.db.database import connect
from models.db.session import AsyncSession
from services.core.errors import HoldfastError
from services.guilds.gateway import shards
from services.triggers.gateway_events import BOT_READY
from settings import ROOT, newest_migration, settings

TOO_OLD = (
    "The database is of an older version than this program, which waits for its migrations: run "
    "`python -m alembic upgrade head` once, with this version."
)
ASKED_EVERY = 10.0
"""Seconds between two questions for the version of a database that is too old."""
_log = logging.getLogger(f"holdfast.{__name__}")


class NotRunning(HoldfastError):
    """The product does not seem to run on this machine."""

    status: ClassVar[int] = 503


def running_database() -> str:
    """Return the database URL for a program started beside the running product.

    DATABASE_URL, or the URL that the supervisor writes to the data directory. Raises NotRunning.
    """
    try:
        noted = json.loads((ROOT / settings().data_dir / "supervisor.lock").read_text())["database_url"]
    except (OSError, ValueError, KeyError, TypeError):
        noted = None
    url = settings().database_url or noted
    if not url:
        raise NotRunning("Holdfast does not run here: start it, or set DATABASE_URL.")
    return str(url)


async def until_migrated() -> None:
    """Return once the database has this version's migrations; without them every part would fail again and again.

    Also return if it cannot be asked, which the parts report themselves. A newer database is right: during an update
    two versions share it.
    """
    while await _is_too_old():
        _log.critical("%s", TOO_OLD)
        await asyncio.sleep(ASKED_EVERY)


async def _is_too_old() -> bool:
    try:
        async with await connect() as connection:
            found = await schema_version.read(connection)
    except psycopg.Error:
        return False
    return found is not None and found < newest_migration()


async def database_answers(db: AsyncSession) -> None:
    """Return if the database answers; otherwise raise the driver's error."""
    await db.execute("SELECT 1")


async def bot_ready(db: AsyncSession, seconds: float | None) -> bool:
    """Return whether the bot has known all its servers: ever if `seconds` is None, otherwise in the last `seconds`.

    If `seconds` is longer than a shard's lease, also return True if connected processes run every shard, because then
    the bot of this machine may stand by. All times are the database's, because this machine's clock may differ or be
    set.
    """
    found = await db.execute(_READY, {"name": BOT_READY, "seconds": seconds})
    if found.scalar_one():
        return True
    # If `seconds` is longer than a lease, every lease from before then has lapsed.
    return seconds is not None and seconds > shards.LEASE_SECONDS and await shards.all_connected(db)


_READY = """
    SELECT EXISTS (
        SELECT FROM schedule WHERE name = :name AND started_at IS NOT NULL
        AND (CAST(:seconds AS float8) IS NULL OR started_at >= now() - make_interval(secs => :seconds))
    )
"""
