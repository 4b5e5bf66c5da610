"""A member who agrees to something and withdraws it, again and again."""

import asyncio

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from models import Event, Member, MemberChoice, User, transaction
from services.core.actors import Actor
from services.core.errors import TooMany
from services.privacy import preferences
from services.runtime import rate_limits
from tests.support.builders import a_member, a_server, address

pytestmark = pytest.mark.usefixtures("database")


async def test_nobody_has_roles_come_and_go_all_day_and_withdrawing_is_always_possible() -> None:
    async with transaction() as db:
        server, elsewhere = await a_server(db), await a_server(db)
        member = await a_member(db, server, wallet=address())
        db.add(Member(server_id=elsewhere.id or 0, discord_id=member.discord_id, name="somebody"))
        user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
    actor, server_id, agreed = Actor(user.id or 0, user.discord_id, user.username), server.id or 0, 0
    for _ in range(3 * rate_limits.CHOICES):
        async with transaction() as db:
            await preferences.choose(db, actor, server_id, use_wallets=False, share_wallets=False)
        try:
            async with transaction() as db:
                await preferences.choose(db, actor, server_id, use_wallets=True, share_wallets=True)
            agreed += 1
        except TooMany:
            pass
    assert rate_limits.CHOICES <= agreed < 3 * rate_limits.CHOICES
    async with transaction() as db:
        await preferences.choose(db, actor, server_id, use_wallets=False, share_wallets=False)
        (row,) = (await db.exec(select(MemberChoice).where(MemberChoice.server_id == server_id))).all()
        assert (row.use_wallets, row.share_wallets) == (False, False)
        lines = await db.exec(select(Event.id).where(Event.kind == "member.chose", col(Event.server_id) == server_id))
        assert len(lines.all()) <= 2 * agreed + 1
        await preferences.choose(db, actor, elsewhere.id or 0, share_wallets=True)


async def test_two_choices_at_once_are_both_kept() -> None:
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=address())
        user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
    actor, server_id = Actor(user.id or 0, user.discord_id, user.username), server.id or 0
    async with transaction() as db:
        await preferences.choose(db, actor, server_id, share_wallets=True)

    async def use_none() -> None:
        async with transaction() as db:
            await preferences.choose(db, actor, server_id, use_wallets=False)

    async with transaction() as db:
        await preferences.choose(db, actor, server_id, share_wallets=False)
        other = asyncio.create_task(use_none())
        async with asyncio.timeout(60):
            while not (await db.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))).scalar_one():
                await asyncio.sleep(0.05)
    await other
    async with transaction() as db:
        row = (await db.exec(select(MemberChoice))).one()
    assert (row.use_wallets, row.share_wallets) == (False, False)
