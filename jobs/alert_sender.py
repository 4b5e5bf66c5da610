"""Tell the admins' log channels of problems when they begin, and again when they end."""

import asyncio
import logging
from datetime import timedelta

from gateways import gateways
from models import transaction
from services.health import alerts, backlog
from services.health.alerts import AlertMessage
from services.runtime import schedules
from services.runtime.database_faults import is_the_databases
from services.runtime.retries import cancellation_first, database_errors_logged

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 2.0
ALERTS = "alerts"
ALERTS_EVERY = timedelta(seconds=5)


class AlertSender:
    """The sender in each jobs process; at any time, only one process looks for problems and posts."""

    async def run(self) -> None:
        """Send until cancelled."""
        async with transaction() as db:
            await schedules.ensure(db, ALERTS, timedelta())
        while True:
            with database_errors_logged(log, "alerts will be sent later"):
                await self.once()
            await asyncio.sleep(PAUSE_SECONDS)

    async def once(self) -> None:
        """If it is our turn, record which problems began or ended, and post what was not posted yet."""
        async with transaction() as db:
            if not await schedules.claim(db, ALERTS, ALERTS_EVERY):
                return
            await alerts.record_begun_and_ended(db)
            waiting = await alerts.claim(db)
        for alert in waiting:
            await self._post(alert)

    async def _post(self, alert: AlertMessage) -> None:
        try:
            with cancellation_first():
                outcome = await alerts.post_alert(gateways(), alert)
                async with transaction() as db:
                    await alerts.record_result(db, alert, outcome)
        except Exception as fault:
            if is_the_databases(fault):
                raise
            # An alert that always fails must not delay the others, which come after it in the order of their ids.
            log.exception("failed to post alert=%s", alert.alert_id)
            async with transaction() as db:
                await alerts.record_own_fault(db, alert, backlog.own_fault(fault))
