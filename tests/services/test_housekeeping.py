"""What is let go of by itself, and when."""

from datetime import timedelta

from sqlmodel import select

from models import Delegation, DelegationRead, Member, now, transaction
from services import housekeeping
from tests.builders import a_member, a_server, address


async def test_members_who_left_are_forgotten_after_thirty_days(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        here, lately, long_ago = [await a_member(db, server) for _ in range(3)]
        lately.left_at, long_ago.left_at = now() - timedelta(days=29), now() - timedelta(days=31)
        db.add_all([lately, long_ago])
    async with transaction() as db:
        await housekeeping.clear_expired(db)
    async with transaction() as db:
        kept = set((await db.exec(select(Member.discord_id))).all())
    assert kept == {here.discord_id, lately.discord_id}


async def test_delegations_are_kept_as_long_as_the_wallet_is_somebodys(database: str) -> None:
    async with transaction() as db:
        kept, gone = address(), address()
        await a_member(db, await a_server(db), wallet=kept)
        for one in (kept, gone):
            db.add(Delegation(chain="base", delegate=one, vault=address(), contract="", token_id=""))
            db.add(DelegationRead(chain="base", delegate=one, block=7, endpoint=0))
    async with transaction() as db:
        await housekeeping.clear_expired(db)
    async with transaction() as db:
        assert [one.delegate for one in (await db.exec(select(Delegation))).all()] == [kept]
        assert [one.delegate for one in (await db.exec(select(DelegationRead))).all()] == [kept]
