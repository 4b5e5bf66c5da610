"""Roles that somebody else took while the bot was not listening: each loss is undone separately."""

from sqlmodel import select

from models import Event, transaction
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given


async def test_two_roles_that_are_lost_together_are_two_batches(town: Town, engine: Engine) -> None:
    roles = {"carol": "Holder", "dave": "Collector"}
    for who, role in roles.items():
        await town.buys(who)
        await town.prove(who)
        await town.rule(role)
    async with engine():
        for who in roles:
            for role in roles.values():
                await given(town, who, role)
    for who, role in roles.items():
        user = town.people[who]["id"]
        await town.call("members", guild=town.name, user=user, action="remove_role", role=role)
    await town.see()

    async def lines() -> dict[str | None, object]:
        async with transaction() as db:
            asked = select(Event).where(Event.server_id == town.server_id, Event.kind == "role.lost")
            return {event.role_id: event.batch for event in (await db.exec(asked)).all()}

    async def are_noted() -> bool:
        return len(await lines()) == 2

    async with engine():
        await town.look()
        await until(are_noted)
    assert len(set((await lines()).values())) == 2
