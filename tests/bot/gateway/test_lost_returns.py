"""Returns and departures that Discord does not report: the next sweep or an admin's re-check finds them."""

from collections.abc import Awaitable, Callable

import pytest

from bot import member_reader
from gateways import gateways
from models import transaction
from services.core.actors import Actor
from services.triggers import sweep
from tests.bot.acquaintance import is_, is_ready, names
from tests.bot.test_faulty_answers import EVERYBODY, server
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.bot.test_without_intent import a_rule_for, grants, has, is_known, proves, sweeps
from tests.jobs.conftest import Engine
from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_SECONDS", "REST_SECONDS"):
        monkeypatch.setattr(member_reader, name, 0.05)


async def rechecks() -> None:
    row = await server()
    async with transaction() as db:
        await sweep.recheck_server(db, gateways(), Actor(0, row.owner_id or "", "ada"), row.id or 0)


async def lose(discord: Outside, event: str) -> None:
    await discord.control("gateway", action="lose", event=event, guild=BASE, times=1)


async def has_the_role(discord: Outside) -> None:
    """Give carol a role by a rule."""
    await is_(names, EVERYBODY)
    await is_(is_ready, True)
    await a_rule_for(discord, "Whale")
    await proves(discord, "carol")
    await is_(lambda: has(discord, "carol", "Whale"), True)
    await is_(grants, ["held"])


@pytest.mark.parametrize("heal", [sweeps, rechecks])
async def test_a_member_whose_return_is_not_reported_gets_their_role_again(
    discord: Outside, living: None, engine: Engine, heal: Callable[[], Awaitable[None]]
) -> None:
    async with engine():
        await has_the_role(discord)
        await lose(discord, "GUILD_MEMBER_ADD")
        await discord.control("members", guild=BASE, user="carol", action="leave")
        await is_(lambda: is_known("carol"), False)
        await discord.control("members", guild=BASE, user="carol", action="join")
        await heal()
        await is_(lambda: has(discord, "carol", "Whale"), True)


async def test_a_recheck_finds_who_left_and_who_came_back_although_nothing_was_reported(
    discord: Outside, living: None, engine: Engine
) -> None:
    async with engine():
        await has_the_role(discord)
        await lose(discord, "GUILD_MEMBER_REMOVE")
        await discord.control("members", guild=BASE, user="carol", action="leave")
        await rechecks()
        await is_(lambda: is_known("carol"), False)
        await is_(grants, [])
        await discord.control("members", guild=BASE, user="carol", action="join")
        await is_(lambda: has(discord, "carol", "Whale"), True)
        for event, action in (("GUILD_MEMBER_REMOVE", "leave"), ("GUILD_MEMBER_ADD", "join")):
            await lose(discord, event)
            await discord.control("members", guild=BASE, user="carol", action=action)
        assert not await has(discord, "carol", "Whale")
        await rechecks()
        await is_(lambda: has(discord, "carol", "Whale"), True)
