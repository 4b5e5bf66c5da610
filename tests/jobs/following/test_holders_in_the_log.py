"""The holders in the log are those in the ledger, whatever happens to rules and roles."""

from collections import Counter

from models import now, transaction
from services.core.actors import Actor
from services.servers import analytics
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, looked_at


def owner(town: Town) -> Actor:
    return Actor(user_id=0, discord_id=town.people["ada"]["id"], username="ada")


async def told(actor: Actor) -> dict[int, int]:
    """Return each rule's current holders, as the dashboard draws them."""
    async with transaction() as db:
        history = await analytics.history(db, actor, 7)
    return {rule.id: rule.holders[-1] for rule in history.rules if rule.holders[-1]}


async def in_ledger(town: Town) -> dict[int, int]:
    held = [row.rule_ids for row in await grants(town) if row.state in {"held", "taking"}]
    return dict(Counter(rule_id for rule_ids in held for rule_id in rule_ids))


async def test_the_log_follows_the_ledger(town: Town, engine: Engine) -> None:
    actor = owner(town)
    for who in ("carol", "dave"):
        await town.buys(who)
        await town.prove(who)
    first = await town.rule("Holder")
    async with engine():
        for who in ("carol", "dave"):
            await given(town, who)
        assert await told(actor) == await in_ledger(town) == {first: 2}

        second = await town.rule("Holder")
        await looked_at(town)
        assert await told(actor) == await in_ledger(town) == {first: 2, second: 2}

        await town.change(first, deleted_at=now())
        await looked_at(town)
        assert await told(actor) == await in_ledger(town) == {second: 2}

        await town.call("members", guild=town.name, user=town.people["dave"]["username"], action="remove_role",
                        role="Holder")  # fmt: skip
        await town.see()
        await looked_at(town)
        assert await told(actor) == await in_ledger(town) == {second: 1}

        await town.call("guilds", guild=town.name, action="delete_role", role="Holder")
        await town.see()
        await looked_at(town)
        assert await told(actor) == await in_ledger(town) == {}
