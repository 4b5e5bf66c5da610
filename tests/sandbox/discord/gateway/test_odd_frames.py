"""Whatever a client sends to the gateway, it is answered, or closed with one of Discord's codes."""

import json
from typing import Any

import pytest

from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.gateway.test_gateway import connected, ready

BEAT = {"op": 1, "d": None}
ODD: tuple[Any, ...] = (
    None, True, -1, 1.0, 1.5, 1e30, float("inf"), float("nan"), 2**70, "", "²", "x" * 500, "\ud800", [], [None], [[]],
    {}, {"a": 1},
)  # fmt: skip
REQUEST = {"guild_id": BASE, "query": "c", "limit": 1, "user_ids": None, "nonce": "n", "presences": False}
IDENTIFY = {"token": "", "intents": 3, "properties": {}, "shard": [0, 1], "large_threshold": 50, "compress": False}
RESUME = {"token": "", "session_id": "s", "seq": 1}


def altered(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data with each of its values in turn replaced by each odd one."""
    return [{**data, name: odd} for name in data for odd in ODD]


@pytest.mark.parametrize("text", ["[" * 4000, '{"op": 1, "d": ' + "[" * 4000, "9" * 4000, "NaN", "\x00", "null", "[]"])
async def test_a_frame_that_cannot_be_read_is_closed_with_4002(discord: Outside, text: str):
    async with connected(discord) as client:
        await client.frame()
        await client.socket.send_str(text)
        assert await client.frame() == {"close": 4002}


@pytest.mark.parametrize(("letter", "count"), [("x", 5000), ("é", 2500)])
async def test_a_frame_of_more_than_4096_bytes_is_closed_with_4002(discord: Outside, letter: str, count: int):
    async with connected(discord) as client:
        await client.frame()
        await client.socket.send_str(json.dumps({"op": 1, "d": letter * count}, ensure_ascii=False))
        assert await client.frame() == {"close": 4002}


@pytest.mark.parametrize(("nonce", "told"), [("n" * 32, True), ("n" * 33, False), ("é" * 17, False), ({"a": 1}, False)])
async def test_a_nonce_has_at_most_32_bytes(discord: Outside, nonce: Any, told: bool):
    async with ready(discord) as (client, _):
        await client.send(8, {"guild_id": BASE, "query": "carol", "limit": 1, "nonce": nonce})
        chunk = (await client.until("GUILD_MEMBERS_CHUNK"))["d"]
    assert (chunk.get("nonce") == nonce) is told
    assert ("nonce" in chunk) is told


@pytest.mark.parametrize("odd", ['"limit": 1e400', '"limit": -1', '"limit": true', '"limit": ""', '"guild_id": []'])
async def test_a_request_for_members_that_cannot_be_read_is_closed_with_4002(discord: Outside, odd: str):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await client.socket.send_str(f'{{"op": 8, "d": {{"guild_id": "{BASE}", "query": "c", {odd}}}}}')
        assert await client.frame() == {"close": 4002}


async def test_an_odd_request_for_members_is_answered_or_closed_with_4002(discord: Outside):
    for data in altered(REQUEST):
        async with ready(discord) as (client, _):
            await client.until("GUILD_CREATE")
            await client.socket.send_str(json.dumps({"op": 8, "d": data}))
            await client.socket.send_str(json.dumps(BEAT))
            while "close" not in (frame := await client.frame()) and frame["op"] != 11:
                assert frame["t"] in ("GUILD_MEMBERS_CHUNK", "RATE_LIMITED"), data
            assert frame.get("close") in (None, 4002), data


@pytest.mark.parametrize(("op", "usual"), [(2, IDENTIFY), (6, RESUME)])
async def test_an_odd_login_is_answered_or_closed(discord: Outside, op: int, usual: dict[str, Any]):
    usual = {**usual, "token": discord.settings["DISCORD_BOT_TOKEN"]}
    for data in altered(usual):
        async with connected(discord) as client:
            await client.frame()
            await client.socket.send_str(json.dumps({"op": op, "d": data}))
            frame = await client.frame()
            assert frame.get("op") in (0, 9) or 4001 <= frame["close"] <= 4014, data


@pytest.mark.parametrize("op", ODD, ids=repr)
async def test_an_odd_opcode_is_closed(discord: Outside, op: Any):
    async with connected(discord) as client:
        await client.frame()
        await client.socket.send_str(json.dumps({"op": op, "d": None}))
        assert (await client.frame()).get("close") in (4001, 4002)
