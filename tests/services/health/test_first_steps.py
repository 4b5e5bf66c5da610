"""The steps that are left to do in a new server, according to our tables."""

import pytest

from models import Server, transaction
from services.health import first_steps
from services.health.first_steps import BOT, CHANNEL, MEMBER, ORDER, RULE, FirstStep
from services.rules import pausing
from tests.support.builders import a_member, a_rule, a_server, address

pytestmark = pytest.mark.usefixtures("database")


async def steps(server_id: int) -> dict[str, FirstStep]:
    async with transaction() as db:
        found = await first_steps._steps(db, await db.get_one(Server, server_id))
    assert [one.key for one in found] == [BOT, ORDER, RULE, CHANNEL, MEMBER]
    return {one.key: one for one in found}


async def done(server_id: int) -> set[str]:
    return {key for key, one in (await steps(server_id)).items() if one.done}


async def server_with(**fields: object) -> int:
    async with transaction() as db:
        server = await a_server(db, bot_invited=False)
        for name, value in fields.items():
            setattr(server, name, value)
        return server.id or 0


async def test_each_step_is_done_by_what_happened() -> None:
    server_id = await server_with()
    assert await done(server_id) == set()
    async with transaction() as db:
        server = await db.get_one(Server, server_id)
        server.bot_invited, server.bot_too_low = True, False
    assert await done(server_id) == {BOT, ORDER}
    async with transaction() as db:
        await a_rule(db, await db.get_one(Server, server_id), "7")
    assert await done(server_id) == {BOT, ORDER, RULE}
    async with transaction() as db:
        (await db.get_one(Server, server_id)).verify_channel_id = "8"
    assert await done(server_id) == {BOT, ORDER, RULE, CHANNEL}
    async with transaction() as db:
        await a_member(db, await db.get_one(Server, server_id), wallet=address())
    assert await done(server_id) == {BOT, ORDER, RULE, CHANNEL, MEMBER}


async def test_a_role_order_that_nobody_has_read_is_not_known_yet() -> None:
    order = (await steps(await server_with(bot_invited=True)))[ORDER]
    assert (order.done, order.text) == (False, "Not known yet: the bot has not read your server's roles.")


async def test_a_bot_at_the_bottom_is_to_be_moved_up_before_there_is_a_rule() -> None:
    order = (await steps(await server_with(bot_invited=True, bot_too_low=True)))[ORDER]
    assert (order.done, "drag the bot's role above the roles that it should give" in order.text) == (False, True)


@pytest.mark.parametrize(("cause", "is_done"), [("above_bot", False), ("manage_roles", False), ("dangerous", True)])
async def test_a_rule_whose_role_is_above_the_bot_names_that_role(cause: str, is_done: bool) -> None:
    server_id = await server_with(bot_invited=True, bot_too_low=False)
    async with transaction() as db:
        rule = await a_rule(db, await db.get_one(Server, server_id), "7")
        rule.role_name = "Whale"
    async with transaction() as db:
        await pausing.pause_role(db, server_id, "7", "It stands above.", cause)
    order = (await steps(server_id))[ORDER]
    assert (order.done, "Whale" in order.text) == (is_done, not is_done)


async def test_a_bot_that_was_removed_is_the_first_step_again() -> None:
    server_id = await server_with(bot_invited=False, bot_too_low=False, verify_channel_id="8")
    assert await done(server_id) == {CHANNEL}
