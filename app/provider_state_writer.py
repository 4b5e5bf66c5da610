"""Writes what this process learnt about the providers to the database every few seconds."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from gateways import gateways
from services.guilds import rate_shares, shared_invalid_requests
from services.health import provider_records
from services.runtime import marketplace_limit_sharing, node_limit_sharing, rejected_requests
from services.runtime.database_faults import NOT_DONE, first_line
from services.runtime.retries import run_forever
from services.runtime.task_cancellation import stop

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 2.0


@asynccontextmanager
async def noting() -> AsyncGenerator[None]:
    """Write while the block lasts."""
    work = (
        partial(_write_for_ever, provider_records.Recorder()), partial(rate_shares.keep_renewed, rate_shares.WEB),
        marketplace_limit_sharing.keep, node_limit_sharing.run, rejected_requests.write_on,
    )  # fmt: skip
    tasks = [asyncio.create_task(run_forever(one)) for one in work]
    try:
        yield
    finally:
        await stop(*tasks)


async def _write_for_ever(recorder: provider_records.Recorder) -> None:
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            await recorder.publish()
            await shared_invalid_requests.share(gateways().discord.refusals)
        except NOT_DONE as fault:
            log.warning("database did not answer, provider status will be written later reason=%s", first_line(fault))
