"""Rules that only require an absence: a member without a proved wallet has shown nothing, and so gets no role."""

from sqlmodel import col, select

from models import Due, Wallet, transaction
from services.accounts.users import ensure
from services.core.actors import Actor
from services.guilds.members import MemberFacts, joined
from services.rules.expression import Not, Requirement, to_document
from services.wallets import wallets
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given


async def settled(town: Town) -> bool:
    """Return whether no member of the town is due any more."""
    async with transaction() as db:
        waiting = await db.exec(select(Due.key).where(col(Due.key).startswith(f"{town.server_id}:")))
        return waiting.first() is None


async def without_the_collection(town: Town) -> None:
    wanted = Not(Requirement("basic", "base", town.contract))
    await town.change(await town.rule("Holder"), expression=to_document(wanted))


async def joins(town: Town, who: str) -> None:
    person = town.people[who]
    async with transaction() as db:
        await joined(db, town.server_id, MemberFacts(person["id"], person["username"], frozenset()))


async def test_who_joins_without_any_wallet_gets_nothing(town: Town, engine: Engine) -> None:
    await without_the_collection(town)
    await joins(town, "dave")
    await town.prove("carol")
    async with engine():
        await given(town)
        await joins(town, "dave")
        await until(lambda: settled(town))
    assert not await town.has("dave", "Holder")
    assert await town.has("carol", "Holder")


async def test_a_wallet_on_another_kind_of_chain_shows_nothing_either(town: Town, engine: Engine) -> None:
    await without_the_collection(town)
    person = town.people["dave"]
    async with transaction() as db:
        user_id = await ensure(db, person["id"], person["username"])
        db.add(Wallet(user_id=user_id, family="solana", address=person["wallets"]["solana"], method="opensea_bio"))
    await town.prove("carol")
    async with engine():
        await town.look()
        await given(town)
        await until(lambda: settled(town))
    assert not await town.has("dave", "Holder")


async def test_a_member_who_removes_the_last_wallet_loses_the_role_in_the_sweep(town: Town, engine: Engine) -> None:
    await without_the_collection(town)
    await town.prove("carol")
    async with engine():
        await given(town)
        carol = town.people["carol"]
        async with transaction() as db:
            actor = Actor(await ensure(db, carol["id"], carol["username"]), carol["id"], carol["username"])
            (mine,) = await wallets.list_wallets(db, actor)
            await wallets.remove(db, actor, mine.id)

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)
