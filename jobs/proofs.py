"""The look for the transactions that wallets are to be proved by, beside the clock: it waits for chains."""

import asyncio
import logging

from gateways import gateways
from jobs.lasting import AWAY, first_line
from models import transaction
from services import open_challenges

log = logging.getLogger("holdfast.jobs.proofs")

PAUSE_SECONDS = 1.0


async def run() -> None:
    """Look for ever; one row a schedule decides whose turn it is, however many processes do this."""
    async with transaction() as db:
        await open_challenges.prepare(db)
    while True:
        try:
            await open_challenges.tick(gateways())
        except AWAY as fault:
            log.warning("the database did not answer, the challenges are looked at again: %s", first_line(fault))
        await asyncio.sleep(PAUSE_SECONDS)
