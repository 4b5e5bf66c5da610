"""Discord's refusals about a guild's channels count against that guild, and stop no other guild's requests."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gateways.discord.invalid_requests import GUILD_ALLOWED, GuildRests
from gateways.discord.rest import Discord
from gateways.discord.types import MissingAccess, MissingPermissions
from tests.gateways.discord.test_rest import GUILD, ROLE, USER, done, refuses, role, says
from tests.gateways.wire import Wire

CHANNELS = [str(600_000_000_000_000_000 + number) for number in range(2 * GUILD_ALLOWED)]


def a_channel(number: str) -> dict[str, object]:
    return {"id": number, "guild_id": GUILD, "name": "a-channel", "type": 0, "topic": None, "permission_overwrites": []}


@pytest.fixture
async def discord(server: Wire) -> AsyncIterator[Discord]:
    client = Discord(f"{server.url}/api/v10", "secret", "http://localhost:3000", deadline=3.0)
    yield client
    await client.close()


async def refused_posts(discord: Discord, channels: list[str]) -> int:
    """Return how many of these posts Discord refused before our own client refused them."""
    for count, channel in enumerate(channels):
        try:
            await discord.post_message(channel, {}, "1")
        except GuildRests:
            return count
        except (MissingAccess, MissingPermissions):
            continue
    return len(channels)


async def test_a_guild_whose_channels_refuse_too_much_rests_alone(discord: Discord, server: Wire) -> None:
    server.answers = [says([a_channel(number) for number in CHANNELS])]
    await discord.channels(GUILD)
    server.answers = [refuses(403, 50013, "Missing Permissions")]
    assert await refused_posts(discord, CHANNELS) == GUILD_ALLOWED
    assert discord.refusals.untold_guilds == {GUILD: GUILD_ALLOWED}
    for sending in (
        discord.create_channel(GUILD, "name", "topic", (), "Set up"),
        discord.edit_message(CHANNELS[0], USER, {}),
        discord.recent_messages(CHANNELS[1]),
        discord.add_role(GUILD, USER, ROLE, "Holds what the rule asks for"),
    ):
        with pytest.raises(GuildRests):
            await sending
    server.answers = [done()]
    await discord.add_role("197038439483310999", USER, ROLE, "Holds what the rule asks for")
    server.answers = [says([role(GUILD, "@everyone"), role(ROLE, "Holder")])]
    assert await discord.roles(GUILD), "what is right is still read at screens"


async def test_a_channel_of_an_unknown_guild_is_paused_alone(discord: Discord, server: Wire) -> None:
    server.answers = [web.json_response({"code": 50001, "message": "Missing Access"}, status=403)]
    assert await refused_posts(discord, GUILD_ALLOWED * CHANNELS[:1] + CHANNELS[:1]) == GUILD_ALLOWED
