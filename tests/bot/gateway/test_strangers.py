"""A crowd of people who never used the bot joins, gets roles and leaves, and the real bot writes no row about them."""

import pytest
from sqlalchemy import text

from models import transaction
from tests.bot.acquaintance import is_, is_ready, members, names
from tests.bot.test_faulty_answers import EVERYBODY
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.bot.test_without_intent import a_rule_for
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]
CROWD = 60
BESIDES = {"provider_state", "bot_process", "shard", "guild_picture", "counter", "rate_share", "refusal", "schedule"}
"""Tables about the processes and Discord itself, which change with time."""


async def sizes() -> dict[str, int]:
    """Return the number of rows in each other table."""
    async with transaction() as db:
        found = await db.execute(
            text("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        )
        tables = [str(name) for (name,) in found.all() if name not in BESIDES]
        return {
            table: int((await db.execute(text(f'SELECT count(*) FROM "{table}"'))).scalar_one()) for table in tables
        }


async def roles_of_carol() -> int:
    return next(len(one.roles) for one in await members() if one.name == "Carol")


async def test_strangers_who_come_change_and_go_leave_no_row(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    await is_(is_ready, True)
    await a_rule_for(discord, "Holder")
    await is_(roles_of_carol, 0)
    before = await sizes()
    assert before["member"] == len(EVERYBODY)
    crowd = await discord.control("guilds", action="populate", guild=BASE, count=CROWD)
    people = [str(one) for one in range(int(crowd["first"]), int(crowd["last"]) + 1)]
    for action in ("leave", "join", "add_role", "remove_role", "leave", "join"):
        for who in people:
            await discord.control("members", guild=BASE, user=who, action=action, role="Whale")
    # The event of a stored member comes after all of theirs.
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await is_(roles_of_carol, 1)
    assert await sizes() == before
