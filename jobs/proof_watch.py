"""The look for the transactions that wallets are to be proved by, beside the clock: it waits for chains."""

import asyncio
import logging

from gateways import gateways
from jobs.restart import outlasting
from models import transaction
from services.wallets import watch_schedule

log = logging.getLogger("holdfast.jobs.proof_watch")

PAUSE_SECONDS = 1.0


async def run() -> None:
    """Look for ever; one row a schedule decides whose turn it is, however many processes do this."""
    async with transaction() as db:
        await watch_schedule.prepare(db)
    while True:
        with outlasting(log, "the challenges are looked at again"):
            await watch_schedule.tick(gateways())
        await asyncio.sleep(PAUSE_SECONDS)
