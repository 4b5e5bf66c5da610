"""Share marketplaces' rate limits between processes: each publishes what it read and adopts what others read."""

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from sqlmodel import select

from gateways import gateways
from gateways.marketplaces.quota import Quota, QuotaStanding
from models import MarketLimit, transaction
from models.db.row import upsert
from services.runtime.database_faults import NOT_DONE, first_line

log = logging.getLogger(f"holdfast.{__name__}")

BEAT_SECONDS = 2.0


async def exchange(quota: Quota) -> None:
    """Merge this process's view of a marketplace's limits with the database's."""
    async with transaction() as db:
        if quota.news:
            # One process at a time, even before the first row exists.
            await db.lock(f"market limit {quota.name}")
        query = select(MarketLimit).where(MarketLimit.provider == quota.name)
        rows = (await db.exec(query.execution_options(populate_existing=True))).all()
        told = quota.exchange({row.reads: standing_of(row) for row in rows})
        if told:
            await db.execute(upsert(MarketLimit, list(_rows(quota.name, told)), ("provider", "reads"), _CHANGING))


_CHANGING = ("seconds", "base", "remaining", "resets_at", "told_at", "kept")


def standing_of(row: MarketLimit) -> QuotaStanding:
    """Return the state of a limit as a process last shared it."""
    return QuotaStanding(
        row.reads, row.seconds, row.base, row.remaining, row.resets_at.timestamp(), row.told_at.timestamp(), row.kept
    )


def _rows(provider: str, told: Iterable[QuotaStanding]) -> Iterable[dict[str, object]]:
    for one in told:
        yield {
            "provider": provider, "reads": one.limit, "seconds": one.length, "base": one.base,
            "remaining": one.remaining, "resets_at": datetime.fromtimestamp(one.resets_at, UTC),
            "told_at": datetime.fromtimestamp(one.told_at, UTC), "kept": dict(one.kept),
        }  # fmt: skip


async def keep() -> None:
    """Exchange limits every few seconds until cancelled."""
    while True:
        outside = gateways()
        try:
            for quota in (outside.opensea.quota, outside.magiceden.quota):
                await exchange(quota)
        except NOT_DONE as fault:
            log.warning("limits of marketplaces not exchanged reason=%s", first_line(fault))
        await asyncio.sleep(BEAT_SECONDS)
