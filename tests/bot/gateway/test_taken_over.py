"""Events that a process stores late, after it stood still and another process has taken its shard."""

import pytest
from sqlalchemy import text
from sqlmodel import select

from bot.events import Events
from bot.gateway.member_lists import ListIncomplete
from bot.gateway.shard_keeper import ShardKeeper
from models import Grant, Member, Server, transaction
from services.guilds.gateway import shards
from services.guilds.gateway.shards import BotProcess, ShardBeat, ShardPart
from services.guilds.members import MemberFacts
from tests.bot.test_events import SomeBot
from tests.jobs.conftest import product as product
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("product")
ME, OTHER, PART = BotProcess("here", 1, "me"), BotProcess("there", 1, "other"), ShardPart("1", 1)
ROLE = snowflake()


async def beats(process: BotProcess) -> ShardBeat:
    async with transaction() as db:
        return await shards.beat(db, process, PART, 1, (), None)


async def stands_still() -> None:
    async with transaction() as db:
        for statement in (
            "UPDATE shard SET held_until = now() - interval '1 minute'",
            "UPDATE bot_process SET seen_at = now() - interval '1 minute'",
        ):
            await db.execute(text(statement))


@pytest.fixture
async def keeper() -> ShardKeeper:
    """The keeper of this process, which has the bot's only shard."""
    made = ShardKeeper(None, ME, PART)
    made.count = 1
    assert (await beats(ME)).held == {0}
    return made


@pytest.fixture
def cog(keeper: ShardKeeper) -> Events:
    made = Events(SomeBot())  # pyright: ignore[reportArgumentType]
    made.turns.speaks_for = keeper.speaks_for
    return made


@pytest.fixture
async def member() -> Member:
    """A member with a wallet and a role of ours."""
    async with transaction() as db:
        server = await a_server(db)
        made = await a_member(db, server, roles=(ROLE,), wallet=address())
        await a_grant(db, made, await a_rule(db, server, ROLE))
        return made


async def guild_of(member: Member) -> int:
    async with transaction() as db:
        return int((await db.get_one(Server, member.server_id)).discord_id)


async def roles_of(member: Member) -> tuple[list[str], list[str]]:
    """Return the member's roles according to the stored member, and according to the ledger."""
    async with transaction() as db:
        stored = await db.get_one(Member, (member.server_id, member.discord_id))
        return stored.roles, list((await db.exec(select(Grant.role_id))).all())


async def test_one_who_has_come_back_does_not_leave_again_by_a_late_event(cog: Events, member: Member) -> None:
    """Otherwise the role that they got since is nobody's, and nothing takes it after a sale."""
    await stands_still()
    assert (await beats(OTHER)).held == {0}
    await cog.on_member_told(await guild_of(member), int(member.discord_id), None, False)
    assert await roles_of(member) == ([ROLE], [ROLE])


async def test_a_late_event_does_not_bring_former_roles_back(cog: Events, member: Member) -> None:
    await stands_still()
    assert (await beats(OTHER)).held == {0}
    facts, guild_id = MemberFacts(member.discord_id, "somebody", frozenset({ROLE, snowflake()})), await guild_of(member)
    await cog.on_member_told(guild_id, int(member.discord_id), facts, False)
    assert await roles_of(member) == ([ROLE], [ROLE])
    with pytest.raises(ListIncomplete):
        await cog.lists._write_part(guild_id, [facts])
    assert await roles_of(member) == ([ROLE], [ROLE]), "nor does a page of a list that was read before"


async def test_an_event_is_stored_while_nobody_else_has_the_shard(cog: Events, member: Member) -> None:
    await stands_still()
    await cog.on_member_told(await guild_of(member), int(member.discord_id), None, False)
    assert await roles_of(member) == ([], [])


async def test_what_came_before_a_shard_was_handed_over_is_still_stored(
    cog: Events, keeper: ShardKeeper, member: Member
) -> None:
    """The other process resumes after it."""
    keeper.handed_over.add(0)
    async with transaction() as db:
        await shards.release(db, ME, 1, [0])
    assert (await beats(OTHER)).held == {0}
    await cog.on_member_told(await guild_of(member), int(member.discord_id), None, False)
    assert await roles_of(member) == ([], [])
