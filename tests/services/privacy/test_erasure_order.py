"""An erasure waits for what is being written about the person, and never deadlocks with it."""

import pytest
from sqlmodel import select

from models import Delegation, DelegationRead, Sighting, User, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.core.actors import Actor
from services.privacy import erasure
from tests.support.builders import a_member, a_server, address
from tests.support.statements import meet

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    ("table", "gone"),
    [
        ("delegation_read", "true"),
        ("sighting", "true"),
        ("server", "owner_id IS NOT NULL OR protected_members <> '{}'"),
    ],
)
async def test_an_erasure_waits_for_who_writes_something_about_the_person_and_then_queues_them(
    table: str, gone: str
) -> None:
    wallet = address()
    async with transaction() as db:
        member = await a_member(db, server := await a_server(db), wallet=wallet)
        server.owner_id, server.protected_members = member.discord_id, [member.discord_id]
        db.add(Delegation(chain="base", delegate=wallet, vault=address(), contract="", token_id=""))
        db.add(DelegationRead(chain="base", delegate=wallet, block=1, endpoint=0, read_at=now()))
        db.add(Sighting(chain="base", address=wallet, block=1))
    async with transaction() as db:
        user = (await db.exec(select(User))).one()

    async def forget(db: AsyncSession) -> None:
        await erasure.forget(db, Actor(user.id or 0, user.discord_id, user.username))

    async def write(db: AsyncSession) -> None:
        await db.execute(f"SELECT 1 FROM {table} FOR UPDATE")

    async def mark(db: AsyncSession) -> None:
        await queue.mark_member(db, member.server_id, member.discord_id, queue.SEEN)

    await meet(forget, write, mark)
    async with transaction() as db:
        (left,) = await db.together((f"SELECT count(*) FROM {table} WHERE {gone}", {}))
    assert left == [(0,)]
