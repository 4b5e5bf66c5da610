"""A role given by another bot and handed over by an admin: it is ours afterwards, and judged like any other."""

import asyncio
from typing import Any

from sqlalchemy import text
from sqlmodel import col, select

from jobs.role_writer import RoleWriter
from models import Due, Event, Grant, transaction
from services.core import queue
from services.guilds import members
from services.guilds.members import MemberFacts
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import looked_at
from tests.jobs.writing.test_rivals import moves, moves_by_others, told
from tests.support.builders import open_intents


async def grants(town: Town) -> dict[str, Grant]:
    """Return the town's grants by the person's name."""
    names = {person["id"]: name for name, person in town.people.items()}
    async with transaction() as db:
        rows = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).all()
    return {names[row.discord_id]: row for row in rows}


async def handed(town: Town, who: str) -> None:
    """Give the role as somebody else."""
    person = town.people[who]["id"]
    await town.call("members", guild=town.name, user=person, action="add_role", role="Holder")


async def test_who_holds_keeps_the_role_and_who_does_not_loses_it(town: Town, engine: Engine) -> None:
    await handed(town, "carol")
    await handed(town, "dave")  # a member who has proved no wallet
    await town.see()
    await town.buys("carol")
    start = await town.mark()
    async with engine():
        await town.prove("carol")
        await town.rule("Holder", takes_over=True)

        async def settled() -> bool:
            return set(await grants(town)) == {"carol"} and not await town.has("dave", "Holder")

        await until(settled)
    assert await town.has("carol", "Holder")
    assert (kept := (await grants(town))["carol"]).state == "held"
    assert kept.had_before
    assert await town.writes(start) == ["DELETE"]
    async with transaction() as db:
        kinds = await db.exec(
            select(Event.kind).where(Event.server_id == town.server_id, Event.subject == town.people["dave"]["id"])
            .order_by(col(Event.id))
        )  # fmt: skip
        assert list(kinds.all()) == ["role.taken_over", "role.taken"]


async def test_a_bots_role_is_neither_taken_over_nor_judged(town: Town, engine: Engine) -> None:
    await handed(town, "dave")
    await town.see(bot="dave")
    await town.rule("Holder", takes_over=True)
    async with transaction() as db:
        assert await queue.mark_all(db) == 0
        bot = MemberFacts(town.people["dave"]["id"], "dave", frozenset({await town.role("Holder")}), bot=True)
        await members.joined(db, town.server_id, bot)
        assert (await db.exec(select(Due))).all() == []
    await town.see()
    async with transaction() as db:
        assert await queue.mark_all(db) > 0, "somebody who is not a bot is looked at"


async def test_the_grace_time_runs_for_a_role_that_was_handed_over(town: Town, engine: Engine) -> None:
    await handed(town, "dave")
    await town.see()
    start = await town.mark()
    async with engine():
        await town.rule("Holder", takes_over=True, removal_mode="grace", removal_hours=24)

        async def waiting() -> bool:
            return (row := (await grants(town)).get("dave")) is not None and row.no_since is not None

        await until(waiting)
    assert await town.has("dave", "Holder")
    assert await town.writes(start) == []


async def test_nothing_is_taken_over_while_the_chain_cannot_be_read(town: Town, engine: Engine) -> None:
    await handed(town, "dave")
    await town.see()
    await town.break_("down", "rpc:base", "rpc2:base")
    start = await town.mark()
    async with engine():
        await town.prove("dave")
        await town.rule("Holder", takes_over=True)

        async def tried() -> bool:
            return bool(await town.requests(start, "rpc:base"))

        await until(tried)
    assert await grants(town) == {}
    assert await town.has("dave", "Holder")


async def waits_for_its_role(town: Town, **rule: Any) -> str:
    """Let carol buy a token, so that her role is to be given; return the token. Nothing is sent yet."""
    await town.rule("Holder", **rule)
    token = await town.buys("carol")
    await town.prove("carol")
    await looked_at(town)
    assert (await grants(town))["carol"].state == "giving"
    return token


async def written(town: Town) -> list[str]:
    """Carry out the one open change, and return the methods of the requests that change a role."""
    start = await town.mark()
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    return await town.writes(start)


async def test_a_role_that_somebody_gives_while_ours_waits_is_not_ours(town: Town) -> None:
    token = await waits_for_its_role(town)
    await moves(town, "ada", "add_role")
    assert await written(town) == []
    await looked_at(town)
    assert await grants(town) == {}
    assert [move.taken for move in await moves_by_others(town)] == [False]
    await town.sells(token)
    await looked_at(town)
    assert await town.has("carol", "Holder")


async def test_a_role_that_somebody_gives_while_ours_waits_is_taken_over_if_its_rule_says_so(town: Town) -> None:
    await waits_for_its_role(town, takes_over=True)
    await moves(town, "ada", "add_role")
    assert await written(town) == []
    await looked_at(town)
    ours = (await grants(town))["carol"]
    assert (ours.state, ours.had_before) == ("held", True)


async def test_a_role_that_the_gateway_showed_by_mistake_is_given(town: Town) -> None:
    await waits_for_its_role(town)
    await moves(town, "ada", "add_role")
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="remove_role", role="Holder")
    assert await written(town) == ["PUT"]
    assert (await grants(town))["carol"].state == "held"


async def test_a_role_that_somebody_gives_because_discord_refused_us_is_not_ours(town: Town) -> None:
    await town.rule("Founder")
    await town.buys("carol")
    await town.prove("carol")
    await looked_at(town)
    assert await written(town) == ["PUT"], "which Discord refuses, because the role is above the bot's"
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="add_role", role="Founder")
    await told(town, "carol")
    async with transaction() as db:
        await db.execute(text("UPDATE role_refusal SET next_at = now()"))
        await db.execute(text('UPDATE "grant" SET next_at = now()'))
    assert await written(town) == []
    assert await grants(town) == {}
