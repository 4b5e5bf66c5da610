"""A collection moves to another contract while the engine runs: nobody loses a role midway, and some do afterwards."""

import uuid

from gateways import gateways
from models import transaction
from services.core.actors import Actor
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.proposals import MigrationEnd, NewContract, Proposal
from services.rules.replacements import contract_migrations
from services.rules.replacements.condition_successors import MigrationOrder
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until


async def outcomes(town: Town, proposal: Proposal) -> dict[str, str]:
    """Return what the preview says about each person, by name."""
    actor = Actor(1, town.people["ada"]["id"], town.people["ada"]["username"])
    names = {person["id"]: name for name, person in town.people.items()}
    async with transaction() as db:
        planned = await plan(db, gateways(), actor, proposal)
    found = await preview.whole(gateways(), planned)
    return {names[one.discord_id]: one.outcome for one in found.members}


async def test_a_half_finished_migration_takes_nothing_and_its_end_follows_the_new_contract(
    town: Town, engine: Engine
) -> None:
    actor = Actor(1, town.people["ada"]["id"], town.people["ada"]["username"])
    carols = [await town.buys("carol") for _ in range(2)]
    for _ in range(2):
        await town.buys("dave")
    await town.rule("Holder", least=2)
    for who in ("carol", "dave"):
        await town.prove(who)
    old = town.contract
    made = await town.call(f"chains/{town.chain}/deploy", standard="ERC721", name="New Cats", slug=uuid.uuid4().hex)
    order = MigrationOrder(town.chain, old, str(made["contract"]))

    async def holders(*names: str) -> bool:
        return {who for who in ("carol", "dave") if await town.has(who, "Holder")} == set(names)

    async with engine():
        await until(lambda: holders("carol", "dave"))
        start = await town.mark()
        only = NewContract(town.server_id, order)
        assert await outcomes(town, only) == {"carol": "lose", "dave": "lose"}
        both = MigrationOrder(town.chain, old, order.new_contract, both=True)
        assert await outcomes(town, NewContract(town.server_id, both)) == {
            "carol": "keep", "dave": "keep",
        }  # fmt: skip
        async with transaction() as db:
            done = await contract_migrations.apply(db, gateways(), actor, town.server_id, both)
        assert len(done.rules) == 1
        # Midway: one token on either contract, which is still two. She never has fewer, as she buys before she sells.
        town.contract = order.new_contract
        await town.buys("carol")
        town.contract = old
        await town.sells(carols[0])
        town.contract = order.new_contract
        await town.look()
        ends = MigrationEnd(town.server_id, done.id or 0)
        assert await outcomes(town, ends) == {"carol": "lose", "dave": "lose"}
        await town.buys("carol")
        assert await outcomes(town, ends) == {"carol": "keep", "dave": "lose"}
        assert await town.writes(start) == [], "nobody loses a role while both count"
        async with transaction() as db:
            await contract_migrations.end(db, gateways(), actor, town.server_id, done.id or 0)
        await until(lambda: holders("carol"))
        assert await town.writes(start) == ["DELETE"]
