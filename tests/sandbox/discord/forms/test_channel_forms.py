"""Discord's refusals of channels and overwrites, and what happens to channels."""

from typing import Any

import pytest

from sandbox.discord.world.permissions import MANAGE_ROLES
from sandbox.discord.world.seed import BOT_PERMISSIONS
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.forms.test_message_forms import GENERAL, LONG, place_of
from tests.sandbox.discord.gateway.test_gateway import ready

CHANNELS: dict[str, tuple[dict[str, Any], str]] = {
    "forum in a server that is not a community": ({"type": 15}, "type"),
    "unknown type": ({"type": 1}, "type"),
    "no name": ({"name": ""}, "name"),
    "name over 100": ({"name": LONG}, "name"),
    "parent that is not a category": ({"parent_id": str(int(BASE) + 100)}, "parent_id"),
    "parent that is not there": ({"parent_id": "5"}, "parent_id"),
    "slowmode over 21600": ({"rate_limit_per_user": 99_999}, "rate_limit_per_user"),
    "topic over 1024": ({"topic": "x" * 1025}, "topic"),
    "same bit allowed and denied": (
        {"permission_overwrites": [{"id": BASE, "type": 0, "allow": "1024", "deny": "1024"}]},
        "permission_overwrites.0",
    ),
    "overwrite without id": ({"permission_overwrites": [{"type": 0}]}, "permission_overwrites.0.id"),
}


@pytest.mark.parametrize("case", CHANNELS)
async def test_a_channel_that_discord_refuses(discord: Outside, case: str):
    body, path = CHANNELS[case]
    before = (await discord.bot("GET", f"/guilds/{BASE}/channels")).json()
    place_of(await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "new", **body}), path)
    assert (await discord.bot("GET", f"/guilds/{BASE}/channels")).json() == before


async def test_an_overwrite_is_for_somebody_who_is_there(discord: Outside):
    overwrites = [{"id": "5", "type": 1, "allow": "1024"}]
    body = {"name": "new", "permission_overwrites": overwrites}
    answer = await discord.bot("POST", f"/guilds/{BASE}/channels", body)
    assert (answer.status_code, answer.json()["code"]) == (404, 10013)
    overwrites[0]["type"] = 0
    assert (await discord.bot("POST", f"/guilds/{BASE}/channels", body)).json()["code"] == 10011


async def test_a_channel_stands_in_a_category(discord: Outside):
    made = (await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "Place", "type": 4})).json()
    inside = {"name": "In It", "parent_id": made["id"]}
    answer = (await discord.bot("POST", f"/guilds/{BASE}/channels", inside)).json()
    assert (answer["parent_id"], answer["name"]) == (made["id"], "in-it")
    out = await discord.bot("PATCH", f"/channels/{answer['id']}", {"parent_id": None})
    assert out.json()["parent_id"] is None


async def test_a_whole_number_may_come_as_text(discord: Outside):
    """Discord "accepts strings for int fields if they are parseable as ints" (README of discord/discord-api-spec)."""
    body = {"name": "new", "position": "3", "rate_limit_per_user": "5"}
    made = await discord.bot("POST", f"/guilds/{BASE}/channels", body)
    assert made.status_code == 201, made.text
    assert (made.json()["position"], made.json()["rate_limit_per_user"]) == (3, 5)
    for wrong in ("5.0", "five", "", " 5", "²", "21601"):
        place_of(await discord.bot("PATCH", GENERAL, {"rate_limit_per_user": wrong}), "rate_limit_per_user")
    second = {"flags": str(1 << 15), "components": [{"type": 10, "content": "Words"}]}
    posted = await discord.bot("POST", f"{GENERAL}/messages", second)
    assert posted.status_code == 200, posted.text
    assert posted.json()["flags"] == 1 << 15


async def test_channels_stay_when_their_category_is_deleted(discord: Outside):
    made = (await discord.bot("POST", f"/guilds/{BASE}/channels", {"name": "Place", "type": 4})).json()["id"]
    inside = {"name": "inside", "parent_id": made}
    channel = (await discord.bot("POST", f"/guilds/{BASE}/channels", inside)).json()["id"]
    async with ready(discord) as (client, _):
        assert (await discord.bot("DELETE", f"/channels/{made}")).status_code == 200
        told = (await client.until("CHANNEL_UPDATE"))["d"]
    assert (told["id"], told["parent_id"]) == (channel, None)
    assert (await discord.bot("GET", f"/channels/{channel}")).json()["parent_id"] is None


async def test_overwrites_are_changed_with_manage_roles_alone(discord: Outside):
    everyone = {"id": BASE, "type": 0, "allow": "0", "deny": "2048"}
    assert (await discord.bot("PATCH", GENERAL, {"permission_overwrites": [everyone]})).status_code == 200
    without = str(BOT_PERMISSIONS & ~MANAGE_ROLES)
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=without)
    for overwrites, status in (([everyone], 200), ([], 403)):
        answer = await discord.bot("PATCH", GENERAL, {"nsfw": True, "permission_overwrites": overwrites})
        assert answer.status_code == status, answer.text
    assert answer.json()["code"] == 50013
    assert (await discord.bot("GET", GENERAL)).json()["permission_overwrites"] == [everyone]
