"""Events in a guild while the bot is away: they cost nobody a role, and cause no needless write."""

import pytest

from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at


async def comes_back(town: Town, who: str = "carol") -> None:
    """Let the person leave and rejoin unheard by the bot; their roles are dropped with the membership."""
    for action in ("leave", "join"):
        await town.call("members", guild=town.name, user=town.people[who]["id"], action=action)
    assert not await town.has(who, "Holder")


async def _nothing_is_ours(town: Town) -> bool:
    return not await grants(town)


async def test_who_came_back_unheard_and_has_sold_is_not_taken_what_went_with_the_membership(
    town: Town, engine: Engine
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await comes_back(town)
        start = await town.mark()
        await town.sells(token)
        await town.look()
        await until(lambda: _nothing_is_ours(town))
        await looked_at(town)
    assert await town.writes(start) == []
    told = [kind for kind in await kinds(town) if kind.startswith(("role.", "member."))]
    assert told == ["role.given", "member.left"]


async def test_a_role_that_somebody_else_took_unheard_is_not_taken_again(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        carol = {"guild": town.name, "user": town.people["carol"]["id"]}
        await town.call("members", **carol, action="remove_role", role="Holder")
        start = await town.mark()
        await town.sells(token)
        await town.look()
        await until(lambda: _nothing_is_ours(town))
    assert await town.writes(start) == []
    assert [kind for kind in await kinds(town) if kind.startswith("role.")] == ["role.given", "role.lost"]


@pytest.mark.parametrize("rejoins", [True, False])
async def test_somebody_who_lost_a_role_unheard_is_reconciled_as_soon_as_the_bot_is_back(
    town: Town, engine: Engine, rejoins: bool
) -> None:
    """Nobody waits for the daily sweep: the list of members shows that a role of ours is missing."""
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        if rejoins:
            await comes_back(town)
        else:
            carol = {"guild": town.name, "user": town.people["carol"]["id"]}
            await town.call("members", **carol, action="remove_role", role="Holder")
        await town.see()
        if rejoins:
            await given(town)
        else:

            async def told() -> bool:
                return "role.lost" in await kinds(town)

            await until(told)
