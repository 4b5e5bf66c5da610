"""A guild has one row, whether the bot joins it or an admin adds it with the form, even at the same time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlmodel import select

from gateways import gateways
from gateways.discord.types import UserGuild
from models import Event, Server, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.guilds import permissions
from services.guilds.gateway import known_guilds
from services.guilds.members import MemberFacts
from services.servers import servers
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts
from tests.support.statements import waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")
GUILD, OWNER, BOT = "900000000000000001", "900000000000000002", "900000000000000003"


@pytest.fixture(autouse=True)
def own_guild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord lists the guild as the owner's only one."""

    async def own_guilds(*_: object, **__: object) -> list[UserGuild]:
        return [UserGuild(GUILD, "Guild", None, owner=True, permissions=0)]

    monkeypatch.setattr(permissions, "own_guilds", own_guilds)


async def the_bot_joins(db: AsyncSession) -> None:
    """Report the guild as the gateway does."""
    facts = GuildFacts(GUILD, "Guild", None, OWNER, BOT, (), (MemberFacts(BOT, "bot", frozenset()),), member_count=7)
    await gateway_events.guild_available(db, facts)


async def an_admin_adds_it(db: AsyncSession) -> None:
    """Add the guild with the form."""
    await servers.add(db, gateways(), Actor(1, OWNER, "owner"), GUILD, "Guild", None, "about us")


async def beside(
    early: Callable[[AsyncSession], Awaitable[None]], late: Callable[[AsyncSession], Awaitable[None]]
) -> None:
    """Run `late` while the transaction of `early` is open; it ends once `late` waits for it."""

    async def second() -> None:
        async with transaction() as db:
            await late(db)

    async with transaction() as db:
        await early(db)
        running = asyncio.create_task(second())
        async with asyncio.timeout(60):
            while not await waits_for_a_lock():
                assert not running.done(), running
                await asyncio.sleep(0.01)
    await running


@pytest.mark.parametrize(
    ("early", "late", "kinds"),
    [
        (an_admin_adds_it, the_bot_joins, ["server.added", "bot.joined"]),
        (the_bot_joins, an_admin_adds_it, ["bot.joined", "server.added"]),
        (an_admin_adds_it, an_admin_adds_it, ["server.added", "server.added"]),
    ],
    ids=["added, then joined", "joined, then added", "added by a double click"],
)
async def test_a_guild_that_is_inserted_twice_at_a_time_has_one_row_with_what_both_know(
    early: Callable[[AsyncSession], Awaitable[None]], late: Callable[[AsyncSession], Awaitable[None]], kinds: list[str]
) -> None:
    await beside(early, late)
    async with transaction() as db:
        (server,) = (await db.exec(select(Server))).all()
        lines = (await db.exec(select(Event.kind).order_by(Event.id))).all()  # pyright: ignore[reportArgumentType]
    assert (server.description, server.owner_id) == ("about us", OWNER)
    assert (server.bot_invited, server.member_count) == ((True, 7) if "bot.joined" in kinds else (False, 0))
    assert list(lines) == kinds


async def test_a_new_row_has_the_same_values_as_one_of_the_table_s_class() -> None:
    async with transaction() as db:
        made = await known_guilds.ensure_server(db, GUILD, "Guild")
        expected = Server(id=made.id, discord_id=GUILD, name="Guild", created_at=made.created_at)
        assert made == expected
