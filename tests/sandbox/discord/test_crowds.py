"""Guilds full of people who cannot sign in."""

from pathlib import Path

import httpx
import pytest
from aiohttp import web

from sandbox.assembly import WholeSandbox
from sandbox.server import build_app
from tests.conftest import free_port
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.discord.gateway.test_gateway import ready

MEMBERS = 1 << 1


async def test_a_crowd_is_counted_listed_and_sent_in_chunks_and_nobody_signs_in_as_one_of_it(discord: Outside) -> None:
    before = await discord.world()
    there = len((await discord.bot("GET", f"/guilds/{BASE}/members?limit=1000")).json())
    crowd = await discord.control("guilds", action="populate", guild=BASE, count=1500)
    ids = {str(one) for one in range(int(crowd["first"]), int(crowd["last"]) + 1)}
    assert len(ids) == 1500
    listed, last = set[str](), "0"
    while page := (await discord.bot("GET", f"/guilds/{BASE}/members?limit=1000&after={last}")).json():
        listed |= {member["user"]["id"] for member in page}
        last = page[-1]["user"]["id"]
    assert ids < listed
    assert len(listed) == there + 1500
    counted = (await discord.bot("GET", f"/guilds/{BASE}?with_counts=true")).json()
    assert counted["approximate_member_count"] == there + 1500
    async with ready(discord, intents=1 | MEMBERS) as (client, _):
        await client.send(8, {"guild_id": BASE, "query": "", "limit": 0})
        chunks = [(await client.until("GUILD_MEMBERS_CHUNK"))["d"] for _ in range(2)]
    assert {member["user"]["id"] for chunk in chunks for member in chunk["members"]} == listed
    assert await discord.world() == before


async def test_one_of_a_crowd_leaves_and_joins_like_anybody(discord: Outside) -> None:
    crowd = await discord.control("guilds", action="populate", guild=BASE, count=3)
    async with ready(discord, intents=1 | MEMBERS) as (client, _):
        await client.until("GUILD_CREATE")
        for action, event in (("leave", "GUILD_MEMBER_REMOVE"), ("join", "GUILD_MEMBER_ADD")):
            await discord.control("members", guild=BASE, user=crowd["last"], action=action)
            assert (await client.until(event))["d"]["user"]["id"] == crowd["last"]


async def test_a_reset_empties_the_guild(discord: Outside) -> None:
    before = len((await discord.bot("GET", f"/guilds/{BASE}/members?limit=1000")).json())
    crowd = await discord.control("guilds", action="populate", guild=BASE, count=5)
    assert (await discord.bot("GET", f"/users/{crowd['first']}")).status_code == 200
    await discord.control("reset")
    assert len((await discord.bot("GET", f"/guilds/{BASE}/members?limit=1000")).json()) == before
    assert (await discord.bot("GET", f"/users/{crowd['first']}")).status_code == 404


@pytest.mark.parametrize("panel", ["", "servers"])
async def test_the_console_counts_a_crowd_and_lists_nobody_of_it(discord: Outside, panel: str) -> None:
    await discord.control("guilds", action="populate", guild=BASE, count=1500)
    where = {"as": "carol", "guild": BASE, "panel": panel, "at": BASE}
    page = (await discord.http.get("/console", params=where)).text
    shown = (await discord.http.get("/console/live", params=where)).json()["parts"]["panel-now" if panel else "members"]
    for text in (page, shown):
        assert "mallory" in text
        assert "and 1,500 who only fill the server" in text
        assert text.count("crowd") == 1, "their names begin so"


@pytest.mark.parametrize("count", [0, -1, 1.5, 20_001, None, "many"])
async def test_a_crowd_of_no_size_is_refused(discord: Outside, count: object) -> None:
    with pytest.raises(AssertionError):
        await discord.control("guilds", action="populate", guild=BASE, count=count)


async def test_no_tool_of_the_console_makes_wallets_or_profiles_for_a_crowd(tmp_path: Path) -> None:
    sandbox = WholeSandbox(tmp_path / "sandbox", free_port(), frozenset({"evm"}))
    runner = web.AppRunner(build_app(sandbox), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", sandbox.port).start()
    try:
        async with httpx.AsyncClient(base_url=sandbox.url, trust_env=False) as http:
            crowd = {"action": "populate", "guild": BASE, "count": 5}
            assert (await http.post("/control/guilds", json=crowd)).status_code == 200
            for panel in ("chains", "profiles"):
                shown = (await http.get("/console", params={"as": "carol", "panel": panel})).text
                assert "mallory" in shown, panel
                assert "crowd" not in shown, panel
    finally:
        await runner.cleanup()
