"""The first interaction of a member of whom nothing else has told us."""

import asyncio

import pytest

from bot.interaction import unstored_members
from tests.bot.test_life import Bot, act, is_
from tests.bot.test_life import bot as bot
from tests.bot.test_life import pytestmark as pytestmark
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town


async def test_a_newcomer_who_asks_for_their_roles_first_is_answered(town: Town, bot: Bot) -> None:
    await town.rule("Holder")
    async with bot():

        async def answers() -> bool:
            return (await act(town, "carol", "command", name="help"))["messages"][0]["ephemeral"]

        await is_(answers, True)
        for number in range(3):
            town.people["erin"] = await town.call("people", username=f"erin{number}{town.name[-8:]}")
            await town.call("members", guild=town.name, user=town.people["erin"]["id"], action="join")
            said = await act(town, "erin", "command", name="why")
            (embed,) = said["messages"][0]["embeds"]
            assert embed["fields"][0]["name"] == "❌ Holder: you do not have it", embed


async def test_an_answer_waits_for_its_own_member_and_not_for_ever() -> None:
    with unstored_members.storing(1):
        waits = asyncio.create_task(unstored_members.stored(1))
        await asyncio.wait_for(unstored_members.stored(2), 5)
        assert not waits.done()
    await asyncio.wait_for(waits, 5)


async def test_an_answer_does_not_wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unstored_members, "LONGEST_SECONDS", 0.0)
    with unstored_members.storing(1):
        await asyncio.wait_for(unstored_members.stored(1), 5)
