"""The scheduler: every jobs process ticks, and one row per schedule decides which process acts."""

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
"""How long counts wait to be folded. Until then each read adds them up."""


async def prepare() -> None:
    """Create the rows of missing schedules."""
    async with transaction() as db:
        await schedules.ensure(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds))
        await schedules.ensure(db, HOUSEKEEPING, HOUSEKEEPING_EVERY)
        await schedules.ensure(db, FOLD, FOLD_EVERY)


async def tick() -> None:
    """Run whatever is due and not claimed by another process."""
    with outlasting(log, "the tick will be retried"):
        async with transaction() as db:
            if await schedules.claim(db, sweep.SCHEDULE, timedelta(seconds=settings().sweep_seconds)):
                total = await sweep.start_sweep(db)
                log.info("started sweep members=%s", total)
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
                if gone == retention.AT_ONCE:  # there may be more: go on with the next tick, not in an hour
                    await schedules.bring_forward(db, HOUSEKEEPING)


async def run() -> None:
    """Tick until cancelled. A tick that takes longer than the pause is followed by one tick, not several."""
    await prepare()
    now = asyncio.Event()

    async def strike() -> None:  # a plain function would run in a thread
        now.set()

    # APScheduler only sets the event; the tick runs in this task, so that its end is awaited.
    clock = AsyncIOScheduler()
    # The library has no annotations.
    clock.add_job(strike, "interval", seconds=TICK_SECONDS)  # pyright: ignore[reportUnknownMemberType]
    clock.start()
    try:
        while True:
            await now.wait()
            now.clear()
            await tick()
    finally:
        clock.shutdown(wait=False)
