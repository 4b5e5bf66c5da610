"""People whom the product stores, and waits for what the bot does in its own time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from sqlmodel import select

from models import Member, transaction
from services.accounts import users
from services.health import readiness
from tests.sandbox.conftest import Outside


async def all_known(discord: Outside) -> None:
    """Everybody in Discord has used the bot, the bot itself included: only such members are stored."""
    world = await discord.world()
    people = {one["user_id"] for guild in world["guilds"] for one in guild["members"]}
    async with transaction() as db:
        for discord_id in sorted(people | {one["id"] for one in world["users"]}):
            await users.ensure(db, discord_id, "somebody")


async def members() -> Sequence[Member]:
    """Return every stored member."""
    async with transaction() as db:
        return (await db.exec(select(Member))).all()


async def names() -> set[str]:
    return {one.name for one in await members()}


async def is_(state: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until the reader returns the value, and fail with the last value that it returned."""
    deadline = time.monotonic() + 120
    while (seen := await state()) != wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    assert seen == wanted


async def is_ready() -> bool:
    """Return whether the bot has stored all facts about its servers at startup, not just their members."""
    async with transaction() as db:
        return await readiness.bot_ready(db, None)
