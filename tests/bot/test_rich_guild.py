"""The bot in a guild like those of large communities, with its role where Discord puts it."""

from typing import Any

import pytest
from sqlmodel import select

from gateways import gateways
from models import Member, Server, transaction
from services.core.actors import Actor
from services.guilds import role_safety
from services.health import server_health
from tests.bot.acquaintance import is_
from tests.bot.test_faulty_answers import COMMANDS, commands_of
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]


@pytest.fixture
async def rich(discord: Outside) -> str:
    """The id of a rich guild with the bot in it, whose role is above all plain ones."""
    made = await discord.control(
        "guilds", action="create", guild="Rich", owner="ada", members=["carol", "dave"], rich=True, member_count=250_000
    )
    await discord.control("guilds", action="add_bot", guild="Rich")
    return made["id"]


async def known(guild: str) -> set[str]:
    """Return the names of the members stored there."""
    async with transaction() as db:
        found = await db.exec(
            select(Member.name).join(Server).where(Server.discord_id == guild)  # pyright: ignore[reportArgumentType]
        )
        return set(found.all())


async def health(guild: str) -> Any:
    async with transaction() as db:
        row = (await db.exec(select(Server).where(Server.discord_id == guild))).one()
        return await server_health.view(db, gateways(), Actor(0, row.owner_id or "", "ada"), row.id or 0)


async def test_the_bot_is_ready_in_a_rich_guild_and_sets_it_up(discord: Outside, rich: str, living: None) -> None:
    await is_(lambda: known(rich), {"Ada", "Carol", "Dave", "HoldfastBot"})
    await is_(lambda: commands_of(discord), COMMANDS)
    body = {"guild": "Rich", "user": "ada", "kind": "command", "name": "setup"}
    said = (await discord.http.post("/control/interactions", json=body, timeout=30)).json()
    assert said["messages"][0]["embeds"][0]["title"] == "The verification channel is ready"
    seen = await health(rich)
    assert (seen.bot.state, seen.permissions.state, seen.role_order.state) == ("good", "good", "good")


@pytest.mark.parametrize(
    ("role", "cause"),
    [
        ("Server Booster", "managed"),
        ("Rival Bot", "managed"),
        ("Twitch Subscriber", "managed"),
        ("Patron", "managed"),
        ("Linked Wallet", "linked"),
        ("Sunset", None),
        ("Hologram", None),
    ],
)
async def test_roles_that_discord_gives_are_told_apart_from_roles_with_many_colours(
    discord: Outside, product: None, rich: str, role: str, cause: str | None
) -> None:
    guild = await gateways().discord.guild(rich)
    me = await gateways().discord.me()
    own = await gateways().discord.member(rich, me.id)
    bot = role_safety.standing(rich, guild.owner_id, guild.roles, me.id, own.roles)
    found = next(one for one in guild.roles if one.name == role)
    refused = role_safety.judge(found, rich, bot)
    assert (refused.cause if refused else None) == cause
