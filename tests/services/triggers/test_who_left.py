"""People who left and are read again in a sweep, because Discord may not have reported their return."""

from datetime import timedelta

import pytest

from models import Member, Server, now, transaction
from models.db.session import AsyncSession
from services.guilds import members_intent
from services.guilds.gateway import known_people
from services.health import provider_records
from services.triggers import member_rereads, sweep
from tests.support.builders import a_member, a_server, address
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")


async def who_left(db: AsyncSession, server: Server, *, left: float, read: float, wallet: bool = True) -> str:
    """Store a person who left and was read last so many days ago; return their id."""
    member = await a_member(db, server, wallet=address() if wallet else None)
    member.left_at, member.seen_at = now() - timedelta(days=left), now() - timedelta(days=read)
    db.add(member)
    await db.flush()
    return member.discord_id


async def sweeps() -> int:
    """Begin a sweep, and return how many statements it sends."""
    with Statements() as statements:
        async with transaction() as db:
            await sweep.start_sweep(db)
    return statements.count


async def to_read() -> list[str]:
    async with transaction() as db:
        return [one.discord_id for one in await member_rereads.never_read(db, 1_000)]


async def test_who_left_with_a_wallet_is_read_once_a_sweep_and_seldom_after_a_long_time() -> None:
    async with transaction() as db:
        server, without_bot = await a_server(db), await a_server(db, bot_invited=False)
        just_left = await who_left(db, server, left=0.1, read=3)
        yesterday = await who_left(db, server, left=2, read=1)
        long_ago = await who_left(db, server, left=20, read=6)
        for left, read in ((20, 4), (6, 1)):
            await who_left(db, server, left=left, read=read)
        await who_left(db, server, left=1, read=2, wallet=False)
        await who_left(db, without_bot, left=1, read=2)
        await a_member(db, server, wallet=address())
    assert await to_read() == []
    await sweeps()
    assert await to_read() == [just_left, yesterday, long_ago]
    async with transaction() as db:
        for one in await member_rereads.never_read(db, 1_000):
            await member_rereads.was_read(db, one)
    await sweeps()
    assert await to_read() == [], "each was read a moment ago"


@pytest.mark.parametrize(("members", "listed"), [(500, True), (23_000, True), (25_000, False)])
async def test_of_one_by_one_and_the_list_the_way_with_fewer_requests_is_taken(members: int, listed: bool) -> None:
    many = member_rereads.FEW + 2
    async with transaction() as db:
        small, server = await a_server(db), await a_server(db)
        server.member_count = members
        few = [await who_left(db, small, left=1, read=2) for _ in range(member_rereads.FEW)]
        gone = [await who_left(db, server, left=1, read=2) for _ in range(many)]
    await sweeps()
    async with transaction() as db:
        assert await known_people.to_list(db) == ([server.discord_id] if listed else [])
    assert set(await to_read()) == {*few, *(() if listed else gone)}


async def test_a_new_member_is_read_before_those_who_left() -> None:
    async with transaction() as db:
        server = await a_server(db)
        gone = await who_left(db, server, left=1, read=2)
    await sweeps()
    async with transaction() as db:
        new = await a_member(db, server)
        await member_rereads.met_elsewhere(db, "99", "new", [server.id or 0])
        assert (await db.get_one(Member, (server.id, new.discord_id))).left_at is None
    assert await to_read() == ["99", gone]


async def test_a_sweep_sends_as_many_statements_however_many_left() -> None:
    async with transaction() as db:
        server, other = await a_server(db), await a_server(db)
    before = await sweeps()
    async with transaction() as db:
        for number in range(30):
            await who_left(db, other if number % 5 else server, left=1, read=2)
    assert await sweeps() == before


async def test_without_the_intent_a_sweep_marks_nobody_because_everybody_is_read_anyway() -> None:
    async with transaction() as db:
        await who_left(db, await a_server(db), left=1, read=2)
        await provider_records.keep(db, [provider_records.bot_is(True, members_intent.NOT_ASKED)])
    await sweeps()
    assert await to_read() == []
