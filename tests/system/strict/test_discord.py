"""The product with a Discord that is as slow as the real one."""

import asyncio
from typing import Any

import pytest

from gateways import gateways
from gateways.discord import invalid_requests, rest
from gateways.transport.errors import ProviderError
from sandbox.discord.answers.edge import INVALID
from tests.jobs.town import Town


async def test_more_messages_than_a_channel_takes_at_once_all_get_there(town: Town):
    channel: dict[str, Any] = (await town.guild())["channels"][0]
    wanted = [f"Message {n}" for n in range(7)]
    for n, content in enumerate(wanted):
        await gateways().discord.post_message(channel["id"], {"content": content}, f"strict-{channel['id'][-8:]}-{n}")
    shown: dict[str, Any] = (await town.guild())["channels"][0]
    assert [message["content"] for message in shown["messages"]] == wanted


SMALLER = 40
"""The factor by which all limits of refusals are smaller here than in reality."""


async def test_refusals_everywhere_stop_us_long_before_discord_shuts_us_out(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, discord = invalid_requests.ALLOWED // SMALLER, gateways().discord
    monkeypatch.setattr(invalid_requests, "ALLOWED", ours)
    # On a busy machine the first requests take longer than a role write waits for its turn.
    monkeypatch.setattr(rest, "PATIENCE", 60.0)
    borne = {"target": "discord", "left": INVALID // SMALLER, "seconds": 600}
    assert (await town.control.put("/control/limits", json=borne)).status_code == 200
    await town.call("faults", target="discord", kind="answer", path="/guilds/*", status=403, body="<html>", seconds=300)

    async def give(guild: int, member: int) -> None:
        with pytest.raises(ProviderError):
            await discord.add_role(str(10**18 + guild), str(member + 1), "1", "a role")

    for member in range(10):
        await asyncio.gather(*(give(guild, member) for guild in range(20)))
    told = (await town.control.get("/control/limits")).json()["discord"]["invalid_requests"]
    assert told["requests"] == INVALID
    # Requests in flight when the last one was counted come on top.
    assert ours <= INVALID // SMALLER - told["left"] <= 2 * ours
    assert told["shut_for"] == 0
    assert (await town.control.delete("/control/limits")).status_code == 200
