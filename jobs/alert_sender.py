"""Tell the admins' log channels of problems when they begin, and again when they end."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from gateways import gateways
from models import transaction
from services.health import alerts, backlog
from services.health.alerts import AlertMessage
from services.runtime import schedules
from services.runtime.retries import own_fault_recorded, repeat_forever

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 2.0
ALERTS = "alerts"
ALERTS_EVERY = timedelta(seconds=5)


async def run() -> None:
    """Send until cancelled; at any time, only one process looks for problems and posts."""
    async with transaction() as db:
        await schedules.ensure(db, ALERTS, timedelta())
    await repeat_forever(once, log, "alerts will be sent later", PAUSE_SECONDS)


async def once() -> None:
    """If it is our turn, record which problems began or ended, and post what was not posted yet."""
    async with transaction() as db:
        if not await schedules.claim(db, ALERTS, ALERTS_EVERY):
            return
        await alerts.record_begun_and_ended(db)
        waiting = await alerts.claim(db)
    for together in alerts.in_posts(waiting):
        await _post(together)


async def _post(together: Sequence[AlertMessage]) -> None:
    async def record(fault: Exception) -> None:
        async with transaction() as db:
            for alert in together:
                await alerts.record_own_fault(db, alert, backlog.own_fault(fault))

    # The others come after it in the order of their ids.
    async with own_fault_recorded(log, "failed to post alert=%s", together[0].alert_id, record=record):
        outcome = await alerts.post(gateways(), together)
        async with transaction() as db:
            for alert in together:
                await alerts.record_result(db, alert, outcome)
