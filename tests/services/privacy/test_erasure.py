"""Farewells of many people: those that cannot end cost one read, and some of the others end at a time."""

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Farewell, Member, MemberChoice, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.guilds.gateway import known_people
from services.privacy import erasure, payouts
from tests.support.builders import a_grant, a_member, a_rule, a_server, address
from tests.support.statements import Statements


async def somebody(db: AsyncSession, *, roles: int) -> Actor:
    """Store a person with a wallet, and with roles that paused rules keep."""
    server = await a_server(db)
    member = await a_member(db, server, wallet=address())
    for number in range(roles):
        await a_grant(db, member, await a_rule(db, server, str(7001 + number), state="paused"))
    user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
    return Actor(user.id or 0, user.discord_id, user.username)


async def test_people_whose_roles_stay_are_read_once_and_not_locked(database: str) -> None:
    async with transaction() as db:
        people = [await somebody(db, roles=1) for _ in range(20)]
        for one in people:
            await erasure.forget(db, one)
    async with transaction() as db:
        assert await erasure.finish(db) == 0
        assert (await db.exec(select(Farewell).where(col(Farewell.renamed_at).is_(None)))).all() == []
    async with transaction() as db:
        with Statements() as statements:
            assert await erasure.finish(db) == 0
        assert statements.count == 1
        async with transaction() as other:
            locked = await other.execute(text("SELECT 1 FROM farewell FOR UPDATE NOWAIT"))
            assert len(locked.all()) == len(people)


async def test_a_member_who_was_forgotten_and_stays_is_stored_no_longer(database: str) -> None:
    async with transaction() as db:
        person, other = await somebody(db, roles=0), await somebody(db, roles=0)
        await db.execute(text("UPDATE member SET met_at = now()"))
        await erasure.forget(db, person)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    async with transaction() as db:
        server = 0
        while (server := (await known_people.forget_strangers(db, server))[0]) != 0:
            pass
        assert (await db.exec(select(Member.discord_id))).all() == [other.discord_id]


async def test_of_many_people_some_are_forgotten_at_a_time(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "PEOPLE_AT_ONCE", 2)
    async with transaction() as db:
        for _ in range(5):
            await erasure.forget(db, await somebody(db, roles=0))
    ended = list[int]()
    for _ in range(4):
        async with transaction() as db:
            ended.append(await erasure.finish(db))
    assert ended == [2, 2, 1, 0]


async def test_somebody_who_is_forgotten_while_a_payout_list_is_written_is_not_on_it(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(2):
            member = await a_member(db, server, wallet=address())
            user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
            wallet = (await db.exec(select(Wallet).where(Wallet.user_id == user.id))).one()
            db.add(MemberChoice(server_id=server.id or 0, user_id=user.id or 0, payout_wallet_id=wallet.id))
    admin = Actor(0, "1", "admin")
    async with transaction() as db:
        gone, stays = await payouts.page(db, server.id or 0, "", 10)
        async with transaction() as other:
            await erasure.forget(other, Actor(gone.user_id, gone.discord_id, "somebody"))
        rows = await payouts.body(db, admin, server.id or 0, [gone, stays], None)
    assert (gone.address in rows, stays.address in rows) == (False, True)


async def test_forgetting_reads_no_line_of_the_log_about_others(database: str) -> None:
    async with transaction() as db:
        await db.execute(text("""
            INSERT INTO event (at, kind, subject, actor, data)
            SELECT now(), 'user.signed_in', 'somebody ' || n, 'somebody ' || n, '{}' FROM generate_series(1, 5000) n
        """))  # fmt: skip
        await db.execute(text("ANALYZE event"))
        filled = (await db.execute(text("SELECT DISTINCT CAST(tableoid::regclass AS text) FROM event"))).scalars().all()
        values = {"who": "300", "pseudonym": "forgotten-1", "before": now(), "most": 10}
        for statement in erasure._LINES:
            plan = (await db.execute(text(f"EXPLAIN {statement}"), values)).scalars().all()
            # A month without lines needs no reading.
            assert not [line for line in plan if "Seq Scan" in line and any(one in line for one in filled)], plan
