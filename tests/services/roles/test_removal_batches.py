"""Which removals form one batch."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from models import Server, now, transaction
from services.core import audit
from services.core.event_kinds import Kind
from services.roles import removal_batches
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")


async def next_batch(server: Server, role: str) -> UUID:
    async with transaction() as db:
        return (await removal_batches.of_removals(db, [(server.id or 0, role)]))[server.id or 0, role]


async def taken(server: Server, role: str, batch: UUID, *, minutes_ago: int = 0, kind: Kind = "role.taken") -> None:
    async with transaction() as db:
        entry = audit.line(kind, server_id=server.id, role_id=role, batch=batch)
        await audit.record(db, entry | {"at": now() - timedelta(minutes=minutes_ago)})


async def a_role() -> tuple[Server, str]:
    async with transaction() as db:
        return await a_server(db), snowflake()


async def test_removals_of_one_role_within_ten_minutes_of_the_first_are_one_batch() -> None:
    (server, role), batch = await a_role(), uuid4()
    await taken(server, role, batch, minutes_ago=8)
    assert await next_batch(server, role) == batch
    assert await next_batch(server, snowflake()) != batch
    await taken(server, role, batch, minutes_ago=11)
    assert await next_batch(server, role) != batch, "it began too long ago"


async def test_a_batch_by_a_clock_that_was_ahead_takes_up_no_later_removals() -> None:
    (server, role), batch = await a_role(), uuid4()
    await taken(server, role, batch, minutes_ago=-2 * 60)
    assert await next_batch(server, role) != batch


async def test_what_is_being_taken_counts_and_what_was_undone_does_not() -> None:
    (server, _), batch = await a_role(), uuid4()
    async with transaction() as db:
        rule = await a_rule(db, server, snowflake())
        grant = await a_grant(db, await a_member(db, server), rule, state="taking")
        grant.batch, grant.intended_at = batch, now()
    assert await next_batch(server, rule.role_id) == batch
    await taken(server, rule.role_id, batch, kind="batch.undone")
    assert await next_batch(server, rule.role_id) != batch
