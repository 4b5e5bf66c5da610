"""Count the holders of the collections whose numbers were requested."""

import asyncio
import logging

from gateways import gateways
from models import transaction
from services.collections.census import census_queue, count_by_transfers, reach, reach_by_day
from services.health import backlog
from services.runtime.postgres_listen import wait
from services.runtime.retries import own_fault_recorded, repeat_forever

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 1.0
"""Pause after a database error."""
IDLE_SECONDS = 5.0
"""The longest wait for a notification: a count that failed is due again without one."""


class CensusTaker:
    """A worker that advances one count at a time; several share the work, in one process or in many."""

    def __init__(self, holder: str, called: asyncio.Event | None = None) -> None:
        self._holder = holder
        self._called = called or asyncio.Event()
        self._counts_first = True

    async def run(self) -> None:
        """Count until cancelled."""
        await repeat_forever(self._once_or_wait, log, "counts will go on", PAUSE_SECONDS)

    async def _once_or_wait(self) -> bool:
        if not await self.once():
            await wait(self._called, IDLE_SECONDS)
        return True

    async def once(self) -> bool:
        """Advance one count, or compute one rule's numbers; return False if there is nothing to do.

        The two kinds of work take turns, so that rules whose numbers take long do not delay counts.
        """
        self._counts_first = not self._counts_first
        steps = (self._advance, self._settle) if self._counts_first else (self._settle, self._advance)
        return await steps[0]() or await steps[1]()

    async def _settle(self) -> bool:
        async with transaction() as db:
            if (row := await reach.next_ended(db)) is None:
                return False
            reach_id = row.id or 0
            server_id, digest = row.server_id, row.digest

            async def record(fault: Exception) -> None:
                reason = backlog.own_fault(fault)
                await reach.give_up(db, reach_id, reason)
                # Noted for today, or the daily count would begin again at once, before those of all other rules.
                async with own_fault_recorded(log, said, reach_id, record=_nowhere), db.begin_nested():
                    await reach_by_day.note_failure(db, server_id, digest, reason)

            said = "failed to compute a rule's numbers reach=%s"
            async with own_fault_recorded(log, said, reach_id, record=record), db.begin_nested():
                await reach.settle(db, row)
                await reach_by_day.note(db, row)
        return True

    async def _advance(self) -> bool:
        async with transaction() as db:
            task = await census_queue.claim(db, self._holder)
        if task is None:
            return False

        async def record(fault: Exception) -> None:
            await count_by_transfers.record_fault(task, backlog.own_fault(fault))

        said = "failed to advance a count census=%s chain=%s"
        async with own_fault_recorded(log, said, task.id, task.chain, record=record):
            await count_by_transfers.advance(gateways(), task)
        return True


async def _nowhere(_fault: Exception) -> None:
    """Record a fault nowhere but in the log."""
