"""A second, unrelated client library works with the sandbox's Discord: it may not forgive what nextcord forgives."""

import asyncio
import json
import os
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.sandbox.conftest import BASE, BOT_ROLE, HOLDER, Outside, role_of
from tools.second_client import ready_in

CAROL = "1150000000000000303"
SCRIPT = Path(__file__).with_name("second_client.py")


class Client:
    """The script in a process of its own, read line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def tells(self, what: str) -> dict[str, Any]:
        """Return the next line of this kind."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while line := await self.process.stdout.readline():
                told = json.loads(line)
                if told["what"] == what:
                    return told
        assert self.process.stderr is not None
        pytest.fail((await self.process.stderr.read()).decode())


@pytest.fixture
async def client(discord: Outside) -> AsyncIterator[Client]:
    """hikari, logged in; its environment is created by the set-up of `make test`, or here."""
    python = ready_in(ROOT / "data" / "tools", sys.executable)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    # In the form of real ones, which this library parses: the bot's id comes before the first dot.
    bot_id = b64encode(discord.settings["DISCORD_CLIENT_ID"].encode()).decode().rstrip("=")
    token = f"{bot_id}.{discord.settings['DISCORD_BOT_TOKEN']}"
    arguments = (discord.settings["DISCORD_API_URL"], token, BASE, CAROL)
    process = await asyncio.create_subprocess_exec(
        str(python), str(SCRIPT), *arguments, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    yield Client(process)
    if process.returncode is None:
        process.terminate()
    await process.communicate()


async def test_it_logs_in_sees_guild_members_and_roles_and_hears_of_changes(discord: Outside, client: Client) -> None:
    assert (await client.tells("ready"))["name"] == "HoldfastBot"
    seen = await client.tells("guild")
    assert seen["name"] == "Base Builders"
    assert seen["members"] == ["HoldfastBot", "ada", "bob", "carol", "dave", "erin", "mallory"]
    assert seen["roles"]["HoldfastBot"][0] == role_of(BASE, BOT_ROLE)
    by_height = sorted(seen["roles"], key=lambda name: seen["roles"][name][1])
    assert by_height == [
        "@everyone", "Holder", "Collector", "Whale", "Moderator", "Admin", "HoldfastBot", "Founder",
    ]  # fmt: skip
    holder = role_of(BASE, HOLDER)
    await discord.bot("PUT", f"/guilds/{BASE}/members/{CAROL}/roles/{holder}")
    assert (await client.tells("member"))["roles"] == [holder]
    await discord.bot("DELETE", f"/guilds/{BASE}/members/{CAROL}/roles/{holder}")
    assert (await client.tells("member"))["roles"] == []
    await discord.control("guilds", guild=BASE, action="edit_role", role="Holder", permissions="8")
    assert await client.tells("role") == {"what": "role", "name": "Holder", "permissions": 8}
