"""A guild like those of large communities, as REST and the gateway show it."""

from typing import Any

import httpx

from tests.sandbox.chains.nodes import Process
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.gateway.test_gateway import ready


async def made(discord: Outside, **more: Any) -> str:
    guild = await discord.control("guilds", action="create", guild="Rich", owner="ada", members=["carol"], **more)
    await discord.control("guilds", action="add_bot", guild="Rich")
    return guild["id"]


async def test_a_rich_guild_has_all_kinds_of_channels_and_roles(discord: Outside):
    guild = await made(discord, rich=True)
    listed = (await discord.bot("GET", f"/guilds/{guild}/channels")).json()
    channels = {channel["type"]: channel for channel in listed}
    assert set(channels) == {0, 2, 4, 5, 13, 15, 16}
    assert not {"topic", "nsfw", "last_message_id", "rate_limit_per_user"} & set(channels[4])
    assert "topic" not in channels[2]
    assert channels[15]["available_tags"][0]["emoji_name"] == "💸"
    roles = {role["name"]: role for role in (await discord.bot("GET", f"/guilds/{guild}/roles")).json()}
    assert {name: role["tags"] for name, role in roles.items() if name in ("Server Booster", "Linked Wallet")} == {
        "Server Booster": {"premium_subscriber": None},
        "Linked Wallet": {"guild_connections": None},
    }
    assert roles["Hologram"]["colors"]["tertiary_color"] == 16761760
    assert [name for name, role in roles.items() if role["managed"] and "subscription_listing_id" in role["tags"]] == [
        "Patron"
    ]
    members = (await discord.bot("GET", f"/guilds/{guild}/members?limit=10")).json()
    assert any(member["avatar"] for member in members)
    shown = (await discord.bot("GET", f"/guilds/{guild}")).json()
    assert ("COMMUNITY" in shown["features"], len(shown["emojis"]), len(shown["stickers"])) == (True, 2, 1)


async def test_the_gateway_tells_the_rest_of_a_rich_guild(discord: Outside):
    guild = await made(discord, rich=True, member_count=250_000)
    async with ready(discord) as (client, _):
        created = (await client.until("GUILD_CREATE"))["d"]
        while created["id"] != guild:
            created = (await client.until("GUILD_CREATE"))["d"]
    assert (created["member_count"], created["large"]) == (250_000, True)
    in_calls = [state["user_id"] for state in created["voice_states"]]
    assert [member["user"]["id"] for member in created["members"]] == [discord.settings["DISCORD_CLIENT_ID"], *in_calls]
    for name in ("threads", "voice_states", "stage_instances", "guild_scheduled_events", "soundboard_sounds"):
        assert created[name], name
    counted = (await discord.bot("GET", f"/guilds/{guild}?with_counts=true")).json()
    assert counted["approximate_member_count"] == 250_000


async def test_a_guild_becomes_rich_step_by_step_and_poor_again(discord: Outside):
    before = await discord.world()
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("guilds", action="enrich", guild=BASE)
        for event in ("GUILD_ROLE_CREATE", "CHANNEL_CREATE", "GUILD_UPDATE", "THREAD_CREATE"):
            await client.until(event)
        await discord.control("reset")
        assert (await client.until("GUILD_UPDATE"))["d"]["features"] == []
    assert await discord.world() == before


def test_a_rich_guild_outlives_the_sandbox(sandbox_process: Process):
    path = f"{sandbox_process.url}/discord/api/v10/guilds/{BASE}?with_counts=true"
    with httpx.Client(headers=sandbox_process.bot, trust_env=False) as bot:
        body = {"action": "enrich", "guild": BASE, "member_count": 9_000}
        assert bot.post(f"{sandbox_process.url}/control/guilds", json=body).status_code == 200
        before = bot.get(path).json()
        sandbox_process.kill()
        sandbox_process.start()
        assert bot.get(path).json() == before
    assert before["premium_tier"] == 3


async def test_a_message_goes_into_no_category_and_no_forum(discord: Outside):
    await discord.control("guilds", action="enrich", guild=BASE)
    channels = (await discord.bot("GET", f"/guilds/{BASE}/channels")).json()
    refusals = {0: None, 2: None, 4: 50008, 15: 40058, 16: 40058}
    for kind, code in refusals.items():
        place = next(channel["id"] for channel in channels if channel["type"] == kind)
        answer = await discord.bot("POST", f"/channels/{place}/messages", {"content": "gm"})
        assert (answer.status_code, answer.json().get("code")) == (200 if code is None else 400, code)
