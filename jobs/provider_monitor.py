"""Monitor providers: store the outcomes of their answers, and probe providers without recent answers."""

import logging
from datetime import timedelta

from gateways import gateways
from models import transaction
from services.guilds import shared_invalid_requests
from services.health import provider_records
from services.health.provider_records import Recorder
from services.runtime import schedules
from services.runtime.retries import repeat_forever

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 2.0
PROBES = "probes"
PROBES_EVERY = timedelta(seconds=10)


class ProviderMonitor:
    """The monitor in each jobs process; at any time, only one process probes."""

    def __init__(self) -> None:
        self.recorder: Recorder = Recorder()

    async def run(self) -> None:
        """Monitor until cancelled."""
        # No person waits for this process's reads of members, so they pause together with a guild's other requests.
        gateways().discord.refusals.reads_rest = True
        async with transaction() as db:
            await schedules.ensure(db, PROBES, timedelta())
        await repeat_forever(self.once, log, "monitoring will be retried", PAUSE_SECONDS)

    async def once(self) -> None:
        """Probe if it is our turn, and store the outcomes."""
        async with transaction() as db:
            probing = await schedules.claim(db, PROBES, PROBES_EVERY)
            silent = await provider_records.silent(db, gateways()) if probing else []
        await provider_records.probe(gateways(), silent)
        await self.recorder.publish()
        await shared_invalid_requests.share(gateways().discord.refusals)
