"""Two parts of the product change one role at the same time, or one of them ends midway: nobody is forgotten."""

import asyncio

import pytest
from sqlalchemy import text

from gateways import gateways
from gateways.discord.types import GuildMember as LiveMember
from gateways.discord.types import refusal
from gateways.transport.errors import ProviderConfused
from jobs.reconciler import Reconciler
from jobs.role_writer import RoleWriter
from models import Member, transaction
from services.core import queue
from services.engine import read_and_confirm
from services.engine.reconcile_outcome import BatchOutcome
from services.guilds.members import MemberFacts
from services.roles import outbox, write_results
from services.roles.outbox import Intent, WriteOutcome
from services.rules import pausing
from services.runtime.task_cancellation import stop
from services.triggers import gateway_events
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, rule, taken
from tests.support.builders import open_intents


async def the_intent() -> Intent:
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    return intent


async def about_to_lose_it(town: Town, engine: Engine) -> Intent:
    """carol, who had the role and has sold her token: its removal is intended, and nothing runs any more."""
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    return await the_intent()


async def recorded(intent: Intent, outcome: WriteOutcome) -> None:
    async with transaction() as db:
        await write_results.record(db, intent, outcome)


async def goes_and_comes_back(town: Town, who: str = "carol") -> None:
    """Let the person leave and rejoin, and tell the bot of both."""
    user, guild = town.people[who], (await town.guild())["id"]
    for action in ("leave", "join"):
        await town.call("members", guild=town.name, user=user["id"], action=action)
    async with transaction() as db:
        await gateway_events.member_left(db, guild, user["id"])
        await gateway_events.member_joined(db, guild, MemberFacts(user["id"], user["username"], frozenset()))


async def known(town: Town, who: str = "carol") -> Member:
    async with transaction() as db:
        return await db.get_one(Member, (town.server_id, town.people[who]["id"]))


async def test_who_buys_again_while_the_role_is_being_taken_gets_it_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconcile begins before the removal is done, and ends after it."""
    intent = await about_to_lose_it(town, engine)
    await town.buys("carol")
    decide_cases = read_and_confirm.decide_cases

    async def and_meanwhile_it_is_taken(*arguments: object, **more: object) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)  # pyright: ignore[reportArgumentType]
        await recorded(intent, await outbox.carry_out(gateways(), intent, sure=True))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_meanwhile_it_is_taken)
        await looked_at(town)
    assert not await town.has("carol", "Holder")
    async with engine():
        await given(town)


async def test_of_a_batch_only_those_are_written_down_of_whom_nothing_new_became_known(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    for who in ("carol", "dave"):
        await town.buys(who)
        await town.prove(who)
    await town.look()
    decide_cases, seen = read_and_confirm.decide_cases, list[int]()

    async def and_meanwhile_something_of_dave_moves(*arguments: object, **more: object) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)  # pyright: ignore[reportArgumentType]
        seen.append(len(done.outcomes))
        async with transaction() as db:
            await queue.mark_member(db, town.server_id, town.people["dave"]["id"], queue.SEEN)
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_meanwhile_something_of_dave_moves)
        await Reconciler(asyncio.Event()).once()
    assert seen == [2]
    assert [row.discord_id for row in await grants(town)] == [town.people["carol"]["id"]]
    async with engine():
        await given(town, "dave")


async def test_who_buys_again_while_they_are_read_before_the_removal_keeps_the_role(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, reads = await about_to_lose_it(town, engine), gateways().discord.member
    start = await town.mark()

    async def and_meanwhile_they_buy(guild: str, user: str) -> LiveMember:
        member = await reads(guild, user)
        await town.buys("carol")
        await looked_at(town)
        return member

    with monkeypatch.context() as patched:
        patched.setattr(gateways().discord, "member", and_meanwhile_they_buy)
        await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    async with engine():
        await until(lambda: _all_held(town))
    assert await town.writes(start) == []


async def _all_held(town: Town) -> bool:
    return {row.state for row in await grants(town)} == {"held"}


async def test_a_gift_that_is_written_down_after_its_member_left_and_came_back_hides_nothing(
    town: Town, engine: Engine
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    intent = await the_intent()
    outcome = await outbox.carry_out(gateways(), intent, sure=True)
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
    outcome = await outbox.carry_out(gateways(), intent, sure=True)
    assert outcome.result is outbox.WriteResult.LEFT
    await town.call("members", **carol, action="join")
    await goes_and_comes_back(town)
    await recorded(intent, outcome)
    assert (await known(town)).left_at is None
    async with engine():
        await given(town)


async def test_a_role_that_was_being_taken_when_its_rule_was_paused_is_given_again_to_who_holds_again(
    town: Town, engine: Engine
) -> None:
    """We took the role ourselves, although the pause had reversed the removal by then."""
    token = await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    intent = await the_intent()
    outcome = await outbox.carry_out(gateways(), intent, sure=True)
    async with transaction() as db:
        await gateway_events.pausing.pause_role(db, town.server_id, intent.role_id, "For a while.", "above_bot")
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


async def ends_while(intent: Intent, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Send the writer's request, and kill the writer before Discord answers."""
    sent = asyncio.Event()

    async def unheard(*_: object) -> None:
        sent.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(gateways().discord, call, unheard)
        writing = asyncio.create_task(RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at))
        async with asyncio.timeout(30):
            await sent.wait()
        await stop(writing)


async def carried_out(town: Town, action: str) -> None:
    """Let Discord give carol the role, or take it, as it does with a request that it answered too late."""
    carol = town.people["carol"]["id"]
    await town.call("members", guild=town.name, user=carol, action=action, role=await town.role("Holder"))


async def time_passes(town: Town) -> None:
    """Let two minutes pass for the requests that Discord has not answered."""
    async with transaction() as db:
        await db.execute(text("UPDATE unanswered SET at = at - interval '2 minutes'"))
        await db.execute(
            text(
                "UPDATE \"grant\" SET created_at = created_at - interval '2 minutes', next_at = now() "
                "WHERE server_id = :server AND next_at IS NOT NULL"
            ),
            {"server": town.server_id},
        )


async def test_a_removal_that_the_writer_did_not_live_to_see_is_waited_for_before_the_role_is_given_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ends_while(await about_to_lose_it(town, engine), monkeypatch, "remove_role")
    await town.buys("carol")
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["giving"], "it is right again"
    async with transaction() as db:
        assert await open_intents(db, 10, ()) == [], "but Discord may take it yet"
    await carried_out(town, "remove_role")
    await time_passes(town)
    async with engine():
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_a_gift_that_the_writer_did_not_live_to_see_is_waited_for_before_it_counts_as_taken(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    await ends_while(await the_intent(), monkeypatch, "add_role")
    await town.sells(token)
    await looked_at(town)
    intent = await the_intent()
    await recorded(intent, await outbox.carry_out(gateways(), intent, sure=False))
    assert [row.state for row in await grants(town)] == ["taking"], "Discord may give it yet"
    await carried_out(town, "add_role")
    await time_passes(town)
    async with engine():
        await taken(town)


async def test_a_removal_that_came_late_during_a_pause_is_ours_and_the_role_is_given_again(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = await about_to_lose_it(town, engine)
    await ends_while(intent, monkeypatch, "remove_role")
    async with transaction() as db:
        await gateway_events.pausing.pause_role(db, town.server_id, intent.role_id, "For a while.", "above_bot")
    await carried_out(town, "remove_role")
    await town.buys("carol")
    await town.see()
    await time_passes(town)
    async with engine():
        await town.look()
        await given(town)
        assert "role.lost" not in await kinds(town)
        # Once only: later removals by an admin are not reverted.
        await carried_out(town, "remove_role")
        await town.see()
        await until(lambda: _told(town, "role.lost"))


async def _told(town: Town, kind: str) -> bool:
    return kind in await kinds(town)


async def refused_role(town: Town) -> int:
    """carol and dave wait for a role above the bot's, and Discord has refused the first of the two changes."""
    for who in ("carol", "dave"):
        await town.buys(who)
        await town.prove(who)
    rule_id = await town.rule("Founder")
    await looked_at(town)
    async with transaction() as db:
        first, _ = await open_intents(db, 10, ())
    outcome = await outbox.carry_out(gateways(), first, sure=True)
    assert outcome.result is outbox.WriteResult.REFUSED
    await recorded(first, outcome)
    return rule_id


async def pause_is_over() -> None:
    async with transaction() as db:
        await db.execute(text("UPDATE role_refusal SET next_at = now()"))
        await db.execute(text("UPDATE \"grant\" SET next_at = now() WHERE state = 'giving'"))


async def open_now() -> list[Intent]:
    async with transaction() as db:
        return await open_intents(db, 10, ())


async def test_a_refused_role_is_tried_again_once_its_pause_is_over_and_by_no_event_of_a_role(
    town: Town, engine: Engine
) -> None:
    """Discord blocks an address that keeps asking, so one refusal stands for everybody who is to get the role."""
    rule_id = await refused_role(town)
    assert await open_now() == []
    start = await town.mark()
    await town.call("guilds", guild=town.name, action="move_role", role="Founder", position=1)
    await town.see()
    found = await rule(rule_id)
    assert found is not None
    assert found.state == "paused"
    assert await open_now() == []
    await pause_is_over()
    async with engine():
        for who in ("carol", "dave"):
            await given(town, who, "Founder")
    assert await town.writes(start) == ["PUT", "PUT"]
    found = await rule(rule_id)
    assert found is not None
    assert found.state == "active"


async def test_the_pauses_of_a_role_that_goes_on_being_refused_grow_and_each_try_is_one_request(town: Town) -> None:
    rule_id = await refused_role(town)
    start, pauses = await town.mark(), list[int]()
    for _ in range(5):
        async with transaction() as db:
            seconds = "SELECT round(extract(epoch FROM next_at - now()) / 60) FROM role_refusal"
            pauses.append(int((await db.execute(text(seconds))).scalar_one()))
        await pause_is_over()
        (trial,) = await open_now()
        await recorded(trial, await outbox.carry_out(gateways(), trial, sure=False))
        found = await rule(rule_id)
        assert found is not None
        assert found.state == "paused"
        assert await open_now() == []
    assert pauses == [1, 5, 30, 120, 120]
    assert await town.writes(start) == ["PUT"] * 5


async def test_a_refused_role_that_nobody_waits_for_is_tried_by_its_rules(town: Town) -> None:
    rule_id = await refused_role(town)
    async with transaction() as db:
        await db.execute(text('DELETE FROM "grant"'))
        assert await pausing.retry_refused(db) == 0
    await pause_is_over()
    async with transaction() as db:
        assert await pausing.retry_refused(db) == 1
    found = await rule(rule_id)
    assert found is not None
    assert found.state == "active"
    await looked_at(town)
    assert len(await open_now()) == 1, "the next refusal is to cost one request, not one for each member"


async def test_whatever_discord_forbids_pauses_the_rules_of_the_role(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.buys("carol")
    await town.prove("carol")
    rules = {code: await town.rule(role) for code, role in ((60003, "Holder"), (123456, "Collector"), (50028, "Whale"))}
    await looked_at(town)
    intents = {intent.role_id: intent for intent in await open_now()}

    async def forbidden(*_: object) -> None:
        raise refusal(status, {"code": code, "message": "Two factor is required for this operation"})

    monkeypatch.setattr(gateways().discord, "add_role", forbidden)
    for code, rule_id in rules.items():
        status = 400 if code == 50028 else 403
        found = await rule(rule_id)
        assert found is not None
        assert found.state == "active"
        intent = intents[found.role_id]
        await recorded(intent, await outbox.carry_out(gateways(), intent, sure=True))
        found = await rule(rule_id)
        assert found is not None
        assert found.state == "paused", code
        assert "Two factor is required" in (found.pause_reason or "")
        assert ("two-factor authentication" in (found.pause_reason or "")) is (code == 60003)


ODD_ANSWERS: tuple[Exception, ...] = (
    refusal(403, "<html>"), refusal(403, {"code": 40333, "message": "internal network error"}),
    refusal(405, {"code": 0, "message": "405: Method Not Allowed"}), refusal(404, "<html>"),
    ProviderConfused("Discord", "HTTP 200 to a write"), refusal(404, {"code": 10007, "message": "Unknown Member"}),
    refusal(404, {"code": 10011, "message": "Unknown Role"}), refusal(404, {"code": 10004, "message": "Unknown Guild"}),
)  # fmt: skip


async def test_one_odd_answer_to_a_role_write_costs_nobody_anything(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = [f"p{number}" for number in range(len(ODD_ANSWERS))]
    await town.join(*crowd)
    await town.all_buy(*crowd)
    for who in crowd:
        await town.prove(who)
    rule_id = await town.rule("Holder")
    await looked_at(town)
    start, writes, told = await town.mark(), gateways().discord.add_role, list[Exception]()

    async def odd_at_first(*arguments: str) -> None:
        if len(told) < len(ODD_ANSWERS):
            told.append(ODD_ANSWERS[len(told)])
            raise told[-1]
        await writes(*arguments)

    monkeypatch.setattr(gateways().discord, "add_role", odd_at_first)
    while len(told) < len(ODD_ANSWERS):
        intent = (await open_now())[0]
        await recorded(intent, await outbox.carry_out(gateways(), intent, sure=True))
        found = await rule(rule_id)
        assert found is not None
        assert found.state == "active", told[-1]
    assert [(await known(town, who)).left_at for who in crowd] == [None] * len(crowd)
    await pause_is_over()
    async with engine():
        for who in crowd:
            await given(town, who)
    assert await town.writes(start) == ["PUT"] * len(crowd)
