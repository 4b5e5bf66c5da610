"""The gateway of the sandbox's Discord, frame by frame."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from sandbox.discord.gateway import compression
from tests.sandbox.conftest import BASE, CLUB, HOLDER, Outside, role_of

GUILDS_AND_MEMBERS = 3


def unzstd() -> Callable[[bytes], bytes]:
    """Decompress an endless frame of raw blocks, piece by piece (RFC 8878 §3.1.1)."""
    begun: list[bool] = []

    def unpack(data: bytes) -> bytes:
        if not begun:
            # No checksum, no dictionary, no content size; a window of 128 KiB.
            assert data[:6] == b"\x28\xb5\x2f\xfd\x00\x38"
            begun.append(True)
            data = data[6:]
        text = b""
        while data:
            header = int.from_bytes(data[:3], "little")
            size = header >> 3
            assert header & 0b111 == 0, "a raw block that is not the last"
            assert 0 < size <= 1 << 17
            text, data = text + data[3 : 3 + size], data[3 + size :]
        return text

    return unpack


class Client:
    """A bare gateway client; frames go out as binary, which Discord accepts."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, compress: str) -> None:
        self.socket = socket
        self._unpack = {"zlib-stream": zlib.decompressobj().decompress, "zstd-stream": unzstd()}.get(compress)

    async def send(self, op: int, data: Any) -> None:
        await self.socket.send_bytes(json.dumps({"op": op, "d": data}).encode())

    async def frame(self) -> dict[str, Any]:
        """Return the next frame; a close is `{"close": code}`."""
        message = await self.socket.receive(timeout=5)
        if message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING):
            return {"close": self.socket.close_code}
        text = self._unpack(message.data) if self._unpack else message.data
        parsed = json.loads(text)
        assert set(parsed) == {"op", "d", "s", "t"}
        return parsed

    async def until(self, event: str) -> dict[str, Any]:
        while True:
            frame = await self.frame()
            assert "close" not in frame, frame
            if frame["t"] == event:
                return frame

    async def identify(self, token: str, intents: int = GUILDS_AND_MEMBERS, **more: Any) -> None:
        await self.send(2, {"token": token, "intents": intents, "properties": {}, **more})


@asynccontextmanager
async def connected(discord: Outside, compress: str = "") -> AsyncIterator[Client]:
    query = "?v=10&encoding=json" + (f"&compress={compress}" if compress else "")
    url = discord.sandbox.discord.gateway.url.replace("localhost", "127.0.0.1") + query
    async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
        yield Client(socket, compress)


@asynccontextmanager
async def ready(discord: Outside, compress: str = "", **more: Any) -> AsyncIterator[tuple[Client, dict[str, Any]]]:
    async with connected(discord, compress) as client:
        assert (await client.frame())["op"] == 10
        await client.identify(discord.settings["DISCORD_BOT_TOKEN"], **more)
        yield client, (await client.until("READY"))["d"]


@pytest.mark.parametrize("compress", ["", "zlib-stream", "zstd-stream"])
async def test_a_bot_gets_ready_its_guild_and_what_happens_there(discord: Outside, compress: str):
    async with ready(discord, compress) as (client, hello):
        assert hello["guilds"] == [{"id": BASE, "unavailable": True}]
        created = (await client.until("GUILD_CREATE"))["d"]
        assert [member["user"]["username"] for member in created["members"]] == ["HoldfastBot"]
        assert created["member_count"] == 7
        await discord.control("members", guild="Base Builders", user="carol", action="add_role", role="Holder")
        update = (await client.until("GUILD_MEMBER_UPDATE"))["d"]
        assert (update["guild_id"], update["roles"]) == (BASE, [role_of(BASE, HOLDER)])
        await client.send(1, None)
        assert (await client.frame())["op"] == 11


@pytest.mark.parametrize(("token", "intents", "code"), [("wrong", 3, 4004), ("", 1 << 15, 4014), ("", 1 << 30, 4013)])
async def test_a_bad_identify_is_closed_without_a_way_to_resume(discord: Outside, token: str, intents: int, code: int):
    async with connected(discord) as client:
        await client.frame()
        await client.identify(token or discord.settings["DISCORD_BOT_TOKEN"], intents)
        assert await client.frame() == {"close": code}


@pytest.mark.parametrize("more", [{}, {"properties": None}, {"properties": "linux"}])
async def test_an_identify_without_its_properties_is_closed(discord: Outside, more: dict[str, Any]):
    async with connected(discord) as client:
        await client.frame()
        await client.send(2, {"token": discord.settings["DISCORD_BOT_TOKEN"], "intents": 3, **more})
        assert await client.frame() == {"close": 4001}


async def test_a_silent_client_is_closed(discord: Outside):
    discord.sandbox.discord.gateway.heartbeat_ms = 50
    async with connected(discord) as client:
        await client.frame()
        assert await client.frame() == {"close": 4009}


async def resumed(discord: Outside, session_id: str, seq: int) -> dict[str, Any]:
    """Return the gateway's first answer to a resume."""
    async with connected(discord) as client:
        await client.frame()
        token = discord.settings["DISCORD_BOT_TOKEN"]
        await client.send(6, {"token": token, "session_id": session_id, "seq": seq})
        return await client.frame()


async def test_a_session_that_timed_out_is_over(discord: Outside):
    async with ready(discord) as (client, hello):
        seq = (await client.until("GUILD_CREATE"))["s"]
        discord.sandbox.discord.gateway.heartbeat_ms = 1
        await client.send(1, None)
        while (frame := await client.frame()).get("op") is not None:
            pass
        assert frame == {"close": 4009}
        discord.sandbox.discord.gateway.heartbeat_ms = 41_250
    refused = await resumed(discord, hello["session_id"], seq)
    assert (refused["op"], refused["d"]) == (9, False)


async def test_a_session_is_over_when_it_is_resumed_from_the_future(discord: Outside):
    async with ready(discord) as (client, hello):
        seq = (await client.until("GUILD_CREATE"))["s"]
        await discord.control("gateway", action="drop")
    assert await resumed(discord, hello["session_id"], seq + 99) == {"close": 4007}
    refused = await resumed(discord, hello["session_id"], seq)
    assert (refused["op"], refused["d"]) == (9, False)


async def test_a_client_that_sent_an_unknown_opcode_may_resume(discord: Outside):
    async with ready(discord) as (client, hello):
        seq = (await client.until("GUILD_CREATE"))["s"]
        await client.send(99, None)
        assert await client.frame() == {"close": 4001}
    assert (await resumed(discord, hello["session_id"], seq))["t"] == "RESUMED"


async def test_a_resumed_session_hears_what_it_missed_once(discord: Outside):
    token = discord.settings["DISCORD_BOT_TOKEN"]
    async with ready(discord) as (client, hello):
        created = await client.until("GUILD_CREATE")
        await discord.control("gateway", action="drop")
        assert "close" in await client.frame()
    await discord.control("members", guild=BASE, user="dave", action="set_pending", pending=True)
    async with connected(discord) as client:
        await client.frame()
        await client.send(6, {"token": token, "session_id": hello["session_id"], "seq": created["s"]})
        missed = await client.frame()
        assert (missed["t"], missed["d"]["pending"], missed["s"]) == ("GUILD_MEMBER_UPDATE", True, created["s"] + 1)
        assert (await client.frame())["t"] == "RESUMED"
    async with connected(discord) as client:
        await client.frame()
        await client.send(6, {"token": token, "session_id": "nobody's", "seq": 1})
        invalid = await client.frame()
        assert (invalid["op"], invalid["d"]) == (9, False)


async def test_members_are_chunked_and_a_whole_guild_only_once_in_thirty_seconds(discord: Outside):
    async with ready(discord) as (client, _):
        await client.send(8, {"guild_id": BASE, "query": "", "limit": 0, "nonce": "n"})
        chunk = (await client.until("GUILD_MEMBERS_CHUNK"))["d"]
        assert (len(chunk["members"]), chunk["chunk_index"], chunk["chunk_count"], chunk["nonce"]) == (7, 0, 1, "n")
        await client.send(8, {"guild_id": BASE, "query": "", "limit": 0, "nonce": "n"})
        limited = (await client.until("RATE_LIMITED"))["d"]
        assert limited["opcode"] == 8
        assert 0 < limited["retry_after"] <= 30
        await client.send(8, {"guild_id": BASE, "user_ids": ["1150000000000000303", "7"]})
        some = (await client.until("GUILD_MEMBERS_CHUNK"))["d"]
        assert (len(some["members"]), some["not_found"]) == (1, ["7"])


async def test_joining_and_being_kicked_is_told_without_unavailable(discord: Outside):
    async with ready(discord) as (client, _):
        assert (await client.until("GUILD_CREATE"))["d"]["unavailable"] is False
        await discord.control("guilds", guild="Cool Holders Club", action="add_bot")
        created = (await client.until("GUILD_CREATE"))["d"]
        assert (created["id"], "unavailable" in created) == (CLUB, False)
        await discord.control("guilds", guild=CLUB, action="kick_bot")
        assert (await client.until("GUILD_DELETE"))["d"] == {"id": CLUB}


async def test_the_bot_reads_only_those_messages_that_call_it(discord: Outside):
    async with ready(discord, intents=GUILDS_AND_MEMBERS | 1 << 9) as (client, _):
        for text in ("Good morning", "Good morning, @HoldfastBot"):
            await discord.control("messages", guild=BASE, user="carol", content=text)
        heard = [(await client.until("MESSAGE_CREATE"))["d"] for _ in range(2)]
    bot = discord.settings["DISCORD_CLIENT_ID"]
    assert [one["content"] for one in heard] == ["", f"Good morning, <@{bot}>"]
    assert [[user["id"] for user in one["mentions"]] for one in heard] == [[], [bot]]
    assert heard[0]["author"]["username"] == "carol"


async def test_a_nickname_is_given_and_taken_in_one_guild(discord: Outside):
    async with ready(discord) as (client, _):
        await discord.control("members", guild=BASE, user="dave", action="rename_nick", name="Davy")
        assert (await client.until("GUILD_MEMBER_UPDATE"))["d"]["nick"] == "Davy"
        await discord.control("members", guild=BASE, user="dave", action="rename_nick")
        told = (await client.until("GUILD_MEMBER_UPDATE"))["d"]
    assert (told["nick"], told["user"]["username"]) == (None, "dave")
    body = {"guild": BASE, "user": "dave", "action": "rename_nick", "name": "x" * 33}
    refused = await discord.http.post("/control/members", json=body)
    assert (refused.status_code, "at most 32" in refused.text) == (400, True)


async def test_a_reset_is_told_step_by_step(discord: Outside):
    before = await discord.world()
    await discord.control("guilds", guild=CLUB, action="add_bot")
    await discord.control("guilds", guild=BASE, action="delete_role", role="Whale")
    await discord.control("guilds", guild=BASE, action="add_role", name="Extra", position=4)
    await discord.control("members", guild=BASE, user="carol", action="leave")
    await discord.control("members", guild=BASE, user="dave", action="rename", name="david")
    async with ready(discord) as (client, _):
        await discord.control("reset")
        assert (await client.until("GUILD_DELETE"))["d"]["id"] == CLUB
        assert (await client.until("GUILD_ROLE_CREATE"))["d"]["role"]["name"] == "Whale"
    assert await discord.world() == before


async def test_a_reset_sends_the_name_of_the_start_to_the_bot(discord: Outside):
    await discord.control("members", guild=BASE, user="dave", action="rename", name="david")
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("reset")
        assert (await client.until("GUILD_MEMBER_UPDATE"))["d"]["user"]["username"] == "dave"


async def test_a_reset_sends_nothing_about_roles_that_are_as_at_the_start(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("reset")
        await discord.control("guilds", guild=BASE, action="edit_role", role="Whale", name="Orca")
        assert (await client.until("GUILD_ROLE_UPDATE"))["d"]["role"]["name"] == "Orca"


@pytest.mark.parametrize("tags", [{"integration_id": "5"}, {"guild_connections": None}])
async def test_a_reset_takes_a_roles_tags_away(discord: Outside, tags: dict[str, str | None]):
    before = (await discord.bot("GET", f"/guilds/{BASE}/roles")).json()
    await discord.control("guilds", guild=BASE, action="edit_role", role="Holder", tags=tags)
    await discord.control("reset")
    assert (await discord.bot("GET", f"/guilds/{BASE}/roles")).json() == before
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Holder")


async def test_shards_share_the_guilds(discord: Outside):
    await discord.control("guilds", guild=CLUB, action="add_bot")
    seen: list[str] = []
    for number in range(2):
        async with ready(discord, shard=[number, 2]) as (_, hello):
            seen += [guild["id"] for guild in hello["guilds"]]
            assert all((int(guild["id"]) >> 22) % 2 == number for guild in hello["guilds"])
    assert sorted(seen) == [CLUB, BASE]


async def test_too_few_shards_for_the_guilds_are_refused_and_discord_says_how_many_it_wants(discord: Outside):
    await discord.control("guilds", guild=CLUB, action="add_bot")
    await discord.control("application", guilds_per_shard=1)
    assert (await discord.bot("GET", "/gateway/bot")).json()["shards"] == 2
    async with connected(discord) as client:
        await client.frame()
        await client.identify(discord.settings["DISCORD_BOT_TOKEN"])
        assert await client.frame() == {"close": 4011}
    await discord.control("application", guilds_per_shard=2, shards=3)
    assert (await discord.bot("GET", "/gateway/bot")).json()["shards"] == 3
    async with ready(discord) as (_, hello):
        assert len(hello["guilds"]) == 2


async def test_a_paused_gateway_sends_later_and_a_downed_one_not_at_all(discord: Outside):
    async with ready(discord) as (client, _):
        await client.until("GUILD_CREATE")
        await discord.control("gateway", action="malformed")
        assert await client.socket.receive_str() != ""
        await discord.control("gateway", action="pause", seconds=2.0)
        await discord.control("members", guild=BASE, user="carol", action="leave")
        with pytest.raises(asyncio.TimeoutError):
            await client.socket.receive(timeout=0.1)
        assert (await client.until("GUILD_MEMBER_REMOVE"))["d"]["user"]["username"] == "carol"
        await discord.control("faults", target="gateway", kind="down", seconds=30)
        assert "close" in await client.frame()
    with pytest.raises(aiohttp.ClientError):
        async with connected(discord):
            pass


def test_a_long_frame_goes_in_blocks_that_zstd_allows():
    text, short = "ä" * 200_000, "{}"
    packer, unpack = compression.Zstd(), unzstd()
    assert [unpack(packer.pack(one)).decode() for one in (text, short)] == [text, short]
