"""What stops a removal becomes known while it is decided, written down or sent: it is not carried out."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, text
from sqlmodel import select

from gateways import gateways
from gateways.discord.types import GuildMember as LiveMember
from jobs.reconciler import Reconciler
from jobs.role_writer import RoleWriter
from models import Breaker, Challenge, Due, MemberChoice, RivalMove, transaction
from services.core.actors import Actor
from services.engine import ledger, read_and_confirm
from services.engine.reconcile_outcome import BatchOutcome
from services.guilds import members
from services.guilds.members import MemberFacts
from services.privacy import preferences, wallet_handover
from services.rules import pausing, rules
from services.runtime import rate_limits
from services.triggers import gateway_events
from services.wallets import challenges, ownership
from services.wallets.ownership import WalletProof
from tests.jobs.conftest import Engine
from tests.jobs.processes.test_meanwhile import (
    about_to_lose_it,
    carried_out,
    ends_while,
    known,
    the_intent,
    time_passes,
)
from tests.jobs.town import Town
from tests.jobs.watching import actor_of, given, grants, kinds, looked_at, taken
from tests.support.builders import open_intents


async def test_a_rule_that_pauses_itself_while_a_removal_is_written_down_takes_nothing(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause does not see the removal yet, and waits for no reconcile."""
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    of_removals, role_id = ledger.removal_batches.of_removals, await town.role("Holder")

    async def and_meanwhile_the_rule_is_paused(*arguments: Any) -> dict[tuple[int, str], UUID]:
        async with transaction() as db:
            await pausing.pause_role(db, town.server_id, role_id, "For a while.", "above_bot")
        return await of_removals(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(ledger.removal_batches, "of_removals", and_meanwhile_the_rule_is_paused)
        await looked_at(town)
    intent, start = await the_intent(), await town.mark()
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    await looked_at(town)
    assert await town.writes(start) == []
    assert [row.state for row in await grants(town)] == ["held"]


async def test_a_reading_that_fails_before_a_removal_is_sent_stops_it_until_one_succeeds(
    town: Town, engine: Engine
) -> None:
    intent, start = await about_to_lose_it(town, engine), await town.mark()
    (decided,) = await grants(town)
    await town.break_("down", "rpc:base", "rpc2:base")
    await looked_at(town)
    (unknown,) = await grants(town)
    assert (unknown.state, unknown.no_since, unknown.first_no) == ("held", decided.no_since, decided.first_no)
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.writes(start) == []
    await town.heal()
    async with engine():
        await taken(town)
    assert "role.lost" not in await kinds(town)


async def test_what_was_read_before_the_machine_slept_takes_nothing(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything stood still, so nobody saw the purchase, and nobody else has taken the lapsed claim."""
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await town.look()
    decide_cases = read_and_confirm.decide_cases

    async def and_then_it_sleeps(*arguments: Any, **more: Any) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)
        await town.buys("carol")
        async with transaction() as db:
            await db.execute(text("UPDATE due SET claimed_until = now() - interval '1 hour'"))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_then_it_sleeps)
        await Reconciler(asyncio.Event()).once()
    assert [row.state for row in await grants(town)] == ["held"]
    start = await town.mark()
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]
    assert await town.writes(start) == []


@pytest.mark.parametrize("at", ["- interval '8 hours'", "+ interval '8 hours'"], ids=["slept", "set back"])
async def test_a_removal_of_unknown_age_is_decided_again(town: Town, engine: Engine, at: str) -> None:
    """The process's own clock stood still while the machine slept, or the database's clock was ahead before."""
    intent = await about_to_lose_it(town, engine)
    moved = f'UPDATE "grant" SET intended_at = now() {at}, next_at = now() RETURNING intended_at'
    async with transaction() as db:
        intent = replace(intent, intended_at=(await db.execute(text(moved))).scalar_one())
    await town.buys("carol")
    start = await town.mark()
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    await looked_at(town)
    assert await town.writes(start) == []
    assert [row.state for row in await grants(town)] == ["held"]


async def test_a_removal_on_its_way_to_discord_is_ours_although_its_reading_fails_meanwhile(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, removes = await about_to_lose_it(town, engine), gateways().discord.remove_role

    async def and_meanwhile_the_reading_fails(*arguments: str) -> None:
        await town.break_("down", "rpc:base", "rpc2:base")
        await looked_at(town)
        await removes(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(gateways().discord, "remove_role", and_meanwhile_the_reading_fails)
        await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert not await town.has("carol", "Holder")
    assert await grants(town) == []
    assert (await kinds(town))[-1] == "role.taken"
    await town.heal()
    await town.buys("carol")
    async with engine():
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_a_removal_that_is_called_off_and_decided_again_on_its_way_is_ours(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, removes = await about_to_lose_it(town, engine), gateways().discord.remove_role

    async def and_meanwhile_a_rule_changes(*arguments: str) -> None:
        async with transaction() as db:
            await pausing.decide_again(db, town.server_id)
        await looked_at(town)
        (again,) = await grants(town)
        assert again.state == "taking"
        assert again.intended_at not in {None, intent.intended_at}
        await removes(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(gateways().discord, "remove_role", and_meanwhile_a_rule_changes)
        await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert not await town.has("carol", "Holder")
    assert await grants(town) == []
    await town.buys("carol")
    await town.look()
    async with engine():
        await given(town)
    assert "role.lost" not in await kinds(town), "nobody else took it"


async def test_a_breaker_that_trips_while_the_member_is_read_stops_the_removal(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, reads = await about_to_lose_it(town, engine), gateways().discord.member
    start = await town.mark()

    async def and_meanwhile_too_many_would_lose_it(guild: str, user: str) -> LiveMember:
        async with transaction() as db:
            db.add(Breaker(server_id=town.server_id, role_id=intent.role_id, would_lose=6, holders=6))
        return await reads(guild, user)

    with monkeypatch.context() as patched:
        patched.setattr(gateways().discord, "member", and_meanwhile_too_many_would_lose_it)
        await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.writes(start) == []
    await looked_at(town)
    (held_back,) = await grants(town)
    assert held_back.held_back_at is not None


async def test_who_is_not_known_as_a_member_loses_nothing_by_a_look_that_no_change_can_end(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes queue members as they are stored; a list that did not name carol has deleted what was stored of her."""
    token = await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    async with transaction() as db:
        await db.execute(delete(Due))
        began = await db.now() + timedelta(seconds=1)
        await members.list_ended(db, town.server_id, began)
    decide_cases, ada = read_and_confirm.decide_cases, Actor(1, town.people["ada"]["id"], "ada")

    async def and_meanwhile_the_rule_is_paused(*arguments: object, **more: object) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)  # pyright: ignore[reportArgumentType]
        async with transaction() as db:
            await rules.change(db, gateways(), ada, rule_id, {"state": "paused"})
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_meanwhile_the_rule_is_paused)
        assert await Reconciler(asyncio.Event()).once() == 1
    assert [row.state for row in await grants(town)] == ["held"]
    await town.change(rule_id, state="active")
    async with engine():
        await taken(town)


@pytest.mark.parametrize("action", ["remove_role", "leave"])
async def test_what_was_read_of_a_member_does_not_replace_what_became_known_meanwhile(
    town: Town, engine: Engine, action: str
) -> None:
    intent = await about_to_lose_it(town, engine)
    member = await gateways().discord.membership(intent.guild_id, intent.discord_id)
    async with transaction() as db:
        if action == "leave":
            await gateway_events.member_left(db, intent.guild_id, intent.discord_id)
        else:
            await gateway_events.member_changed(
                db, intent.guild_id, MemberFacts(intent.discord_id, "carol", frozenset())
            )
    async with transaction() as db:
        assert member is not None
        await members.seen_many(db, [(town.server_id, member)])
    row = await known(town)
    assert (row.roles, row.left_at is not None) == ([], action == "leave")


async def test_a_second_removal_that_the_writer_did_not_live_to_see_is_waited_for_from_its_own_time(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord may answer the second as late as the first, so the role is given back after that only."""
    intent = await about_to_lose_it(town, engine)
    await ends_while(intent, monkeypatch, "remove_role")
    async with transaction() as db:
        await db.execute(text("UPDATE unanswered SET at = at - interval '50 seconds'"))
    await ends_while(intent, monkeypatch, "remove_role")
    await town.buys("carol")
    await looked_at(town)
    async with transaction() as db:
        await db.execute(text("UPDATE unanswered SET at = at - interval '50 seconds'"))
        assert await open_intents(db, 10, ()) == [], "Discord may take it yet"
    await carried_out(town, "remove_role")
    await time_passes(town)
    async with engine():
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_our_own_late_removal_is_nobody_elses_although_it_was_called_off_and_no_rule_says_yes(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = await about_to_lose_it(town, engine)
    await ends_while(intent, monkeypatch, "remove_role")
    async with transaction() as db:
        await pausing.decide_again(db, town.server_id, [intent.role_id])
    await carried_out(town, "remove_role")
    await town.see()
    await looked_at(town)
    assert await grants(town) == []
    assert (await kinds(town))[-1] == "role.taken"
    assert "role.lost" not in await kinds(town)
    async with transaction() as db:
        assert (await db.exec(select(RivalMove))).all() == []


@pytest.mark.parametrize("how", ["a proof", "a hand-over", "a choice"])
async def test_a_wallet_that_begins_to_count_before_a_removal_is_sent_stops_it(
    town: Town, engine: Engine, how: str
) -> None:
    """The writer is faster than the reconcile that would cancel the removal."""
    intent, start = await about_to_lose_it(town, engine), await town.mark()
    await town.buys("dave")
    carol = await actor_of(town, "carol")
    match how:
        case "a proof":
            async with transaction() as db:
                asked = await challenges.current(db, carol, "evm", town.wallet("dave"))
                row = await db.get_one(Challenge, asked.id)
                await ownership.keep(db, carol, row, WalletProof("self_transaction", {}, True))
        case "a hand-over":
            await rate_limits.forget()
            await town.prove("dave")
            dave = await actor_of(town, "dave")
            async with transaction() as db:
                made = await wallet_handover.offer(db, dave)
            async with transaction() as db:
                await wallet_handover.take(db, carol, made.code)
        case _:
            async with transaction() as db:
                db.add(MemberChoice(server_id=town.server_id, user_id=carol.user_id, use_wallets=False))
            async with transaction() as db:
                await preferences.choose(db, carol, town.server_id, use_wallets=True)
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.writes(start) == []
    assert [row.state for row in await grants(town)] == ["held"]
