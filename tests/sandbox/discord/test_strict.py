"""Refusals and limits of Discord that a more lenient stand-in would lack, and faults of single routes."""

import time
from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import BASE, HOLDER, Outside, role_of
from tests.sandbox.discord.gateway.test_gateway import connected, ready

CAROL = "1150000000000000303"
WRITE = f"/guilds/{BASE}/members/{CAROL}/roles/{role_of(BASE, HOLDER)}"


async def test_a_users_own_guilds_are_listed_once_a_second(discord: Outside):
    token = f"Bearer {(await discord.signed_in('ada'))['access_token']}"
    first = await discord.rest("GET", "/users/@me/guilds", token)
    second = await discord.rest("GET", "/users/@me/guilds", token)
    assert (first.status_code, second.status_code) == (200, 429)
    assert first.headers["X-RateLimit-Limit"] == "1"
    assert second.json()["retry_after"] <= 1
    assert second.headers["Retry-After"] == "1"
    assert second.headers["Via"]
    other = f"Bearer {(await discord.signed_in('bob'))['access_token']}"
    assert (await discord.rest("GET", "/users/@me/guilds", other)).status_code == 200, "each token for itself"
    for _ in range(3):
        assert (await discord.bot("GET", "/users/@me/guilds")).status_code == 200, "the bot's is another limit"


@pytest.mark.parametrize(
    ("tags", "managed", "status", "code"),
    [
        ({"guild_connections": None}, False, 400, 50028),
        ({"premium_subscriber": None}, True, 403, 50013),
        ({"integration_id": "77", "subscription_listing_id": "78", "available_for_purchase": None}, True, 403, 50013),
        ({"integration_id": "77"}, True, 403, 50013),
    ],
)
async def test_roles_that_discord_gives_can_be_made_and_not_given(
    discord: Outside, tags: dict[str, Any], managed: bool, status: int, code: int
):
    made = await discord.control("guilds", action="add_role", guild=BASE, name="Special", tags=tags)
    roles = (await discord.bot("GET", f"/guilds/{BASE}/roles")).json()
    shown = next(role for role in roles if role["id"] == made["id"])
    assert (shown["tags"], shown["managed"]) == (tags, managed)
    answer = await discord.bot("PUT", f"/guilds/{BASE}/members/{CAROL}/roles/{made['id']}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_the_second_identify_within_five_seconds_is_an_invalid_session(discord: Outside):
    await discord.control("application", max_concurrency=1)
    async with ready(discord), connected(discord) as second:
        await second.frame()
        await second.identify(discord.settings["DISCORD_BOT_TOKEN"])
        refused = await second.frame()
        assert (refused["op"], refused["d"]) == (9, False)
    limit = (await discord.bot("GET", "/gateway/bot")).json()["session_start_limit"]
    assert (limit["total"], limit["remaining"], limit["max_concurrency"]) == (1000, 998, 1)
    assert 0 < limit["reset_after"] <= 86_400_000


@pytest.mark.parametrize(("shard", "op"), [(1, 0), (2, 9)])
async def test_two_shards_of_one_remainder_wait_for_each_other(discord: Outside, shard: int, op: int):
    await discord.control("application", shards=4, max_concurrency=2)
    async with connected(discord) as first, connected(discord) as second:
        for client, number in ((first, 0), (second, shard)):
            await client.frame()
            await client.identify(discord.settings["DISCORD_BOT_TOKEN"], shard=[number, 4])
        assert (await first.frame())["op"] == 0
        assert (await second.frame())["op"] == op


async def test_more_than_a_thousand_identifies_a_day_cost_the_token(discord: Outside):
    await discord.control("application", identifies_left=1)
    async with ready(discord), connected(discord) as second:
        await second.frame()
        await second.identify(discord.settings["DISCORD_BOT_TOKEN"])
        assert await second.frame() == {"close": 4004}


async def test_an_event_at_will_reaches_every_session(discord: Outside):
    async with ready(discord) as (client, _):
        await discord.control("gateway", action="send", event="GUILD_MEMBER_UPDATE", payload={"odd": 1}, times=2)
        assert (await client.until("GUILD_MEMBER_UPDATE"))["d"] == {"odd": 1}
        assert (await client.frame())["d"] == {"odd": 1}


async def answers(discord: Outside, times: int) -> list[int]:
    return [(await put(discord)).status_code for _ in range(times)]


async def put(discord: Outside) -> httpx.Response:
    headers = {"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    return await discord.http.put(f"/discord/api/v10{WRITE}", headers=headers)


async def test_an_answer_at_will_meets_its_route_and_method_so_often(discord: Outside):
    fault = {"target": "discord", "kind": "answer", "method": "put", "path": "/guilds/*/members/*/roles/*"}
    body = {"message": "Unknown Member", "code": 10007}
    await discord.control("faults", **fault, status=404, body=body, times=2, headers={"X-Odd": "yes"})
    lied = await put(discord)
    assert (lied.status_code, lied.json(), lied.headers["X-Odd"]) == (404, body, "yes")
    assert (await discord.bot("GET", f"/guilds/{BASE}/members/{CAROL}")).status_code == 200
    assert role_of(BASE, HOLDER) not in (await discord.member(BASE, "carol"))["roles"]
    assert await answers(discord, 2) == [404, 204]


async def test_a_text_answer_carries_none_of_discords_signs(discord: Outside):
    path = f"/discord/api/v10{WRITE}"
    await discord.control("faults", target="discord", kind="answer", path=path, status=429, body="error code: 1015")
    limited = await put(discord)
    assert (limited.status_code, limited.text) == (429, "error code: 1015")
    assert not {"via", "retry-after", "x-ratelimit-limit"} & set(limited.headers)
    assert (await discord.http.delete("/control/faults")).status_code == 200
    assert (await put(discord)).status_code == 204


async def test_an_answer_may_be_lost_although_the_write_was_carried_out(discord: Outside):
    await discord.control(
        "faults", target="discord", kind="answer", status=502, body="<html>", times=1, carried_out=True
    )
    assert (await put(discord)).status_code == 502
    assert role_of(BASE, HOLDER) in (await discord.member(BASE, "carol"))["roles"]


async def test_latency_delays_and_changes_nothing(discord: Outside):
    await discord.control("faults", target="discord", kind="latency", ms=50, seconds=60)
    began = time.monotonic()
    assert (await put(discord)).status_code == 204
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": 99},
        {"status": 200, "times": 0},
        {},
        {"status": 200, "headers": "x"},
        {"status": 200, "headers": {"X-Odd": "a\r\nX-Other: b"}},
        {"status": 200, "headers": {"X Odd": "a"}},
        {"status": 200, "headers": {"": "a"}},
        {"status": 200, "body": "abc", "headers": {"content-length": "4"}},
        {"status": 200, "body": "abc", "headers": {"Transfer-Encoding": "chunked"}},
    ],
)
async def test_a_fault_that_cannot_be_answered_is_refused(discord: Outside, wrong: dict[str, Any]):
    answer = await discord.http.post("/control/faults", json={"target": "discord", "kind": "answer", **wrong})
    assert (answer.status_code, answer.json().keys()) == (400, {"message"})


async def test_a_fault_has_any_headers_that_http_can_carry(discord: Outside):
    headers = {"x-odd!": "a\tü", "content-length": "3", "x-empty": ""}
    fault = {"target": "discord", "kind": "answer", "status": 200, "body": "abc", "headers": headers}
    await discord.control("faults", **fault)
    answer = await discord.http.get("/discord/api/v10/gateway")
    assert {name: answer.headers[name] for name in headers} == headers
