"""A move while the engine runs: nobody loses a role before its end is approved, then the rules decide, then undo."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select, update

from gateways import gateways
from jobs.reconciler import Reconciler
from jobs.role_writer import RoleWriter
from models import Event, Grant, ServerMove, now, transaction
from models.db.session import GuardFailed
from services.core import queue
from services.core.actors import Actor
from services.core.errors import Conflict
from services.engine import read_and_confirm
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.proposals import MoveEnd
from services.engine.reconcile_outcome import BatchOutcome
from services.roles.moves import coverage, lifecycle, messages, views
from services.roles.moves.lifecycle import MoveOrder
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import looked_at, nobody_is_due
from tests.jobs.writing.test_taking_over import grants, handed
from tests.support.builders import open_intents


def admin(town: Town) -> Actor:
    return Actor(1, town.people["ada"]["id"], town.people["ada"]["username"])


async def begin(town: Town) -> str:
    """Begin a move of Holder for a day, and return the role's id."""
    role_id = await town.role("Holder")
    async with transaction() as db:
        await lifecycle.begin_or_change(
            db, gateways(), admin(town), town.server_id, MoveOrder(now() + timedelta(days=1), [role_id])
        )
    return role_id


async def its_day_comes(town: Town) -> None:
    async with transaction() as db:
        ended = update(ServerMove).where(col(ServerMove.server_id) == town.server_id)
        await db.exec(ended.values(begins_at=now() - timedelta(days=2), until=now() - timedelta(seconds=1)))


async def covered(town: Town, **wanted: int) -> None:
    """Wait until the coverage of Holder is this; anything not named counts as zero."""
    role_id = await town.role("Holder")

    async def same() -> bool:
        async with transaction() as db:
            seen = (await coverage.count(db, town.server_id, [role_id])).of(role_id)
        return seen == coverage.RoleCoverage(**wanted)

    await until(same)


async def previewed(town: Town) -> Mapping[str, list[str]]:
    """Return the names of those who would keep and those who would lose the role at the end."""
    names = {person["id"]: name for name, person in town.people.items()}
    async with transaction() as db:
        planned = await plan(db, gateways(), admin(town), MoveEnd(town.server_id))
    found = await preview.whole(gateways(), planned)
    return {
        outcome: sorted(names[one.discord_id] for one in found.members if one.outcome == outcome)
        for outcome in ("keep", "lose")
    }


async def test_a_move_from_its_first_day_to_its_undo(town: Town, engine: Engine) -> None:
    for who in ("ada", "carol", "dave"):
        await handed(town, who)
    await town.see()
    await town.buys("carol")
    await town.rule("Holder")
    start = await town.mark()
    async with engine():
        await begin(town)
        await covered(town, unverified=3)
        await town.prove("carol")
        await town.prove("dave")
        await covered(town, right=1, wrong=1, unverified=1)
        assert await town.writes(start) == [], "nothing is taken before the end"
        await its_day_comes(town)
        await town.look()
        await covered(town, right=1, wrong=1, unverified=1)
        assert await previewed(town) == {"keep": ["carol"], "lose": ["ada", "dave"]}
        async with transaction() as db:
            await coverage.store_oldest(db)
            shown = await views.view(db, gateways(), admin(town), town.server_id)
        assert (shown.state, len(shown.days), shown.days[0].unverified) == (views.OVER, 1, 1)

        async with transaction() as db:
            await lifecycle.approve(db, gateways(), admin(town), town.server_id)
        await covered(town, right=1)
        assert sorted(await town.writes(start)) == ["DELETE", "DELETE"]
        async with transaction() as db:
            (role,) = (await views.view(db, gateways(), admin(town), town.server_id)).roles
            undone = await lifecycle.undo(db, gateways(), admin(town), town.server_id)
        assert (role.taken, undone.members) == (2, 2)

        async def back() -> bool:
            return all([await town.has(who, "Holder") for who in ("ada", "carol", "dave")])

        await until(back)
        await town.look()

        async def settled() -> bool:
            return {grant.state for grant in (await grants(town)).values()} == {"held"}

        await until(settled)
    async with transaction() as db:
        kinds = await db.exec(
            select(Event.kind).where(Event.server_id == town.server_id, col(Event.kind).startswith("move."))
            .order_by(col(Event.id))
        )  # fmt: skip
        assert list(kinds.all()) == ["move.begun", "move.approved", "move.undone"]


async def test_nobody_waits_for_another_change_of_the_move(town: Town) -> None:
    await town.rule("Holder")
    async with transaction() as db:
        await db.lock(f"move:{town.server_id}")
        with pytest.raises(Conflict, match="right now"):
            await begin(town)
    await begin(town)


async def test_a_move_that_is_called_off_takes_nothing_and_the_next_one_keeps_it_again(
    town: Town, engine: Engine
) -> None:
    await handed(town, "carol")
    await town.see()
    await town.rule("Holder", takes_over=True, removal_mode="now")
    start = await town.mark()
    await begin(town)
    async with engine():
        await covered(town, unverified=1)

        async def adopted() -> bool:
            return set(await grants(town)) == {"carol"}

        await until(adopted)
        async with transaction() as db:
            assert (await lifecycle.undo(db, gateways(), admin(town), town.server_id)).members == 0
        assert (await grants(town))["carol"].gift_since is not None
        await town.look()
        await begin(town)
        assert (await grants(town))["carol"].gift_since is None
        await covered(town, unverified=1)
    assert await town.has("carol", "Holder")
    assert await town.writes(start) == []


async def test_a_role_that_the_move_no_longer_has_is_kept_by_those_who_have_it(town: Town) -> None:
    holder, collector = await town.role("Holder"), await town.role("Collector")
    await town.rule("Holder")
    await town.rule("Collector")
    await begin(town)
    who = town.people["carol"]["id"]
    async with transaction() as db:
        db.add(
            Grant(
                server_id=town.server_id, discord_id=who, role_id=holder, state="held", had_before=True, no_since=now()
            )
        )  # fmt: skip
    async with transaction() as db:
        order = MoveOrder(now() + timedelta(days=1), [collector])
        await lifecycle.begin_or_change(db, gateways(), admin(town), town.server_id, order)
    assert (await grants(town))["carol"].gift_since is not None


async def test_a_move_reaches_a_removal_that_is_already_under_way(town: Town) -> None:
    """The writer is faster than the reconcile that would cancel the removal."""
    await handed(town, "carol")
    await town.see()
    rule_id, role_id = await town.rule("Holder"), await town.role("Holder")
    async with transaction() as db:
        db.add(
            Grant(
                server_id=town.server_id, discord_id=town.people["carol"]["id"], role_id=role_id, rule_ids=[rule_id],
                state="taking", had_before=True, no_since=now(), intended_at=now(), next_at=now(),
            )
        )  # fmt: skip
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    await begin(town)
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)
    assert await town.has("carol", "Holder")
    assert (await grants(town))["carol"].state == "held"


async def test_nothing_is_locked_while_discord_is_asked(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord may take its time, and every reconcile and every follower that concerns the server would wait for it."""
    await town.rule("Holder")
    await town.prove("carol")
    refresh_panel, asked = messages.verification_channel.refresh_panel, list[bool]()

    async def and_meanwhile_carol_is_reconciled(*arguments: Any) -> bool:
        async with transaction() as db:
            for table in ("due", "server_move"):
                free = await db.execute(text(f"SELECT 1 FROM {table} FOR UPDATE SKIP LOCKED"))
                asked.append(free.first() is not None)
        return await refresh_panel(*arguments)

    monkeypatch.setattr(messages.verification_channel, "refresh_panel", and_meanwhile_carol_is_reconciled)
    await begin(town)
    await its_day_comes(town)
    for change in (lifecycle.approve, lifecycle.undo):
        async with transaction() as db:
            await change(db, gateways(), admin(town), town.server_id)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(messages_at=now()))
    async with transaction() as db:
        assert await messages.bring_up_to_date(db, gateways())
    assert asked == [True] * 8


async def test_a_move_that_begins_later_makes_its_holders_due_on_its_day(town: Town) -> None:
    await handed(town, "carol")
    await town.see()
    await town.rule("Holder")
    role_id = await town.role("Holder")
    order = MoveOrder(now() + timedelta(days=3), [role_id], now() + timedelta(days=1))
    async with transaction() as db:
        await lifecycle.begin_or_change(db, gateways(), admin(town), town.server_id, order)
        shown = await views.view(db, gateways(), admin(town), town.server_id)
        assert shown.state == views.PLANNED
        assert await lifecycle.begin_due(db) == 0
    async with transaction() as db:
        started = update(ServerMove).where(col(ServerMove.server_id) == town.server_id)
        await db.exec(started.values(begins_at=now() - timedelta(seconds=1)))
        assert await lifecycle.begin_due(db) == 1
        assert await lifecycle.begin_due(db) == 0


async def test_who_has_no_wallet_any_more_keeps_a_role_of_ours_when_the_move_is_called_off(town: Town) -> None:
    await town.rule("Holder")
    role_id = await begin(town)
    who = town.people["carol"]["id"]
    async with transaction() as db:
        db.add(Grant(server_id=town.server_id, discord_id=who, role_id=role_id, state="held", no_since=now()))
    async with transaction() as db:
        await lifecycle.undo(db, gateways(), admin(town), town.server_id)
    assert (await grants(town))["carol"].gift_since is not None


async def test_a_reconcile_that_began_before_an_approved_move_was_undone_takes_nothing(town: Town) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    role_id = await begin(town)
    await its_day_comes(town)
    async with transaction() as db:
        await lifecycle.approve(db, gateways(), admin(town), town.server_id)
        db.add(
            Grant(
                server_id=town.server_id,
                discord_id=town.people["carol"]["id"],
                role_id=role_id,
                state="held",
                had_before=True,
            )
        )
    async with transaction() as db:
        claims = await queue.claim(db, "a worker", 10)
    assert town.people["carol"]["id"] in {one.discord_id for one in claims}
    async with transaction() as db:
        await lifecycle.undo(db, gateways(), admin(town), town.server_id)
    with pytest.raises(GuardFailed):
        async with transaction() as db:
            queue.check_unchanged(db, "a worker", claims)


async def test_the_grace_time_begins_when_the_end_of_a_move_is_approved(town: Town) -> None:
    await town.rule("Holder", removal_mode="grace", removal_hours=72)
    role_id = await begin(town)
    who, long_ago = town.people["carol"]["id"], now() - timedelta(days=30)
    async with transaction() as db:
        db.add(
            Grant(
                server_id=town.server_id, discord_id=who, role_id=role_id, state="held", had_before=True,
                no_since=long_ago,
            )
        )  # fmt: skip
    await its_day_comes(town)
    async with transaction() as db:
        await lifecycle.approve(db, gateways(), admin(town), town.server_id)
    since = (await grants(town))["carol"].no_since
    assert since is not None
    assert since > now() - timedelta(minutes=5)


async def test_a_role_that_is_being_taken_over_while_the_move_is_called_off_stays(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the move is gone, nothing but the reconcile that is under way concerns its holders."""
    await handed(town, "carol")
    await town.see()
    await town.rule("Holder")
    await looked_at(town)
    await begin(town)
    decide_cases = read_and_confirm.decide_cases

    async def and_meanwhile_it_is_called_off(*arguments: Any, **more: Any) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)
        async with transaction() as db:
            await lifecycle.undo(db, gateways(), admin(town), town.server_id)
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_meanwhile_it_is_called_off)
        await Reconciler(asyncio.Event()).once()
    assert await grants(town) == {}
    async with engine():
        await looked_at(town)
        await until(lambda: nobody_is_due(town))
    assert await town.has("carol", "Holder")
