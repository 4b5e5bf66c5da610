"""A server's first steps with the bot, from a role at the bottom to the first role given, and a later outage."""

import pytest
from sqlmodel import select

from gateways import gateways
from models import Grant, Rule, transaction
from services.core.actors import Actor
from services.health import server_health
from services.health.views import HealthView
from tests.bot.test_life import Bot, is_
from tests.bot.test_life import bot as bot
from tests.jobs.conftest import Engine
from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town

pytestmark = pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning")

MANAGE_ROLES, EVERYTHING_ELSE = 1 << 28, 2416004112 & ~(1 << 28)


async def come_in(town: Town, permissions: int = 2416004112) -> None:
    """Invite the bot again, as Discord does it."""
    await town.call("guilds", guild=town.name, action="kick_bot")
    await town.call("guilds", guild=town.name, action="add_bot", position=1, permissions=str(permissions))


async def health(town: Town) -> HealthView:
    async with transaction() as db:
        return await server_health.view(db, gateways(), Actor(0, town.people["ada"]["id"], "ada"), town.server_id)


async def order(town: Town) -> tuple[str, str]:
    seen = (await health(town)).role_order
    return seen.state, seen.text + "".join(problem.mend for problem in seen.problems)


async def rule_of(town: Town) -> tuple[str, str | None]:
    async with transaction() as db:
        row = (await db.exec(select(Rule).where(Rule.server_id == town.server_id))).one()
        return row.state, row.pause_cause


async def move_up(town: Town) -> None:
    guild = await town.guild()
    own = next(role for role in guild["roles"] if role["managed"])
    await town.call("guilds", guild=town.name, action="move_role", role=own["id"], position=len(guild["roles"]) - 1)


async def test_a_bot_at_the_bottom_is_told_to_be_moved_and_then_gives(town: Town, bot: Bot, engine: Engine) -> None:
    await come_in(town)
    async with bot(), engine():
        state, text = await order(town)
        assert (state, "below every role" in text, "Drag it" in text) == ("warning", True, True)

        await town.rule("Holder")
        await town.prove("carol")
        await town.buys("carol")
        await town.call("guilds", guild=town.name, action="edit_role", role="Whale", permissions="0")
        await is_(lambda: rule_of(town), ("paused", "above_bot"))
        state, text = await order(town)
        assert (state, "Drag the bot's role above Holder" in text) == ("bad", True)
        assert await town.has("carol", "Holder") is False

        await move_up(town)
        await is_(lambda: rule_of(town), ("active", None))
        await is_(lambda: town.has("carol", "Holder"), True)
        assert (await order(town))[0] == "good"


@pytest.mark.parametrize("left", [EVERYTHING_ELSE, 0])
async def test_a_permission_that_was_unticked_at_the_invitation_is_named_and_can_be_ticked_later(
    town: Town, bot: Bot, engine: Engine, left: int
) -> None:
    await come_in(town, left)
    async with bot(), engine():
        await town.rule("Holder")
        await town.prove("carol")
        await town.buys("carol")
        await town.call("guilds", guild=town.name, action="edit_role", role="Whale", permissions="0")
        await is_(lambda: rule_of(town), ("paused", "manage_roles"))
        seen = (await health(town)).permissions
        assert (seen.state, "Manage Roles" in [one.name for one in seen.missing]) == ("bad", True)
        assert seen.mend
        assert "invite the bot again" in seen.mend
        if left:
            own = next(role for role in (await town.guild())["roles"] if role["managed"])
            await town.call(
                "guilds", guild=town.name, action="edit_role", role=own["id"], permissions=str(left | MANAGE_ROLES)
            )
        else:
            # Discord makes no role for a bot without permissions, so the invitation page has nothing to tick.
            await come_in(town)
        await move_up(town)
        await is_(lambda: rule_of(town), ("active", None))
        await is_(lambda: town.has("carol", "Holder"), True)


async def test_an_outage_takes_no_role_and_pauses_no_rule(town: Town, bot: Bot, engine: Engine) -> None:
    async with bot(), engine():
        await town.rule("Holder")
        for who in ("carol", "dave"):
            await town.prove(who)
        await town.buys("carol")
        await town.look()
        await is_(lambda: town.has("carol", "Holder"), True)
        mark = await town.mark()
        guild = (await town.guild())["id"]
        await town.call("gateway", action="unavailable", guild=town.name)
        gone = {"message": "Unknown Guild", "code": 10004}
        await town.call(
            "faults", target="discord", kind="answer", path=f"/guilds/{guild}*", status=404, body=gone, seconds=600
        )
        await town.buys("dave")
        await town.look()
        await is_(lambda: tried(town, "dave"), True)
        await is_(lambda: rule_of(town), ("active", None))
        assert "DELETE" not in await town.writes(mark)
        await town.heal()
        await town.call("gateway", action="available", guild=town.name)
        await is_(lambda: town.has("dave", "Holder"), True)
        assert await town.has("carol", "Holder") is True
        assert await rule_of(town) == ("active", None)


async def tried(town: Town, who: str) -> bool:
    async with transaction() as db:
        rows = await db.exec(select(Grant).where(Grant.discord_id == town.people[who]["id"], Grant.attempts > 0))
        return rows.first() is not None
