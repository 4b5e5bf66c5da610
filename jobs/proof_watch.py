"""Poll chains for the transactions that prove wallets, separately from the scheduler because chains may be slow."""

import asyncio
import logging

from gateways import gateways
from models import transaction
from services.runtime.retries import database_errors_logged
from services.wallets import open_challenges

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 1.0


async def run() -> None:
    """Poll until cancelled. One row in `schedule` decides which process polls."""
    async with transaction() as db:
        await open_challenges.prepare(db)
    checks = open_challenges.ChainChecks()
    try:
        while True:
            with database_errors_logged(log, "challenges will be polled again"):
                await open_challenges.tick(gateways(), checks)
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await checks.stop()
