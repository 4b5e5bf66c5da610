"""Helpers that have rules counted and read the numbers."""

from typing import Any

from sqlalchemy import text

from jobs.census_taker import CensusTaker
from models import Reach, transaction
from services.collections.census import reach
from services.collections.census.reach import ReachView
from services.rules.expression import parse
from tests.jobs.town import Town

NOBODY = "0x" + "0b" * 20


def leaf(town: Town, **fields: Any) -> dict[str, Any]:
    return {"type": "basic", "chain": town.chain, "contract": town.contract, "minTokens": 1} | fields


async def asked(town: Town, document: dict[str, Any]) -> int:
    async with transaction() as db:
        return await reach.start(db, town.server_id, parse(document))


async def worked(steps: int = 1_000) -> None:
    taker = CensusTaker("test")
    for _ in range(steps):
        if not await taker.once():
            return


async def view(reach_id: int) -> ReachView:
    async with transaction() as db:
        return await reach.view(db, await db.get_one(Reach, reach_id))


async def numbers(town: Town, document: dict[str, Any]) -> ReachView:
    reach_id = await asked(town, document)
    await worked()
    return await view(reach_id)


async def forgotten() -> None:
    """Remove every stored count, as if nobody had asked for one."""
    async with transaction() as db:
        await db.execute(text("DELETE FROM census"))


async def stale() -> None:
    """Make every stored count too old to be used again."""
    async with transaction() as db:
        await db.execute(text("UPDATE census SET counted_at = counted_at - interval '1 hour'"))
