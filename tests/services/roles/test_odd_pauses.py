"""How soon a role change is retried after a false answer from Discord, however long Discord keeps giving it."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.discord.types import GuildMember, refusal
from gateways.transport.errors import ProviderConfused, ProviderDown
from jobs.role_writer import RoleWriter
from services.roles import outbox
from services.roles.outbox import Intent

MEMBER = GuildMember("1", "carol", None, None, None, frozenset(), pending=False)
LIES = [
    (404, 10007, "Unknown Member"),
    (404, 10011, "Unknown Role"),
    (404, 10004, "Unknown Guild"),
    (403, 50001, "Missing Access"),
]
FALSE = [refusal(status, {"code": code, "message": said}) for status, code, said in LIES]
ODD = [ProviderDown("Discord", "HTTP 524"), ProviderConfused("Discord", "HTTP 200 to a write"), refusal(403, "<html>")]


class Lying:
    """A Discord that refuses each role write with this fault, and answers reads truthfully."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    async def add_role(self, *_: object) -> None:
        raise self.fault

    async def membership(self, *_: object) -> GuildMember:
        return MEMBER

    async def roles(self, *_: object) -> list[Any]:
        return [SimpleNamespace(id="7")]

    async def guild(self, *_: object) -> None:
        """Return without an error: the bot is in the guild."""


@pytest.mark.parametrize("attempts", [0, 5, 100, 100_000])
@pytest.mark.parametrize("fault", [*FALSE, *ODD], ids=str)
async def test_a_change_is_tried_again_within_a_minute_however_often_it_failed(fault: Exception, attempts: int) -> None:
    intent = Intent(1, 1, "5", "1", "7", "Holder", True, datetime.now(UTC), attempts, {})
    outside = cast("Gateways", SimpleNamespace(discord=Lying(fault)))
    outcome = await outbox.carry_out(outside, intent, sure=True)
    assert outcome.result in (outbox.WriteResult.WAIT, outbox.WriteResult.NO_GUILD)
    assert outcome.outage
    assert outcome.pause is not None
    assert 0 < outcome.pause <= 60


async def test_a_guild_rests_less_than_a_minute_however_often_discord_failed_for_it() -> None:
    writer, now = RoleWriter(asyncio.Event()), asyncio.get_running_loop().time()
    for _ in range(2_000):
        writer.resting.clear()
        writer._rest_if_failing("5", True)
    assert 0 < writer.resting["5"] - now <= 60
