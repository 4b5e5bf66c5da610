"""Answers of Discord's that are larger than any that we ask for."""

import gzip
import json

import pytest
from aiohttp import web

from gateways.discord.rest import Discord
from gateways.transport import size_limited_client
from gateways.transport.errors import ProviderBusy, ProviderConfused
from tests.gateways.discord.test_rest import GUILD, role
from tests.gateways.discord.test_rest import discord as discord
from tests.gateways.wire import Wire


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_that_is_too_large_is_neither_kept_nor_asked_for_again(
    discord: Discord, server: Wire, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(size_limited_client, "LARGEST_ANSWER", 1_000_000)
    body = b'"' + b"x" * 1_000_000 + b'"'
    headers = {"Content-Type": "application/json"} | ({"Content-Encoding": "gzip"} if packed else {})
    server.says(web.Response(body=gzip.compress(body) if packed else body, headers=headers))
    with pytest.raises(ProviderConfused, match="HTTP 200 without usable JSON"):
        await discord.roles(GUILD)
    assert len(server.asked) == 1
    server.says(web.Response(status=429, body=body, headers={"Retry-After": "3600"}))
    with pytest.raises(ProviderBusy) as busy:
        await discord.roles(GUILD)
    assert busy.value.retry_after == 3600, "the headers of such an answer count"


async def test_a_packed_answer_is_read(discord: Discord, server: Wire) -> None:
    packed = gzip.compress(json.dumps([role(GUILD, "@everyone")]).encode())
    server.says(web.Response(body=packed, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}))
    assert [one.name for one in await discord.roles(GUILD)] == ["@everyone"]
