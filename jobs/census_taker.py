"""Counts who holds the collections whose numbers somebody asked for."""

import asyncio
import logging

from gateways import gateways
from jobs.restart import database_errors_logged
from models import transaction
from services.collections.census import counting, days, reach, tasks

log = logging.getLogger("holdfast.jobs.census_taker")

PAUSE_SECONDS = 1.0
"""Pause when there is nothing to count."""


class CensusTaker:
    """Each advances one count at a time; several share the work, in one process or in many."""

    def __init__(self, holder: str) -> None:
        self._holder = holder

    async def run(self) -> None:
        """Count until cancelled."""
        while True:
            worked = False
            with database_errors_logged(log, "counts will go on"):
                worked = await self.once()
            if not worked:
                await asyncio.sleep(PAUSE_SECONDS)

    async def once(self) -> bool:
        """Advance one count, or compute one rule's numbers; return False if there is nothing to do."""
        async with transaction() as db:
            if (ended := await reach.settle_next(db)) is not None:
                await days.note(db, ended)
                return True
            task = await tasks.claim(db, self._holder)
        if task is None:
            return False
        await counting.advance(gateways(), task)
        return True
