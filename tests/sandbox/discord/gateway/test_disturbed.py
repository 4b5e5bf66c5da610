"""Deliberate faults of the sandbox's gateway: protocol frames, close codes, outages, odd events."""

import asyncio
from typing import Any

import pytest

from sandbox.discord.gateway import websocket
from tests.sandbox.conftest import BASE, CLUB, HOLDER, Outside, role_of
from tests.sandbox.discord.gateway.test_gateway import Client, connected, ready

CAROL, DAVE = "1150000000000000303", "1150000000000000404"


async def resumed(discord: Outside, client: Client, session: str, sequence: int) -> dict[str, Any]:
    """Return the first frame after a resume."""
    assert (await client.frame())["op"] == 10
    token = discord.settings["DISCORD_BOT_TOKEN"]
    await client.send(6, {"token": token, "session_id": session, "seq": sequence})
    return await client.frame()


@pytest.mark.parametrize(
    ("payload", "resumes"), [({"op": 7, "d": None}, True), ({"op": 9, "d": True}, True), ({"op": 9, "d": False}, False)]
)
async def test_a_client_is_told_to_come_back_with_its_session_or_without(
    discord: Outside, payload: dict[str, Any], resumes: bool
):
    async with ready(discord) as (client, hello):
        created = await client.until("GUILD_CREATE")
        await discord.control("gateway", action="send", payload=payload)
        frame = await client.frame()
        assert (frame["op"], frame["d"]) == (payload["op"], payload["d"])
        assert frame["s"] is None
        # A client that closes with 1000 ends its session.
        await client.socket.close(code=4000)
    async with connected(discord) as client:
        first = await resumed(discord, client, hello["session_id"], created["s"])
        assert (first["op"] == 9) is not resumes


async def test_a_heartbeat_can_be_asked_for(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="send", payload={"op": 1, "d": None})
        assert (await client.frame())["op"] == 1


async def test_a_heartbeat_is_answered_no_sooner_than_a_network_brings_it(
    discord: Outside, monkeypatch: pytest.MonkeyPatch
):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await client.send(1, None)
        assert (await client.frame())["op"] == 11
        monkeypatch.setattr(websocket, "ROUND_TRIP", 60.0)
        await client.send(1, None)
        with pytest.raises(asyncio.TimeoutError):
            await client.socket.receive(timeout=0.2)


@pytest.mark.parametrize(("code", "resumes"), [(4000, True), (1001, True), (4008, True), (4009, False), (4007, False)])
async def test_every_closing_code_can_be_had_and_some_end_the_session(discord: Outside, code: int, resumes: bool):
    async with ready(discord) as (client, hello):
        created = await client.until("GUILD_CREATE")
        await discord.control("gateway", action="close", code=code)
        assert await client.frame() == {"close": code}
    async with connected(discord) as client:
        first = await resumed(discord, client, hello["session_id"], created["s"])
        assert (first["op"] == 9) is not resumes


async def roles_heard(discord: Outside, client: Client, *people: str) -> list[tuple[str, list[str]]]:
    """Return the events received when each of these people gets Holder, and then one leaves."""
    for who in people:
        await discord.control("members", guild=BASE, user=who, action="add_role", role="Holder")
    await discord.control("members", guild=BASE, user="mallory", action="leave")
    heard: list[tuple[str, list[str]]] = []
    frame = await client.frame()
    while frame["t"] == "GUILD_MEMBER_UPDATE":
        heard.append((frame["d"]["user"]["id"], frame["d"]["roles"]))
        frame = await client.frame()
    assert frame["t"] == "GUILD_MEMBER_REMOVE"
    return heard


@pytest.mark.parametrize(
    ("action", "heard"), [("lose", [DAVE]), ("double", [CAROL, CAROL, DAVE]), ("reorder", [DAVE, CAROL])]
)
async def test_events_are_lost_doubled_or_out_of_order(discord: Outside, action: str, heard: list[str]):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action=action, guild=BASE, event="GUILD_MEMBER_UPDATE", times=1)
        holder = [role_of(BASE, HOLDER)]
        assert await roles_heard(discord, client, "carol", "dave") == [(who, holder) for who in heard]


async def test_an_event_that_waits_for_another_is_sent_before_a_reset(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="reorder", guild=BASE, event="GUILD_MEMBER_UPDATE", times=1)
        await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")
        await discord.control("reset")
        await discord.control("gateway", action="send", event="MARK", payload={})
        heard: list[list[str]] = []
        while (frame := await client.frame())["t"] != "MARK":
            assert frame["t"] == "GUILD_MEMBER_UPDATE"
            heard.append(frame["d"]["roles"])
    assert heard == [[role_of(BASE, HOLDER)], []]


async def test_a_spoiled_event_has_what_it_is_about_and_cannot_be_read(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="spoil", event="GUILD_MEMBER_UPDATE")
        heard = await roles_heard(discord, client, "carol", "dave")
        assert heard == [(CAROL, 7), (DAVE, [role_of(BASE, HOLDER)])]


async def test_a_guild_is_out_and_comes_back_with_what_changed(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="unavailable", guild=BASE)
        assert (await client.until("GUILD_DELETE"))["d"] == {"id": BASE, "unavailable": True}
        await discord.control("guilds", action="delete_role", guild=BASE, role="Whale")
        async with ready(discord) as (second, hello):
            assert hello["guilds"] == [{"id": BASE, "unavailable": True}]
            await discord.control("gateway", action="available", guild=BASE)
            for each in (client, second):
                back = await each.frame()
                assert (back["t"], back["d"]["unavailable"]) == ("GUILD_CREATE", False)
                assert "Whale" not in [role["name"] for role in back["d"]["roles"]]


async def test_an_outage_ends_without_a_call_and_a_kick_during_it_is_reported(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="unavailable", guild=BASE, seconds=0.05)
        assert (await client.until("GUILD_DELETE"))["d"]["unavailable"] is True
        assert (await client.until("GUILD_CREATE"))["d"]["id"] == BASE
        await discord.control("gateway", action="unavailable", guild=BASE)
        await client.until("GUILD_DELETE")
        await discord.control("guilds", action="kick_bot", guild=BASE)
        assert (await client.until("GUILD_DELETE"))["d"] == {"id": BASE}


async def test_a_guild_changes_its_name_and_owner(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("guilds", action="edit_guild", guild=BASE, name="Base Makers", owner="bob")
        changed = (await client.until("GUILD_UPDATE"))["d"]
        assert (changed["name"], changed["owner_id"]) == ("Base Makers", "1150000000000000202")
        await discord.control("reset")
        assert (await client.until("GUILD_UPDATE"))["d"]["name"] == "Base Builders"


async def test_the_members_intent_can_be_switched_off(discord: Outside):
    async with ready(discord) as (client, hello):
        assert hello["application"]["flags"] == 1 << 15
        await client.until("GUILD_CREATE")
        await discord.control("application", members_intent="off")
        refused = await discord.bot("GET", f"/guilds/{BASE}/members?limit=5")
        assert (refused.status_code, refused.json()["code"]) == (403, 50001)
        for path in (f"/guilds/{BASE}/members/{CAROL}", f"/guilds/{BASE}/members/search?query=car"):
            assert (await discord.bot("GET", path)).status_code == 200
        await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")
        await discord.control("guilds", action="edit_guild", guild=BASE, name="Quiet now")
        assert (await client.frame())["t"] == "GUILD_UPDATE", "member events are not sent"
        async with connected(discord) as second:
            await second.frame()
            await second.identify(discord.settings["DISCORD_BOT_TOKEN"])
            assert await second.frame() == {"close": 4014}
    await discord.control("application", members_intent="on")
    async with ready(discord) as (_, hello):
        assert hello["application"]["flags"] == 1 << 14


async def test_the_bots_role_comes_in_where_it_is_asked_for_or_not_at_all(discord: Outside):
    await discord.control("guilds", action="add_bot", guild=CLUB, position=1)
    roles = (await discord.guild(CLUB))["roles"]
    assert [role["name"] for role in roles][:3] == ["@everyone", "HoldfastBot", "Holder"]
    await discord.control("guilds", action="kick_bot", guild=CLUB)
    await discord.control("guilds", action="add_bot", guild=CLUB, permissions="0")
    assert not [role for role in (await discord.guild(CLUB))["roles"] if role["managed"]]
    await discord.control("guilds", action="add_bot", guild=CLUB, position=1)
    await discord.control("reset")
    assert (await discord.guild(CLUB))["bot_added"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "fly"},
        {"action": "close", "code": 1005},
        {"action": "send", "payload": 7},
        {"action": "lose", "times": 0},
        {"action": "available", "guild": BASE},
        {"action": "unavailable", "guild": CLUB},
    ],
)
async def test_what_the_gateway_cannot_do_is_refused(discord: Outside, wrong: dict[str, Any]):
    answer = await discord.http.post("/control/gateway", json=wrong)
    assert 400 <= answer.status_code < 500
    assert answer.json()["message"]
