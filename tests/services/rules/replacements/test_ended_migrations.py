"""Migrations whose date has come end one server after the other, and never deadlock with changes of rules."""

import asyncio
from uuid import uuid4

import pytest
from sqlalchemy import text

from models import ContractMigration, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.rules import limits
from services.rules.replacements import contract_migrations
from tests.support.builders import a_member, a_server, address
from tests.support.statements import waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")


async def a_due_migration(db: AsyncSession) -> tuple[int, str]:
    """Store a server with a migration that is due, and a queued member; return its id and the member's key."""
    server = await a_server(db)
    server_id = server.id or 0
    member = await a_member(db, server, wallet=address())
    await queue.mark_member(db, server_id, member.discord_id, queue.SWEPT)
    due = ContractMigration(
        server_id=server_id, chain="base", contract=address(), new_chain="base", new_contract=address(), until=now(),
        rules={}, batch=uuid4(),
    )  # fmt: skip
    db.add(due)
    return server_id, f"{server_id}:{member.discord_id}"


async def end_due() -> int:
    async with transaction() as db:
        return await contract_migrations.end_due(db)


async def waits(task: asyncio.Task[int]) -> None:
    """Return once the task waits for a lock in the database, or is done."""
    async with asyncio.timeout(60):
        while not task.done() and not await waits_for_a_lock():
            await asyncio.sleep(0.01)


async def reconcile(first: str, last: str, began: asyncio.Event, go_on: asyncio.Event) -> None:
    """Lock these rows of the queue, the last one once `go_on` is set."""
    async with transaction() as db:
        await db.execute(LOCK, {"key": first})
        began.set()
        await go_on.wait()
        await db.execute(LOCK, {"key": last})


LOCK = text("SELECT 1 FROM due WHERE key = :key FOR UPDATE")


async def test_an_end_waits_for_no_change_of_another_servers_rules_while_it_holds_members() -> None:
    async with transaction() as db:
        (_, mine), (other, theirs) = await a_due_migration(db), await a_due_migration(db)
    began, go_on = asyncio.Event(), asyncio.Event()
    async with transaction() as admin:
        await limits.lock(admin, other)
        ending = asyncio.create_task(end_due())
        await waits(ending)
        reconciling = asyncio.create_task(reconcile(theirs, mine, began, go_on))
        await began.wait()
        go_on.set()
        await queue.mark_server(admin, other, queue.CHANGED)
    await reconciling
    assert await ending == 1
    assert (await end_due(), await end_due()) == (1, 0)
