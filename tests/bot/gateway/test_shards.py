"""Shards in several processes: resumed after a restart, taken over after a death, and no interaction answered twice."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import text

from bot import client_restart
from bot.client import Bot, build
from bot.gateway import shard_connection
from models import transaction
from sandbox.discord.gateway import identify_limits
from services.guilds.gateway import identifies, interaction_claims, shards
from services.guilds.gateway.shards import BotProcess
from settings import settings
from tests.bot.acquaintance import all_known, is_, names
from tests.bot.test_faulty_answers import commands_of
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, CLUB, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    pytest.mark.usefixtures("product"),
]


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BEAT_SECONDS", 0.15)
    monkeypatch.setattr(shards, "LEASE_SECONDS", 5.0)
    monkeypatch.setattr(identifies, "SPACING_SECONDS", 0.0)
    monkeypatch.setattr(client_restart, "CHECKED_EVERY", 0.05)
    monkeypatch.setattr(shard_connection, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(shard_connection, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(shard_connection, "CLOSES_WITHIN", 0.2)


class Life:
    """One process of the bot, as the database and Discord see it."""

    def __init__(self, name: str) -> None:
        self.process = BotProcess("here", 1, name)
        self.bot: Bot | None = None
        self.task = asyncio.create_task(
            client_restart.live(self._build, settings().discord_bot_token.get_secret_value())
        )

    def _build(self, told: bool) -> Bot:
        self.bot = build(told)
        self.bot.keeper.process = self.process
        return self.bot

    def holds(self) -> set[int]:
        connections = self.bot.keeper.connections if self.bot else {}
        return {number for number, one in connections.items() if not one.is_closed()}

    async def settled(self) -> bool:
        """Return whether every session is stored."""
        connections = self.bot.keeper.connections if self.bot else {}
        return bool(connections) and all(one.settled for one in connections.values())

    async def end(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def dies(self) -> None:
        """End as on `kill -9`: nothing is stored, released or closed properly."""
        assert self.bot is not None
        keeper = self.bot.keeper
        for one in keeper.connections.values():
            assert one.task is not None
            one.task.cancel()
            await asyncio.gather(one.task, return_exceptions=True)
            if one.ws is not None:
                await one.ws.close(shard_connection.RESUMABLE)
        keeper.count, keeper.connections = 0, {}
        await self.end()


@asynccontextmanager
async def process(name: str) -> AsyncIterator[Life]:
    life = Life(name)
    try:
        yield life
    finally:
        await life.end()


def left(discord: Outside) -> int:
    return int(discord.sandbox.discord.gateway.starts.view()["remaining"])


async def answered(discord: Outside, guild: str, who: str = "carol") -> dict[str, Any]:
    """Return the bot's answer to /help, once Discord knows the command."""

    async def offers_help() -> bool:
        return "help" in await commands_of(discord)

    await is_(offers_help, True)
    body = {"guild": guild, "user": who, "kind": "command", "name": "help", "wait": 30}
    return (await discord.http.post("/control/interactions", json=body, timeout=60)).json()


async def knows(*who: str) -> bool:
    return set(who) <= await names()


async def roles_of(who: str) -> int:
    async with transaction() as db:
        found = await db.execute(
            text(
                "SELECT cardinality(m.roles) FROM member m JOIN server s ON s.id = m.server_id "
                "WHERE m.name = :who AND s.discord_id = :guild"
            ),
            {"who": who, "guild": BASE},
        )
        return int(found.scalar_one_or_none() or 0)


async def ready(life: Life, *numbers: int) -> None:
    async def so() -> bool:
        return life.holds() == set(numbers) and await life.settled()

    await is_(so, True)


async def test_a_restart_resumes_the_session_and_misses_nothing(discord: Outside) -> None:
    await all_known(discord)
    async with process("first") as life:
        await ready(life, 0)
        await is_(lambda: knows("Carol"), True)
    assert await holders() == set(), "a process that ends in order leaves its shards at once"
    before = left(discord)
    asked = len(listed(discord))
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    async with process("second") as life:
        await ready(life, 0)
        await is_(lambda: roles_of("Carol"), 1)
        assert (await answered(discord, BASE))["messages"]
        assert left(discord) == before, "it was resumed, not identified"
        assert len(listed(discord)) == asked, "and no guild's members were read again"
        await discord.control("guilds", guild=BASE, action="add_role", name="New", permissions="0")
        await is_(lambda: stored_roles(discord), 9)


async def holders() -> set[str]:
    """Return the processes that hold a shard."""
    async with transaction() as db:
        found = await db.execute(text("SELECT holder FROM shard WHERE holder IS NOT NULL"))
        return {str(holder) for (holder,) in found.all()}


def listed(discord: Outside) -> list[str]:
    """Return the paths of the requests for member lists."""
    requests = discord.sandbox.traffic.since(0)["requests"]
    return [one["path"] for one in requests if one["path"].partition("?")[0].endswith("/members")]


async def stored_roles(discord: Outside) -> int:
    async with transaction() as db:
        found = await db.execute(
            text("SELECT json_array_length(CAST(data AS json) -> 'roles') FROM guild_picture WHERE guild_id = :guild"),
            {"guild": BASE},
        )
        return int(found.scalar_one())


async def test_a_session_whose_host_is_gone_is_resumed_at_the_usual_gateway(discord: Outside) -> None:
    async with process("first") as life:
        await ready(life, 0)
    before = left(discord)
    async with transaction() as db:
        await db.execute(text("UPDATE shard SET url = 'ws://127.0.0.1:9'"))
    async with process("second") as life:
        await ready(life, 0)
        assert (await answered(discord, BASE))["messages"]
    assert left(discord) == before, "it was resumed"


async def test_a_session_that_discord_no_longer_knows_costs_one_identify(discord: Outside) -> None:
    await all_known(discord)
    async with process("first") as life:
        await ready(life, 0)
    discord.sandbox.discord.gateway.sessions.clear()
    before = left(discord)
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    async with process("second") as life:
        await ready(life, 0)
        await is_(lambda: roles_of("Carol"), 1)
    assert left(discord) == before - 1


async def test_a_process_that_dies_leaves_its_shards_to_another_which_resumes_them(discord: Outside) -> None:
    await all_known(discord)
    await discord.control("guilds", guild=CLUB, action="add_bot")
    await discord.control("application", shards=3)
    async with process("first") as first, process("second") as second:

        async def shared() -> bool:
            both = first.holds() | second.holds()
            whole = await first.settled() and await second.settled()
            return both == {0, 1, 2} and bool(first.holds()) and bool(second.holds()) and whole

        await is_(shared, True)
        before = left(discord)
        await first.dies()
        await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
        await ready(second, 0, 1, 2)
        await is_(lambda: roles_of("Carol"), 1)
        assert (await answered(discord, BASE))["messages"]
        assert (await answered(discord, CLUB))["messages"]
        assert left(discord) == before, "every shard was resumed"


async def test_twenty_shards_start_as_many_at_once_as_discord_allows_and_none_identifies_twice(
    discord: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identify_limits, "CONCURRENCY_SECONDS", 0.05)
    monkeypatch.setattr(identifies, "SPACING_SECONDS", 1.5)
    monkeypatch.setattr(shards, "LEASE_SECONDS", 30.0)
    await discord.control("application", shards=20, max_concurrency=4)
    before = left(discord)
    async with process("first") as life:
        await ready(life, *range(20))
        assert left(discord) == before - 20, "none came too early, which would have cost another one"
        async with transaction() as db:
            lanes = await db.execute(text("SELECT lane, count(*) FROM identify GROUP BY lane ORDER BY lane"))
            assert [(int(lane), int(count)) for lane, count in lanes.all()] == [(lane, 5) for lane in range(4)]


async def test_an_interaction_that_comes_to_two_sessions_is_answered_once() -> None:
    async with transaction() as db:
        assert await interaction_claims.claim(db, "1") is True
        assert await interaction_claims.claim(db, "1") is False
        assert await interaction_claims.claim(db, "2") is True


@pytest.fixture
async def crowded(discord: Outside, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """One guild at most for a shard, with the bot in two; its waits are recorded, and the long one never ends."""
    await discord.control("guilds", action="create", guild="Another", owner="ada", members=["carol"])
    await discord.control("guilds", guild="Another", action="add_bot")
    await discord.control("application", guilds_per_shard=1)
    rests: list[tuple[float, str]] = []

    async def rest(seconds: float, sentence: str) -> None:
        rests.append((seconds, sentence))
        if seconds >= client_restart.SHARDS_PAUSE:
            await asyncio.Event().wait()

    monkeypatch.setattr(client_restart, "_rest", rest)
    return rests


async def test_more_shards_are_taken_until_discord_is_content(
    discord: Outside, crowded: list[tuple[float, str]]
) -> None:
    async with process("auto") as life:

        async def whole() -> bool:
            return len(life.holds()) >= 2 and len(life.holds()) == (life.bot and life.bot.shard_count)

        await is_(whole, True)
    assert {sentence for _, sentence in crowded} <= {client_restart.TOO_FEW}


async def test_a_fixed_number_of_shards_that_is_too_small_is_said_and_not_tried_again(
    discord: Outside, crowded: list[tuple[float, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT_SHARDS", "1")
    settings.cache_clear()
    before = left(discord)
    async with process("fixed"):

        async def said() -> bool:
            return bool(crowded)

        await is_(said, True)
    assert crowded == [(client_restart.SHARDS_PAUSE, client_restart.TOO_FEW)]
    assert left(discord) >= before - 1


async def test_a_message_that_cannot_be_read_is_asked_for_again_once_and_costs_no_identify(discord: Outside) -> None:
    await all_known(discord)
    async with process("first") as life:
        await ready(life, 0)
        before = left(discord)
        await discord.control("gateway", action="malformed")
        await discord.control("gateway", action="malformed")
        await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
        await is_(lambda: roles_of("Carol"), 1)
        assert left(discord) == before
        assert life.bot is not None
        assert not life.task.done()


async def test_a_gateway_that_says_nothing_readable_for_a_while_costs_no_identify(discord: Outside) -> None:
    await all_known(discord)
    async with process("first") as life:
        await ready(life, 0)
        before = left(discord)
        await discord.control("faults", target="gateway", kind="malformed", seconds=60)
        await discord.control("gateway", action="drop")
        bot = life.bot
        assert bot is not None

        async def tried() -> bool:
            counts = bot.unreadable.counts()
            return sum(count for (event, _), count in counts.items() if event == shard_connection.MESSAGE) > 1

        await is_(tried, True)
        await discord.http.delete("/control/faults")
        await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
        await is_(lambda: roles_of("Carol"), 1)
        assert left(discord) == before


def test_parts_of_the_shards_are_read_as_they_are_set() -> None:
    assert shards.part("auto").shards(3) == [0, 1, 2]
    assert (shards.part("4").count, shards.part("4").shards(4)) == (4, [0, 1, 2, 3])
    part = shards.part("8-9/32")
    assert (part.count, part.shards(32)) == (32, [8, 9])


def test_a_process_of_this_machine_is_gone_once_it_has_ended() -> None:
    here = shards.this_process()
    assert not shards.is_gone(here.name, here)
    assert not shards.is_gone(f"elsewhere:{here.pid}:x", here)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert shards.is_gone(f"{here.place}:{ended.pid}:x", here)
