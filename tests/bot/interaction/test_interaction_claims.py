"""Each interaction gets one answer, even beside a bot of a version that claims none."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nextcord
import pytest
from nextcord.http import Route
from sqlalchemy import text

from bot.interaction import interaction_claims
from models import transaction
from services.guilds import rate_shares
from settings import settings
from tests.bot.acquaintance import is_
from tests.bot.gateway.test_shards import answered, process, ready
from tests.bot.gateway.test_shards import short_leases as short_leases
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    pytest.mark.usefixtures("product"),
]
OLDER = "an answer of the older bot"


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long deadlines: neither the older bot nor the database is late."""
    monkeypatch.setattr(interaction_claims, "CLAIMED_WITHIN", 10.0)
    monkeypatch.setattr(interaction_claims, "SEEN_WITHIN", 10.0)


class OlderBot(nextcord.AutoShardedClient):
    """Another session of the same shards, which answers everything at once and claims nothing."""

    async def on_connect(self) -> None:
        """Keep the commands as they are: the library would delete those that this client does not define."""

    async def on_interaction(self, interaction: nextcord.Interaction[nextcord.Client]) -> None:
        await interaction.response.send_message(OLDER, ephemeral=True)


@asynccontextmanager
async def older_bot() -> AsyncIterator[None]:
    """An older bot, running once it is ready."""
    Route.BASE = settings().discord_api_url
    client = OlderBot(intents=nextcord.Intents(guilds=True), guild_ready_timeout=0.1)
    running = asyncio.create_task(client.start(settings().discord_bot_token.get_secret_value()))
    try:
        await client.wait_until_ready()
        yield
    finally:
        await client.close()
        await running


async def has_a_share() -> None:
    """Renew the older bot's share of Discord's rate limit, as it does while it lives."""
    async with transaction() as db:
        await db.execute(
            text(
                "INSERT INTO rate_share (process, kind, wanted, share, seen_at) VALUES (:name, 'bot', 0, 0, now()) "
                "ON CONFLICT (process) DO UPDATE SET seen_at = EXCLUDED.seen_at"
            ),
            {"name": "ab" * 16},
        )


def first_answers(discord: Outside) -> Counter[str]:
    """Return how often each interaction was answered first, including second answers that Discord refused."""
    requests = discord.sandbox.traffic.since(0)["requests"]
    return Counter(one["path"] for one in requests if one["path"].endswith("/callback"))


async def test_beside_an_older_bot_each_interaction_is_answered_once_and_by_us_once_it_has_ended(
    discord: Outside,
) -> None:
    async with process("new") as life:
        await ready(life, 0)
        async with older_bot():
            await has_a_share()
            seen = await answered(discord, BASE)
            assert [one["content"] for one in seen.get("messages", [])] == [OLDER], seen
            async with transaction() as db:
                assert await rate_shares.is_beside_an_older_bot(db), "our own share is none of an older bot"
        await has_a_share()  # it ends, but its share has not expired
        seen = await answered(discord, BASE)
        assert seen["messages"]
        assert OLDER not in str(seen)
        answers = first_answers(discord)
        assert (len(answers), set(answers.values())) == (2, {1})
        async with transaction() as db:
            await db.execute(text("DELETE FROM rate_share WHERE process = :name"), {"name": "ab" * 16})
            assert not await rate_shares.is_beside_an_older_bot(db)


async def test_an_answer_that_has_begun_is_given_before_the_process_ends(discord: Outside) -> None:
    async with process("first") as life:
        await ready(life, 0)
        await discord.control("faults", target="discord", kind="latency", ms=400, seconds=60)
        asked = asyncio.create_task(answered(discord, BASE))

        async def begun() -> bool:
            return any(first_answers(discord).values())

        await is_(begun, True)
        await life.end()
        seen = await asked
        assert seen["messages"][0]["embeds"], seen
