"""An erasure waits for what is being written about the person, and never deadlocks with it."""

from datetime import timedelta

import pytest
from sqlmodel import select

from models import Breaker, Delegation, DelegationRead, Farewell, Grant, Rule, Sighting, Truce, User, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.core.actors import Actor
from services.privacy import erasure
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake
from tests.support.statements import Step, meet

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


@pytest.mark.parametrize("table", ["grant", "truce"])
async def test_an_erasure_waits_for_who_locks_several_rows_of_the_person_in_the_order_of_their_keys(table: str) -> None:
    lesser, greater = sorted((snowflake(), snowflake()))
    async with transaction() as db:
        member = await a_member(db, server := await a_server(db), wallet=address(), roles=(lesser, greater))
        for role_id in (greater, lesser):  # the table has them in this order
            grant = await a_grant(db, member, await a_rule(db, server, role_id))
            grant.gift_since = now()
            db.add(Truce(server_id=member.server_id, discord_id=member.discord_id, role_id=role_id))
            await db.flush()
    async with transaction() as db:
        user = (await db.exec(select(User))).one()

    async def forget(db: AsyncSession) -> None:
        await erasure.forget(db, Actor(user.id or 0, user.discord_id, user.username))

    def lock(role_id: str) -> Step:
        statement = f'SELECT 1 FROM "{table}" WHERE role_id = :role FOR UPDATE'
        return lambda db: db.execute(statement, {"role": role_id})

    await meet(forget, lock(lesser), lock(greater))
    async with transaction() as db:
        assert (await db.exec(select(Truce))).all() == []
        assert [one.gift_since for one in (await db.exec(select(Grant))).all()] == [None, None]


@pytest.mark.parametrize("table", ["rule", "breaker"])
async def test_the_end_of_several_erasures_waits_for_who_locks_rows_of_all_of_them_in_the_order_of_their_keys(
    table: str,
) -> None:
    """The person who asked first is named by the rows with the greater keys."""
    asked_at, people, roles = now(), [snowflake(), snowflake()], sorted((snowflake(), snowflake()))
    async with transaction() as db:
        server = await a_server(db)
        for who, role_id in zip(reversed(people), roles, strict=True):
            rule = await a_rule(db, server, role_id)
            rule.created_by = who
            db.add(
                Breaker(
                    server_id=server.id or 0, role_id=role_id, would_lose=6, holders=9, approved_by=who,
                    approved_at=asked_at,
                )
            )  # fmt: skip
        for after, who in enumerate(people):
            db.add(
                Farewell(discord_id=who, pseudonym=f"forgotten-{after}", asked_at=asked_at + timedelta(seconds=after))
            )

    async def finish(db: AsyncSession) -> None:
        assert await erasure.finish(db) == 2

    def lock(role_id: str) -> Step:
        statement = f"SELECT 1 FROM {table} WHERE role_id = :role FOR UPDATE"
        return lambda db: db.execute(statement, {"role": role_id})

    await meet(finish, lock(roles[0]), lock(roles[1]))
    async with transaction() as db:
        assert set((await db.exec(select(Rule.created_by))).all()) == {"forgotten-0", "forgotten-1"}
        assert set((await db.exec(select(Breaker.approved_by))).all()) == {"forgotten-0", "forgotten-1"}
