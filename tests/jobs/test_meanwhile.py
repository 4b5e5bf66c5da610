"""Two of the product's parts at work on one role at the same time, or one that ends in between: nobody is forgotten."""

import pytest

from gateways import gateways
from jobs import looker
from models import Member, transaction
from services import carried_out, guilds, intents
from services.intents import Intent, Outcome
from services.looked import Round
from services.members import MemberFacts
from tests.jobs.conftest import Engine
from tests.jobs.test_engine import given, grants, kinds, looked_at, rule, taken
from tests.jobs.town import Town


async def the_intent() -> Intent:
    async with transaction() as db:
        (intent,) = await intents.open_intents(db, 10, ())
    return intent


async def recorded(intent: Intent, outcome: Outcome) -> None:
    async with transaction() as db:
        await carried_out.record(db, intent, outcome)


async def goes_and_comes_back(town: Town, who: str = "carol") -> None:
    """The person leaves and joins again, and the bot hears of both."""
    user, guild = town.people[who], (await town.guild())["id"]
    for action in ("leave", "join"):
        await town.call("members", guild=town.name, user=user["id"], action=action)
    async with transaction() as db:
        await guilds.member_left(db, guild, user["id"])
        await guilds.member_joined(db, guild, MemberFacts(user["id"], user["username"], frozenset()))


async def known(town: Town, who: str = "carol") -> Member:
    async with transaction() as db:
        return await db.get_one(Member, (town.server_id, town.people[who]["id"]))


async def test_who_buys_again_while_the_role_is_being_taken_gets_it_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look began before the removal was done, and ends after it."""
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    intent = await the_intent()
    await town.buys("carol")
    looks = looker.decisions.look

    async def and_meanwhile_it_is_taken(*arguments: object) -> Round:
        done = await looks(*arguments)  # pyright: ignore[reportArgumentType]
        await recorded(intent, await intents.carry_out(gateways(), intent, sure=True))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(looker.decisions, "look", and_meanwhile_it_is_taken)
        await looked_at(town)
    assert not await town.has("carol", "Holder")
    async with engine():
        await given(town)


async def test_a_gift_that_is_written_down_after_its_member_left_and_came_back_hides_nothing(
    town: Town, engine: Engine
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    intent = await the_intent()
    outcome = await intents.carry_out(gateways(), intent, sure=True)
    await goes_and_comes_back(town)
    await recorded(intent, outcome)
    assert (await known(town)).roles == []
    await looked_at(town)
    async with engine():
        await given(town)


async def test_who_came_back_before_it_was_written_down_that_they_had_left_is_there(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    intent = await the_intent()
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="leave")
    outcome = await intents.carry_out(gateways(), intent, sure=True)
    assert outcome.result is intents.Result.LEFT
    await town.call("members", **carol, action="join")
    await goes_and_comes_back(town)
    await recorded(intent, outcome)
    assert (await known(town)).left_at is None
    async with engine():
        await given(town)


async def test_a_role_that_was_being_taken_when_its_rule_was_paused_is_given_again_to_who_holds_again(
    town: Town, engine: Engine
) -> None:
    """It was our own hand that took it, although the pause had turned the removal round by then."""
    token = await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    intent = await the_intent()
    outcome = await intents.carry_out(gateways(), intent, sure=True)
    async with transaction() as db:
        await guilds.rule_states.pause_role(db, town.server_id, intent.role_id, "For a while.", "refused")
    await recorded(intent, outcome)
    await taken(town)
    await town.see()
    found = await rule(rule_id)
    assert found is not None
    assert found.state == "active", "nothing stands against the role"
    await town.buys("carol")
    async with engine():
        await town.look()
        await given(town)
    assert [kind for kind in await kinds(town) if kind.startswith("role.")] == [
        "role.given",
        "role.taken",
        "role.given",
    ]
    assert [row.state for row in await grants(town)] == ["held"]
