"""Rules on lists of addresses and on any wallet: applied at once, whatever the chains do, with the breaker on."""

from typing import Any

from sqlalchemy import text

from gateways import gateways
from models import Rule, transaction
from services.accounts import users
from services.core import queue
from services.core.actors import Actor
from services.roles import breaker
from services.rules import rules
from services.rules.draft import RuleDraft
from services.wallets import wallets
from tests.jobs.conftest import Engine
from tests.jobs.town import STRANGER, Town, a_town, until


async def admin(town: Town) -> Actor:
    """ada, who administers the town."""
    person = town.people["ada"]
    async with transaction() as db:
        return Actor(await users.ensure(db, person["id"], person["username"]), person["id"], person["username"])


async def made(town: Town, role: str, expression: Any, **fields: Any) -> int:
    """Create a rule as an admin does, and return its id."""
    draft = RuleDraft(
        rule_name="A rule", contract_address="", blockchain="", verification_type="basic",
        role_id=await town.role(role), server_id=town.server_id, expression=expression, **fields,
    )  # fmt: skip
    actor = await admin(town)
    async with transaction() as db:
        return (await rules.create(db, gateways(), actor, draft)).id


async def listing(town: Town, rule_id: int, *addresses: str) -> None:
    """Replace the rule's list with these addresses."""
    actor = await admin(town)
    async with transaction() as db:
        await rules.change(db, gateways(), actor, rule_id, {"addresses": list(addresses)})


async def has(town: Town, who: str, role: str, held: bool = True) -> None:
    async def is_so() -> bool:
        return await town.has(who, role) == held

    await until(is_so)


async def removes(town: Town, who: str) -> None:
    """Remove the person's wallet."""
    person = town.people[who]
    async with transaction() as db:
        actor = Actor(await users.ensure(db, person["id"], person["username"]), person["id"], person["username"])
        (wallet,) = await wallets.list_wallets(db, actor)
        await wallets.remove(db, actor, wallet.id)


async def test_roles_follow_proofs_and_lists_at_once_while_every_chain_is_down(engine: Engine, town: Town) -> None:
    await town.break_("down", "rpc:base", "rpc2:base", "rpc:ethereum", "rpc2:ethereum", "solana")
    friends = await made(town, "Holder", {"type": "address_list", "addresses": [town.wallet("carol"), STRANGER]})
    await made(town, "Collector", {"type": "any_wallet"})
    evm, solana = ({"type": "any_wallet", "family": family} for family in ("evm", "solana"))
    await made(town, "Whale", {"all": [evm, {"not": solana}]})
    async with engine():
        for who in ("carol", "dave"):
            await town.prove(who)
        for who, role in (("carol", "Holder"), ("carol", "Collector"), ("dave", "Collector"), ("dave", "Whale")):
            await has(town, who, role)
        assert not await town.has("dave", "Holder")
        await listing(town, friends, town.wallet("dave"))
        await has(town, "dave", "Holder")
        await has(town, "carol", "Holder", held=False)
        await removes(town, "dave")
        for role in ("Holder", "Collector", "Whale"):
            await has(town, "dave", role, held=False)
        assert await town.has("carol", "Collector")


async def test_a_list_beside_a_chain_that_is_silent_decides_what_it_can(engine: Engine, town: Town) -> None:
    on_chain = {"type": "basic", "chain": "base", "contract": town.contract}
    listed = {"type": "address_list", "addresses": [town.wallet("carol")]}
    await made(town, "Holder", {"any": [on_chain, listed]})
    await made(town, "Whale", {"all": [on_chain, listed]})
    async with engine():
        await town.buys("dave")
        for who in ("carol", "dave"):
            await town.prove(who)
        for who in ("carol", "dave"):
            await has(town, who, "Holder")
        await town.break_("down", "rpc:base", "rpc2:base")
        await town.look()
        await town.buys("carol")
        await town.heal()
        await town.look()
        await has(town, "carol", "Whale")
        assert await town.has("dave", "Holder")


async def test_a_list_that_is_not_stored_takes_nothing(engine: Engine, town: Town) -> None:
    rule_id = await made(town, "Holder", {"type": "address_list", "addresses": [town.wallet("carol")]})
    async with engine():
        await town.prove("carol")
        await has(town, "carol", "Holder")
        async with transaction() as db:
            rule = await db.get_one(Rule, rule_id)
            rule.expression = {"type": "address_list", "list": "f" * 32, "count": 1}
            db.add(rule)
            await queue.mark_server(db, town.server_id, queue.CHANGED)

        async def looked() -> bool:
            async with transaction() as db:
                tries = await db.execute(text("SELECT count(*) FROM due WHERE attempts > 0"))
                return bool(tries.scalar_one())

        await until(looked)
        assert await town.has("carol", "Holder")


async def test_the_breaker_holds_back_what_a_shortened_list_would_take(engine: Engine, sandbox_url: str) -> None:
    names = [f"friend{number}" for number in range(breaker.MOST_PEOPLE + 2)]
    async with a_town(sandbox_url, "ada", *names) as town:
        addresses = [town.wallet(name) for name in names]
        rule_id = await made(town, "Holder", {"type": "address_list", "addresses": addresses})
        async with engine():
            for name in names:
                await town.prove(name)
            for name in names:
                await has(town, name, "Holder")
            await listing(town, rule_id, STRANGER)

            async def tripped() -> bool:
                async with transaction() as db:
                    return bool(await breaker.tripped(db, town.server_id))

            await until(tripped)
            held = [await town.has(name, "Holder") for name in names]
            assert sum(held) >= len(names) - breaker.MOST_PEOPLE
