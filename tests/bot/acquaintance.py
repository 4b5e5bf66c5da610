"""People who have met us, for tests that are not about strangers."""

from models import transaction
from services.accounts import users
from tests.sandbox.conftest import Outside


async def all_known(discord: Outside) -> None:
    """Everybody there is in Discord has met us, the bot itself included: only such members are stored."""
    world = await discord.world()
    people = {one["user_id"] for guild in world["guilds"] for one in guild["members"]}
    async with transaction() as db:
        for discord_id in sorted(people | {one["id"] for one in world["users"]}):
            await users.ensure(db, discord_id, "somebody")
