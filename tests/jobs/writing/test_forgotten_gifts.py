"""A person who asked to be forgotten keeps no role as a gift of an admin, whenever the admin decides."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlmodel import select

from gateways import gateways
from models import Breaker, Farewell, Grant, ServerMove, now, transaction
from services.core import audit
from services.core.queue import Claim
from services.engine import cases
from services.privacy import erasure
from services.roles.moves import lifecycle
from services.servers import breaker_review, undo
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants
from tests.jobs.writing.test_protection import admin


async def test_dismissed_removals_do_not_keep_a_role_for_the_forgotten(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    ada = await admin(town)
    async with engine():
        await town.prove("carol")
        await given(town)
        async with transaction() as db:
            db.add(Breaker(server_id=town.server_id, role_id=await town.role("Holder"), would_lose=6, holders=9))
        carol = await admin(town, "carol")
        async with transaction() as db:
            told = await erasure.forget(db, carol)
        assert [one.text for one in told.roles] == ["is taken once an admin of the server lets removals go on"]

        async def is_held_back() -> bool:
            return any(row.held_back_at is not None for row in await grants(town))

        await until(is_held_back)
        outside = gateways()
        async with transaction() as db:
            assert await breaker_review.decide(db, outside, ada, town.server_id, approve=False) == 1

        async def gone() -> bool:
            return not await town.has("carol", "Holder") and not await grants(town)

        await until(gone, 20)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    async with transaction() as db:
        assert await db.get(Farewell, town.people["carol"]["id"]) is None


@pytest.mark.parametrize("how", ["undo", "move"])
async def test_an_undo_keeps_no_role_for_the_forgotten(town: Town, how: str) -> None:
    rule_id = await town.rule("Holder")
    await town.prove("carol")
    carol, ada, role_id, batch = await admin(town, "carol"), await admin(town), await town.role("Holder"), uuid4()
    who = {"server_id": town.server_id, "role_id": role_id}
    async with transaction() as db:
        db.add(Grant(**who, discord_id=carol.discord_id, rule_ids=[rule_id], state="held", had_before=True))
        if how == "move":
            db.add(ServerMove(server_id=town.server_id, roles=[role_id], until=now() + timedelta(days=3)))
    async with transaction() as db:
        await erasure.forget(db, carol)
    async with transaction() as db:
        grant = (await db.exec(select(Grant))).one()
        if how == "undo":
            # What the worker does: the removal is in the outbox, one of another member is done.
            grant.state, grant.batch = "taking", batch
            line = audit.line("role.taken", server_id=town.server_id, subject="42", role_id=role_id, batch=batch)
            await audit.record(db, line)
        else:
            # The grace time of the rule runs for the forgotten, as the move does not keep the role for them.
            grant.no_since = now()
        db.add(grant)
    outside = gateways()
    async with transaction() as db:
        if how == "undo":
            await undo.undo(db, outside, ada, town.server_id, batch)
        else:
            await lifecycle.undo(db, outside, ada, town.server_id)
    async with transaction() as db:
        (case,) = await cases.load(db, [Claim(town.server_id, carol.discord_id, 0, 0, 0)])
    assert [one.gift for one in case.grants] == [False]
