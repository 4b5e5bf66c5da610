"""Wallets move to another account of the same person while the engine runs: the new account gets the role first."""

from models import transaction
from services.accounts.users import ensure
from services.core.actors import Actor
from services.privacy import wallet_handover
from services.runtime import rate_limits
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until


async def test_the_new_account_has_the_role_before_the_old_one_loses_it(town: Town, engine: Engine) -> None:
    await rate_limits.forget()
    await town.buys("carol")
    await town.prove("carol")
    await town.rule("Holder")

    async def actor(who: str) -> Actor:
        person = town.people[who]
        async with transaction() as db:
            return Actor(await ensure(db, person["id"], person["username"]), person["id"], person["username"])

    async def has(*names: str) -> bool:
        return {who for who in ("carol", "dave") if await town.has(who, "Holder")} == set(names)

    async with engine():
        await until(lambda: has("carol"))
        start = await town.mark()
        old, new = await actor("carol"), await actor("dave")
        async with transaction() as db:
            made = await wallet_handover.offer(db, old)
        async with transaction() as db:
            await wallet_handover.take(db, new, made.code)
        await until(lambda: has("carol", "dave"))
        await town.look()
        await until(lambda: has("dave"))
        assert await town.writes(start) == ["PUT", "DELETE"]
