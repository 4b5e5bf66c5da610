"""What happens to roles when their holder is forgotten, or excludes their wallets from a server."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from jobs.reconciler import Reconciler
from models import Farewell, User, transaction
from services.accounts import forgotten_people
from services.core.actors import Actor
from services.engine import read_and_confirm
from services.engine.reconcile_outcome import BatchOutcome
from services.holdings import last_known
from services.privacy import erasure, preferences
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, taken


async def actor(town: Town, who: str = "carol") -> Actor:
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == town.people[who]["id"]))).one()
    return Actor(user_id=user.id or 0, discord_id=user.discord_id, username=user.username)


async def test_who_is_forgotten_loses_their_roles_and_then_the_last_trace_goes(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        async with transaction() as db:
            forgotten = await erasure.forget(db, await actor(town))
        assert [role.end for role in forgotten.roles] == [erasure.RoleEnd.NOW]
        await taken(town)

        async def settled() -> bool:
            return not await grants(town)

        await until(settled)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    async with transaction() as db:
        (left,) = (await db.exec(select(Farewell))).all()
        assert town.people["carol"]["id"] not in left.discord_id, "a digest, which nobody can turn back"
        await forgotten_people.clear(db)
    async with transaction() as db:
        (left,) = (await db.exec(select(Farewell))).all()
        left.asked_at -= forgotten_people.REMEMBERED_FOR
    async with transaction() as db:
        await forgotten_people.clear(db)
    async with transaction() as db:
        assert (await db.exec(select(Farewell))).all() == []


async def test_a_time_of_grace_holds_for_the_forgotten_too(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder", removal_mode="grace", removal_hours=5)
    async with engine():
        await town.prove("carol")
        await given(town)
        async with transaction() as db:
            await erasure.forget(db, await actor(town))

        async def waits() -> bool:
            return any(row.no_since is not None for row in await grants(town))

        await until(waits)
    assert await town.has("carol", "Holder")
    async with transaction() as db:
        assert await erasure.finish(db) == 0


async def test_a_wallet_that_no_longer_counts_in_a_server_costs_its_roles_there_until_it_does(
    town: Town, engine: Engine
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        async with transaction() as db:
            await preferences.choose(db, await actor(town), town.server_id, use_wallets=False)
        await taken(town)
        async with transaction() as db:
            await preferences.choose(db, await actor(town), town.server_id, use_wallets=True)
        await given(town)


async def test_what_is_being_read_about_a_wallet_is_not_stored_after_its_owner_is_forgotten(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    assert await read_about(town.wallet("carol")), "the balance is stored until then"
    await town.look()
    decide_cases = read_and_confirm.decide_cases

    async def and_meanwhile_they_are_forgotten(*arguments: Any, **more: Any) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)
        async with transaction() as db:
            await erasure.forget(db, await actor(town))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(read_and_confirm, "decide_cases", and_meanwhile_they_are_forgotten)
        await Reconciler(asyncio.Event()).once()
    assert await read_about(town.wallet("carol")) == []


async def read_about(wallet: str) -> list[str]:
    """Return the tables with a reading of this wallet."""
    asked = {"wallet": wallet}
    async with transaction() as db:
        found = {
            table: (await db.execute(text(f"SELECT 1 FROM {table} WHERE address = :wallet"), asked)).all()
            for table in last_known.READINGS
        }
    return [table for table, rows in found.items() if rows]
