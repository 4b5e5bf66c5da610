"""Interactions outside of the bot's servers, frame by frame."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import BASE, CLUB, Outside
from tests.sandbox.discord.gateway.test_gateway import ready

APP, CAROL = "1160000000000000001", "1150000000000000303"


async def offered(discord: Outside, **more: Any) -> None:
    body = {"name": "help", "description": "What there is", **more}
    assert (await discord.bot("POST", f"/applications/{APP}/commands", body)).status_code == 201


async def used(discord: Outside, **body: Any) -> httpx.Response:
    body = {"user": "carol", "kind": "command", "name": "help", **body}
    return await discord.http.post("/control/interactions", json=body)


@pytest.mark.parametrize(
    ("context", "number", "owners", "channel"),
    [("bot_dm", 1, {"0": "0"}, 1), ("private_channel", 2, {"1": CAROL}, 3), ("guild", 0, {"1": CAROL}, 0)],
)
async def test_a_command_comes_from_where_the_bot_is_not(
    discord: Outside, context: str, number: int, owners: dict[str, str], channel: int
):
    await offered(discord)
    await discord.control("application", user_install=True)
    place = {"guild": CLUB} if context == "guild" else {}
    async with ready(discord) as (client, _):
        asking = asyncio.create_task(used(discord, context=context, **place))
        event = (await client.until("INTERACTION_CREATE"))["d"]
        assert (event["context"], event["authorizing_integration_owners"]) == (number, owners)
        assert event["channel"]["type"] == channel
        whose = event["member"]["user"] if context == "guild" else event["user"]
        assert (whose["id"], event.get("guild_id")) == (CAROL, place.get("guild"))
        assert ("member" in event, "guild" in event) == (context == "guild", context == "guild")
        answer = {"type": 4, "data": {"content": "Hello", "flags": 64 if context == "guild" else 0}}
        callback = f"/interactions/{event['id']}/{event['token']}/callback"
        assert (await discord.bot("POST", callback, answer)).status_code == 204
        assert (await asking).json()["messages"][0]["content"] == "Hello"


@pytest.mark.parametrize(
    ("command", "use"),
    [
        ({}, {"context": "moon"}),
        ({}, {"context": "bot_dm", "kind": "button"}),
        ({"contexts": [0]}, {"context": "bot_dm"}),
        ({}, {"context": "guild", "guild": BASE}),
        ({}, {"context": "private_channel"}),
    ],
)
async def test_what_discord_would_not_offer_is_refused(discord: Outside, command: dict[str, Any], use: dict[str, Any]):
    await offered(discord, **command)
    answer = await used(discord, **use)
    assert 400 <= answer.status_code < 500
    assert answer.json()["message"]
