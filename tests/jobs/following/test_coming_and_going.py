"""Leaving a server, joining it and being screened: a missed event never costs anybody a role."""

from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, no_grants, taken


async def test_who_left_is_no_error_and_gets_the_role_back_on_return(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="leave")
    async with engine():
        await until(lambda: no_grants(town))
        await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="join")
        await town.see()
        await town.look()
        await given(town)


async def test_who_left_and_came_back_unheard_gets_the_role_again(town: Town, engine: Engine) -> None:
    """The bot was away meanwhile: Discord dropped the role with the membership, and nobody took it."""
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        for action in ("leave", "join"):
            await town.call("members", guild=town.name, user=town.people["carol"]["id"], action=action)
        assert not await town.has("carol", "Holder")
        await town.see()
        await looked_at(town)
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_who_is_left_out_of_a_list_is_asked_for_by_name_and_loses_nothing(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)
        await town.see(without="carol")
        await looked_at(town)
        await given(town)
        assert "role.lost" not in await kinds(town)
        await town.sells(token)
        await looked_at(town)
        await taken(town)


async def test_who_left_while_nobody_listened_is_let_go_of_once_discord_says_so(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)
        await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="leave")
        await town.see()
        await until(lambda: no_grants(town))
    assert "member.left" in await kinds(town)


async def test_somebody_who_joined_while_nobody_listened_is_reconciled_as_soon_as_they_are_seen(
    town: Town, engine: Engine
) -> None:
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="leave")
    await town.see()
    await town.buys("carol")
    await town.prove("carol")
    async with engine():
        await town.rule("Holder")
        await looked_at(town)
        await town.call("members", **carol, action="join")
        await town.see()
        await given(town)


async def test_who_is_still_being_screened_waits_for_the_role(town: Town, engine: Engine) -> None:
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="set_pending", pending=True)
    await town.see()
    for who in ("carol", "dave"):
        await town.buys(who)
        await town.prove(who)
    mark = await town.mark()
    async with engine():
        await town.rule("Holder")
        await given(town, "dave")
        assert {row.state for row in await grants(town)} == {"giving", "held"}
        assert await town.writes(mark) == ["PUT"]
        await town.call("members", **carol, action="set_pending", pending=False)
        await town.see()
        await given(town, "carol")
    assert await town.writes(mark) == ["PUT", "PUT"]
