"""Several workers of one process leave each other's claims and cursors alone."""

import asyncio

import pytest
from sqlalchemy import text

from jobs.reconciler import Reconciler
from models import AsyncSession, transaction
from services.core import queue
from services.core.queue import Claim
from services.core.queue.claims import LEASE
from services.core.queue.worker_names import is_dead, worker_name
from services.engine import reconcile
from services.runtime.task_cancellation import stop
from services.triggers import chain_cursor
from tests.services.core.test_queue import claimed, mark, rows
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")


async def test_a_worker_that_starts_leaves_the_claims_of_another_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Reconciler(asyncio.Event()), Reconciler(asyncio.Event())
    await mark(1, "5", queue.WAITING)
    assert [claim.discord_id for claim in await claimed(first.name)] == ["5"]
    await mark(1, "6", queue.WAITING)
    looked_at: list[Claim] = []

    async def parts(_db: AsyncSession, _outside: object, claims: list[Claim]) -> list[reconcile.BatchPart]:
        looked_at.extend(claims)
        seen.set()
        return []

    seen = asyncio.Event()
    monkeypatch.setattr(reconcile, "parts", parts)
    working = asyncio.create_task(second.run())
    try:
        await asyncio.wait_for(seen.wait(), LEASE.total_seconds() / 2)
    finally:
        await stop(working)
    assert [claim.discord_id for claim in looked_at] == ["6"]
    assert {row.key: row.claimed_by for row in await rows()} == {"1:5": first.name, "1:6": second.name}


async def test_a_follower_that_starts_leaves_the_chains_that_its_process_follows_alone() -> None:
    owner = worker_name()
    async with transaction() as db:
        await chain_cursor.claim(db, ["base"], owner)
        await chain_cursor.release_leases(db, is_dead)
        assert (await db.execute(text("SELECT owner FROM cursor"))).scalar_one() == owner


async def test_a_lease_with_much_time_left_is_read_once_and_not_written() -> None:
    async with transaction() as db:
        first = await chain_cursor.claim(db, ["base", "ethereum"], "a")
        with Statements() as statements:
            assert await chain_cursor.claim(db, ["base", "ethereum"], "a") == first
        assert statements.count == 1
        assert await chain_cursor.claim(db, ["base", "polygon"], "b") == {"polygon": first["base"]}
