"""A role that was not given yet and that no rule gives any more is not given because the breaker stopped removals."""

import pytest

from gateways import gateways
from models import Breaker, transaction
from services.servers import held_back
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import grants
from tests.jobs.writing.test_protection import admin


@pytest.mark.parametrize("dismissed", [False, True])
async def test_a_tripped_breaker_gives_nobody_a_role_that_no_rule_gives(
    town: Town, engine: Engine, dismissed: bool
) -> None:
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="set_pending", pending=True)
    await town.see()
    token = await town.buys("carol")
    await town.rule("Holder")
    ada = await admin(town)
    async with engine():
        await town.prove("carol")

        async def intended() -> bool:
            return [row.state for row in await grants(town)] == ["giving"]

        await until(intended)
        async with transaction() as db:
            db.add(Breaker(server_id=town.server_id, role_id=await town.role("Holder"), would_lose=6, holders=9))
        await town.sells(token)
        await town.look()

        async def decided() -> bool:
            rows = await grants(town)
            return not rows or rows[0].held_back_at is not None or rows[0].state != "giving"

        await until(decided)
        assert not await town.has("carol", "Holder")
        if dismissed:
            outside = gateways()
            async with transaction() as db:
                await held_back.dismiss(db, outside, ada, town.server_id)
        await town.call("members", **carol, action="set_pending", pending=False)
        await town.see()
        await town.look()
        # What comes after it in the outbox is done.
        await town.buys("dave")
        await town.prove("dave")
        await until(lambda: town.has("dave", "Holder"))
        assert not await town.has("carol", "Holder")
