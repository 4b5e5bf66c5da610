"""What one process learns of a marketplace's limit is shared with all processes."""

import asyncio

import pytest
from sqlalchemy import text

from gateways.marketplaces.quota import SHARES, Quota, Use
from gateways.transport.errors import ProviderBusy
from models import now, transaction
from services.runtime.marketplace_limit_sharing import exchange

pytestmark = pytest.mark.usefixtures("database")
LIMIT = 600


class Key:
    """The reads that OpenSea counts for a key and reports in the headers of its answers."""

    def __init__(self) -> None:
        self.left = LIMIT
        self.resets = now().timestamp() + 3_000

    def reads(self, quota: Quota, use: Use, most: int = LIMIT) -> int:
        """Make up to `most` reads, and return how many pass without waiting."""
        for passed in range(most):
            try:
                with quota.one_read(use):
                    self.left -= 1
                    assert self.left >= 0, "more was sent than the key has"
                    limits = {"limit": LIMIT, "remaining": self.left, "reset": self.resets}
                    quota.heed(use, 200, {f"x-ratelimit-{name}": str(value) for name, value in limits.items()})
            except ProviderBusy:
                return passed
        return most


async def test_what_one_process_read_the_others_do_not_read_again() -> None:
    web, bot, jobs = quotas = [Quota("OpenSea") for _ in range(3)]
    key = Key()
    assert key.reads(jobs, Use.RULES) == pytest.approx(
        LIMIT * (1 - SHARES[Use.PROOF] - SHARES[Use.AGAIN] - SHARES[Use.LOOKUP]), abs=3
    )
    await exchange(jobs)
    await asyncio.gather(exchange(web), exchange(bot))
    assert key.reads(web, Use.RULES) <= 1
    assert key.reads(bot, Use.PROOF, 250) == 250
    assert key.reads(web, Use.LOOKUP, 20) == 20
    await asyncio.gather(*(exchange(quota) for quota in quotas))
    await asyncio.gather(*(exchange(quota) for quota in quotas))
    left = key.left
    assert key.reads(web, Use.PROOF) == pytest.approx(left - (SHARES[Use.LOOKUP] * LIMIT - 20), abs=4)


async def test_who_read_nothing_writes_nothing() -> None:
    busy, idle = Quota("OpenSea"), Quota("OpenSea")
    Key().reads(busy, Use.PROOF, 1)
    await exchange(busy)
    async with transaction() as db:
        before = (await db.execute(text("SELECT xmin::text FROM market_limit"))).scalar_one()
    for quota in (idle, busy):
        await exchange(quota)
    async with transaction() as db:
        assert (await db.execute(text("SELECT xmin::text FROM market_limit"))).scalar_one() == before


async def test_a_window_that_is_over_says_nothing() -> None:
    one, other, key = Quota("OpenSea"), Quota("OpenSea"), Key()
    key.reads(one, Use.PROOF)
    await exchange(one)
    async with transaction() as db:
        await db.execute(text("UPDATE market_limit SET resets_at = now() - interval '1 second'"))
    await exchange(other)
    key.left = LIMIT
    assert key.reads(other, Use.PROOF, 3) == 3
