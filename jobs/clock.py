"""The clock: APScheduler ticks in every jobs process, and one row a schedule decides which of them acts."""

import logging
from datetime import timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from sqlalchemy.exc import DBAPIError

from models import transaction
from services import farewells, housekeeping, rule_states, schedules, sweep
from settings import settings

log = logging.getLogger("holdfast.jobs.clock")

TICK_SECONDS = 1
HOUSEKEEPING = "housekeeping"
HOUSEKEEPING_EVERY = timedelta(hours=1)


async def prepare() -> None:
    """Make sure that every schedule has its row."""
    async with transaction() as db:
        await schedules.ensure(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds))
        await schedules.ensure(db, HOUSEKEEPING, HOUSEKEEPING_EVERY)


async def tick() -> None:
    """Do whatever is due and not done by another clock."""
    try:
        async with transaction() as db:
            if await schedules.claim(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds)):
                total = await sweep.start_sweep(db)
                log.info("the round over everybody begins: %s members", total)
        async with transaction() as db:
            await sweep.finish_if_done(db)
        async with transaction() as db:
            await farewells.finish(db)
        async with transaction() as db:
            if await schedules.claim(db, HOUSEKEEPING, HOUSEKEEPING_EVERY):
                await housekeeping.clear_expired(db)
                await rule_states.sweep_deleted(db)
    except DBAPIError as fault:
        log.warning("the database did not answer, the clock tries again: %s", fault.orig)


def start() -> AsyncIOScheduler:
    """A running clock; a tick that takes longer than its pause is followed by one tick, not by many."""
    clock = AsyncIOScheduler()
    # Unannotated library: its schedule is what it is given.
    clock.add_job(tick, "interval", seconds=TICK_SECONDS, max_instances=1, coalesce=True)  # pyright: ignore[reportUnknownMemberType]
    clock.start()
    return clock
