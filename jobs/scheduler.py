"""The clock: APScheduler ticks in every jobs process, and one row a schedule decides which of them acts."""

import asyncio
import logging
from datetime import timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]

from jobs.restart import outlasting
from models import transaction
from services.core import rollups
from services.privacy import erasure, retention
from services.rules import pausing
from services.runtime import schedules
from services.servers import verified_counts
from services.triggers import sweep
from settings import settings

log = logging.getLogger("holdfast.jobs.scheduler")

TICK_SECONDS = 1
HOUSEKEEPING = "housekeeping"
HOUSEKEEPING_EVERY = timedelta(hours=1)
FOLD = "rollups"
FOLD_EVERY = timedelta(seconds=10)
"""How long counts wait to be folded; until then each look at a screen adds them up."""


async def prepare() -> None:
    """Make sure that every schedule has its row."""
    async with transaction() as db:
        await schedules.ensure(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds))
        await schedules.ensure(db, HOUSEKEEPING, HOUSEKEEPING_EVERY)
        await schedules.ensure(db, FOLD, FOLD_EVERY)


async def tick() -> None:
    """Do whatever is due and not done by another clock."""
    with outlasting(log, "the clock tries again"):
        async with transaction() as db:
            if await schedules.claim(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds)):
                total = await sweep.start_sweep(db)
                log.info("the round over everybody begins: %s members", total)
            await sweep.finish_if_done(db)
        async with transaction() as db:
            await erasure.finish(db)
        async with transaction() as db:
            await pausing.retry_refused(db)
        async with transaction() as db:
            if await schedules.claim(db, FOLD, FOLD_EVERY):
                await rollups.fold(db)
                await verified_counts.fold(db)
        async with transaction() as db:
            if await schedules.claim(db, HOUSEKEEPING, HOUSEKEEPING_EVERY):
                await retention.clear_expired(db)
                await pausing.sweep_deleted(db)
                gone = await retention.clear_log(db, settings().log_days)
                if gone == retention.AT_ONCE:  # more may be as old: go on with the next tick, not in an hour
                    await schedules.bring_forward(db, HOUSEKEEPING)


async def run() -> None:
    """Tick for ever; a tick that takes longer than its pause is followed by one tick, not by many."""
    await prepare()
    now = asyncio.Event()

    async def strike() -> None:  # a plain function would be called in a thread
        now.set()

    # APScheduler tells the time, the tick itself is this task's: so its end is waited for, and never left hanging.
    clock = AsyncIOScheduler()
    # Unannotated library: its schedule is what it is given.
    clock.add_job(strike, "interval", seconds=TICK_SECONDS)  # pyright: ignore[reportUnknownMemberType]
    clock.start()
    try:
        while True:
            await now.wait()
            now.clear()
            await tick()
    finally:
        clock.shutdown(wait=False)
