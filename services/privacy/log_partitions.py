"""The monthly partitions of the log: create the next ones, and drop those whose lines are no longer kept.

A partition has a range of ids, and the database function `event_months` moves the sequence of ids to the next range at
the turn of the month. So every line has a partition, whatever its time; at worst it is in the previous month's.
"""

import logging
from dataclasses import dataclass

import psycopg
from sqlalchemy.exc import DBAPIError

from models.db.session import AsyncSession
from services.runtime import schedules
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

SCHEDULE = "log_months"
"""The name of its row in the schedule."""
AHEAD = 3
"""How many months ahead partitions are created."""
LOCK_MILLISECONDS = 400
"""How long a turn waits for a lock, while others wait behind it. PostgreSQL looks for deadlocks after a second."""
ANALYZED_FROM = 10_000
"""How many lines the log must have to be analyzed as a whole."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the log by its table's name. Its ids end before `end_id`."""

    name: str
    end_id: int


async def maintain_one_step(db: AsyncSession) -> None:
    """Do one of these in each turn: create the next months' partitions, drop a past partition, or analyze the log.

    After a change the next turn is due at once. If a table is locked, the next turn tries again.
    """
    await db.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
    try:
        async with db.begin_nested():
            done = await _create(db) or await _drop(db, settings().log_days)
            if not done:
                await _analyze(db)
    except DBAPIError as fault:
        if not isinstance(fault.orig, psycopg.errors.LockNotAvailable):
            raise
        log.info("log partitions unchanged reason=locked")
        return
    if done:
        await schedules.bring_forward(db, SCHEDULE)


async def past(db: AsyncSession, days: int) -> list[Partition]:
    """Return the partitions that get no more lines and have none of the last `days` days, the oldest first.

    With 0 days the log is kept forever.
    """
    if days == 0:
        return []
    ended = await db.execute(_ENDED, {"days": days})
    return [one for one in (Partition(*row) for row in ended.all()) if not await _has_newer(db, one, days)]


async def kept_from(db: AsyncSession, days: int) -> int:
    """Return the first id after the oldest past partitions, which are dropped whole."""
    first = 0
    for partition in await past(db, days):
        (before,) = (await db.execute(_ANY_BEFORE, {"first": first, "end": partition.end_id})).one()
        if before:
            break
        first = partition.end_id
    return first


async def _has_newer(db: AsyncSession, partition: Partition, days: int) -> bool:
    # The line with the greatest id is nearly always the newest; all lines are read only if that one is too old.
    for lines in ("(SELECT at FROM {} ORDER BY id DESC LIMIT 1) newest", "{}"):
        found = await db.execute(
            f"SELECT EXISTS (SELECT 1 FROM {lines.format(partition.name)} "
            "WHERE at >= now() - make_interval(days => :days))",
            {"days": days},
        )
        if found.scalar_one():
            return True
    return False


async def _create(db: AsyncSession) -> bool:
    made = int((await db.execute("SELECT event_months(:ahead)", {"ahead": AHEAD})).scalar_one())
    return made > 0


async def _drop(db: AsyncSession, days: int) -> bool:
    """Drop the oldest past partition, if any, and have the verified people in it counted again."""
    for partition in (await past(db, days))[:1]:
        await db.execute(
            "INSERT INTO verified_stale (discord_id) SELECT DISTINCT subject "
            f"FROM {partition.name} WHERE kind = 'wallet.proved' AND subject IS NOT NULL"
        )
        await db.execute(f"DROP TABLE {partition.name}")
        log.info("dropped a month of the log partition=%s", partition.name)
        return True
    return False


async def _analyze(db: AsyncSession) -> None:
    """Analyze the log once a day: PostgreSQL analyzes each partition, but not all of them together."""
    (due,) = (await db.execute(_ANALYSIS_DUE, {"least": ANALYZED_FROM})).one()
    if due:
        await db.execute("ANALYZE event")


# The sequence has passed these partitions, so nobody writes to them. A month is past only after the next has begun.
_ENDED = """
    SELECT name, end_id FROM event_partitions() WHERE end_id <= (SELECT last_value FROM event_id_seq)
    AND to_date(CAST(end_id / 1000000000 AS text), 'YYYYMM') < now() - make_interval(days => :days)
    ORDER BY first_id
"""
_ANY_BEFORE = "SELECT EXISTS (SELECT 1 FROM event_partitions() WHERE end_id > :first AND end_id < :end)"
_ANALYSIS_DUE = """
    SELECT (SELECT sum(c.reltuples) FROM event_partitions() p JOIN pg_class c ON c.oid = CAST(p.name AS regclass))
           >= :least
    AND NOT EXISTS (SELECT 1 FROM pg_stat_user_tables WHERE relid = CAST('event' AS regclass)
                    AND last_analyze > now() - interval '1 day')
"""
