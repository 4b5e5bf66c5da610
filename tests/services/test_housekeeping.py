"""What is let go of by itself, and when."""

from datetime import timedelta

from sqlmodel import select

from models import Member, now, transaction
from services import housekeeping
from tests.builders import a_member, a_server


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
