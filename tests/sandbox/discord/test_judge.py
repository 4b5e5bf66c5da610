"""Traffic with the sandbox's Discord checked against Discord's own description, if that judge is installed."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.sandbox.conftest import BASE, CALLBACK, CLUB, COLLECTOR, FOUNDER, HOLDER, Outside, role_of
from tests.sandbox.discord.forms.test_message_forms import RIGHT

JUDGE = os.environ.get("DISCORD_JUDGE", "")
CAROL, APP = "1150000000000000303", "1160000000000000001"


async def roles_and_members(discord: Outside) -> None:
    guild = f"/guilds/{BASE}"
    role = (await discord.bot("POST", f"{guild}/roles", {"name": "VIP", "colors": {"primary_color": 255}})).json()["id"]
    await discord.bot("PATCH", f"{guild}/roles/{role}", {"name": "V", "permissions": "1024"})
    await discord.bot("PATCH", f"{guild}/roles", [{"id": role, "position": 2}])
    for path in ("", "/roles", f"/roles/{role}", "/roles/member-counts", "/channels", f"/members/{CAROL}"):
        await discord.bot("GET", guild + path)
    await discord.bot("GET", guild, params={"with_counts": "true"})
    await discord.bot("GET", f"{guild}/members", params={"limit": 5, "after": "0"})
    await discord.bot("GET", f"{guild}/members/search", params={"query": "ca", "limit": 5})
    for method in ("PUT", "DELETE"):
        await discord.bot(method, f"{guild}/members/{CAROL}/roles/{role}")
    await discord.bot("PUT", f"{guild}/members/{CAROL}/roles/{role_of(BASE, FOUNDER)}")
    await discord.bot("PATCH", f"{guild}/members/{CAROL}", {"roles": [role_of(BASE, HOLDER), role_of(BASE, COLLECTOR)]})
    await discord.bot("PATCH", f"{guild}/members/@me", {"nick": "Bot"})
    await discord.bot("DELETE", f"{guild}/roles/{role}")
    await discord.bot("GET", f"{guild}/members/1")
    await discord.bot("GET", f"{guild}/members/{CAROL}x")
    await discord.bot("GET", f"{guild}/audit-logs")
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions="8")
    await discord.bot("GET", f"{guild}/audit-logs", params={"limit": 100})
    for _ in range(11):
        await discord.bot("PUT", f"{guild}/members/{CAROL}/roles/{role_of(BASE, HOLDER)}")


async def channels_and_messages(discord: Outside) -> None:
    overwrite = {"id": BASE, "type": 0, "allow": "1024", "deny": "2048"}
    own = {"id": APP, "type": 1, "allow": "2048"}
    body = {"name": "verify", "type": 0, "topic": "Here", "permission_overwrites": [overwrite, own]}
    channel = f"/channels/{(await discord.bot('POST', f'/guilds/{BASE}/channels', body)).json()['id']}"
    await discord.bot("PATCH", channel, {"topic": "There"})
    button = {"type": 2, "style": 1, "label": "Verify", "custom_id": "verify", "emoji": {"name": "✅"}}
    select = {"type": 3, "custom_id": "chain", "options": [{"label": "Base", "value": "base"}]}
    rows = [{"type": 1, "components": [button]}, {"type": 1, "components": [select]}]
    embed = {
        "title": "T",
        "description": "D",
        "color": 255,
        "fields": [{"name": "n", "value": "v"}],
        "footer": {"text": "f"},
    }
    said = {"content": "Hello", "embeds": [embed], "components": rows, "allowed_mentions": {"parse": []}}
    message = (await discord.bot("POST", f"{channel}/messages", said)).json()["id"]
    for right in RIGHT.values():
        await discord.bot("POST", f"{channel}/messages", right)
    container = {"type": 17, "components": [{"type": 10, "content": "# Hi"}, {"type": 14}]}
    await discord.bot("POST", f"{channel}/messages", {"flags": 32768, "components": [container]})
    await discord.bot("POST", f"{channel}/messages", {"content": ""})
    await discord.bot("POST", f"{channel}/messages", {"content": f"Hello, <@{CAROL}>"})
    await discord.control("messages", guild=BASE, user="carol", content="Hello, all")
    await discord.bot("GET", f"/channels/{int(BASE) + 100}/messages")
    await discord.bot("PATCH", f"{channel}/messages/{message}", {"content": "Changed"})
    await discord.bot("GET", f"{channel}/messages/{message}")
    await discord.bot("GET", f"{channel}/messages", params={"limit": 2})
    await discord.bot("DELETE", f"{channel}/messages/{message}")
    await discord.bot("PUT", f"{channel}/permissions/{CAROL}", {"type": 1, "allow": "1024"})
    await discord.bot("DELETE", f"{channel}/permissions/{CAROL}")
    await discord.bot("GET", channel)
    await discord.bot("DELETE", channel)
    await discord.bot("GET", channel)


async def commands(discord: Outside) -> None:
    option = {"type": 3, "name": "word", "description": "A word", "choices": [{"name": "A", "value": "a"}]}
    verify = {"name": "verify", "description": "Prove a wallet", "options": [option], "contexts": [0], "type": 1}
    for base in (f"/applications/{APP}/commands", f"/applications/{APP}/guilds/{BASE}/commands"):
        command = (await discord.bot("POST", base, verify)).json()["id"]
        await discord.bot("POST", base, {**verify, "default_member_permissions": "32"})
        await discord.bot("GET", f"{base}/{command}")
        await discord.bot("PATCH", f"{base}/{command}", {"description": "Changed"})
        await discord.bot("DELETE", f"{base}/{command}")
        await discord.bot("PUT", base, [verify])
        await discord.bot("GET", base)
    await discord.bot("GET", f"/applications/{APP}/guilds/{CLUB}/commands")


async def the_caller(discord: Outside) -> None:
    scope = "identify guilds guilds.members.read"
    tokens = await discord.signed_in("carol", scope)
    bearer = f"Bearer {tokens['access_token']}"
    for path in ("/users/@me", "/users/@me/guilds", f"/users/@me/guilds/{BASE}/member", "/oauth2/@me"):
        await discord.rest("GET", path, bearer)
    await discord.rest("GET", "/users/@me/guilds", bearer, params={"with_counts": "true", "limit": 1})
    mine = ("/users/@me", f"/users/{CAROL}", "/users/@me/guilds", "/gateway", "/gateway/bot", "/applications/@me")
    for path in (*mine, "/oauth2/applications/@me", "/users/5", f"/guilds/{CLUB}"):
        await discord.bot("GET", path)
    await discord.rest("GET", "/users/@me", "Bot wrong")
    fresh = await discord.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    await discord.token(grant_type="authorization_code", code="wrong", redirect_uri=CALLBACK)
    await discord.token("/oauth2/token/revoke", token=fresh.json()["access_token"])


async def a_rich_guild(discord: Outside) -> None:
    made = await discord.control("guilds", action="create", guild="Rich", owner="ada", members=["carol"], rich=True)
    await discord.control("guilds", action="add_bot", guild="Rich")
    guild = f"/guilds/{made['id']}"
    # The description does not list media channels (16), though they exist.
    world = await discord.guild(made["id"])
    media = next(channel["id"] for channel in world["channels"] if channel["name"] == "gallery")
    await discord.bot("DELETE", f"/channels/{media}")
    discord.recorded.pop()
    for path in ("", "/roles", "/channels", "/members/@me", f"/members/{CAROL}"):
        await discord.bot("GET", guild + path)
    await discord.bot("GET", f"{guild}/members", params={"limit": 5})
    for channel in (await discord.bot("GET", f"{guild}/channels")).json():
        await discord.bot("GET", f"/channels/{channel['id']}")


async def an_interaction(discord: Outside) -> None:
    """Use a command whose answer is written by hand: deferred, edited, followed up, deleted."""
    await discord.bot("POST", f"/applications/{APP}/commands", {"name": "verify", "description": "Prove a wallet"})
    url = discord.sandbox.discord.gateway.url.replace("localhost", "127.0.0.1")
    async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
        identify = {"token": discord.settings["DISCORD_BOT_TOKEN"], "intents": 1, "properties": {}}
        await socket.send_json({"op": 2, "d": identify})
        call = {"guild": BASE, "user": "carol", "kind": "command", "name": "verify"}
        acting = asyncio.create_task(discord.http.post("/control/interactions", json=call))
        while (frame := await socket.receive_json(timeout=5))["t"] != "INTERACTION_CREATE":
            pass
        event: dict[str, Any] = frame["d"]
        callback = f"/interactions/{event['id']}/{event['token']}/callback"
        body = {"type": 5, "data": {"flags": 64}}
        await discord.bot("POST", callback, body, params={"with_response": "true"})
        await discord.bot("POST", callback, {"type": 4, "data": {"content": "x"}})
        webhook = f"/webhooks/{APP}/{event['token']}"
        await discord.bot("PATCH", f"{webhook}/messages/@original", {"content": "Done"})
        await discord.bot("GET", f"{webhook}/messages/@original")
        await discord.bot("POST", webhook, {"content": "More", "flags": 64})
        await discord.bot("DELETE", f"{webhook}/messages/@original")
        assert (await acting).status_code == 200


@pytest.mark.skipif(not JUDGE, reason="DISCORD_JUDGE names no folder with the judge")
async def test_recorded_traffic_does_not_contradict_discords_description(discord: Outside, tmp_path: Path):
    for part in (
        the_caller, commands, channels_and_messages, an_interaction, roles_and_members, a_rich_guild,
    ):  # fmt: skip
        await part(discord)
        discord.sandbox.discord.limits.clear()
    await discord.bot("DELETE", f"/users/@me/guilds/{BASE}")
    assert all(record["status"] < 500 for record in discord.recorded)
    traffic = tmp_path / "traffic.jsonl"
    traffic.write_text("".join(json.dumps(record) + "\n" for record in discord.recorded))
    judge = [sys.executable, Path(JUDGE) / "validate.py", traffic]
    verdict = await asyncio.to_thread(subprocess.run, judge, capture_output=True, text=True)
    assert verdict.returncode == 0, verdict.stdout
