"""Waits for changes to a town's people, and readers of their rows."""

import asyncio

from sqlmodel import col, select

from jobs.reconciler import Reconciler
from models import Due, Event, Grant, Rule, now, transaction
from services.accounts.users import ensure
from services.core.actors import Actor
from tests.jobs.town import Town, until


async def actor_of(town: Town, who: str) -> Actor:
    person = town.people[who]
    async with transaction() as db:
        return Actor(await ensure(db, person["id"], person["username"]), person["id"], person["username"])


async def grants(town: Town) -> list[Grant]:
    async with transaction() as db:
        return list((await db.exec(select(Grant).where(Grant.server_id == town.server_id))).all())


async def kinds(town: Town) -> list[str]:
    async with transaction() as db:
        rows = await db.exec(select(Event.kind).where(Event.server_id == town.server_id).order_by(col(Event.id)))
        return list(rows.all())


async def rule(rule_id: int) -> Rule | None:
    async with transaction() as db:
        return await db.get(Rule, rule_id)


async def given(town: Town, who: str = "carol", role: str = "Holder") -> None:
    await until(lambda: town.has(who, role))

    line = (town.people[who]["id"], await town.role(role), "held")

    async def held() -> bool:
        return line in [(row.discord_id, row.role_id, row.state) for row in await grants(town)]

    await until(held)


async def taken(town: Town, who: str = "carol", role: str = "Holder") -> None:
    async def gone() -> bool:
        return not await town.has(who, role)

    await until(gone)


async def looked_at(town: Town) -> None:
    """Reconcile everybody in the town, here or by the engine if it runs."""
    await town.look()
    reconciler = Reconciler(asyncio.Event())

    async def nobody_waits() -> bool:
        await reconciler.once()
        return await nobody_is_due(town)

    await until(nobody_waits)


async def nobody_is_due(town: Town) -> bool:
    """Return whether no member of the town waits to be reconciled."""
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return (await db.exec(select(Due).where(mine, col(Due.due_at) <= now()))).first() is None


async def no_grants(town: Town) -> bool:
    return not await grants(town)
