"""Following coins: what members spend is acted on without a sweep, and other people's transfers are not read."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobs.following import follower
from jobs.following.follower import Follower
from models import Cursor, transaction
from services.rules.expression import to_document
from services.runtime.task_cancellation import stop
from services.triggers.chain_cursor import COINS
from services.triggers.watch_list import WatchList
from tests.jobs.conftest import Engine
from tests.jobs.deciding.test_coins import Coin, a_coin
from tests.jobs.town import STRANGER, Town, until
from tests.jobs.watching import given, taken

POOR = "0x" + "70" * 20


@pytest.fixture
async def followed(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Base's coins, followed until the test ends."""
    monkeypatch.setenv("FOLLOW_SECONDS", "0.1")
    follower.settings.cache_clear()
    running = asyncio.create_task(Follower("base", kind=COINS).run())
    yield
    await stop(running)


async def cursor() -> Cursor | None:
    async with transaction() as db:
        return await db.get(Cursor, "base:coins")


async def begun() -> None:
    async def there() -> bool:
        row = await cursor()
        return row is not None and row.head > 0

    await until(there)


async def ruled(town: Town, coin: Coin) -> None:
    await town.change(await town.rule("Holder"), expression=to_document(coin.leaf("100")))


async def test_what_is_spent_takes_the_role_and_what_is_bought_gives_it(
    town: Town, engine: Engine, followed: None
) -> None:
    coin = await a_coin(town)
    await coin.buys("carol", 100)
    await ruled(town, coin)
    async with engine():
        await town.prove("carol")
        await given(town)
        await begun()
        await coin.spends("carol", 1)
        await town.call("chains/base/mine", blocks=10)
        await taken(town)
        await coin.act("mint", 1, to=town.wallet("carol"))
        await given(town)


async def test_the_nodes_are_asked_about_members_wallets_alone(town: Town, engine: Engine, followed: None) -> None:
    coin = await a_coin(town)
    await coin.buys("carol", 100)
    await ruled(town, coin)
    async with engine():
        await town.prove("carol")
        await given(town)
        await begun()
        # Transfers between other people are in no answer.
        await coin.act("mint", 5, to=POOR)
        await coin.act("transfer", 5, to=STRANGER, **{"from": POOR})
        head = (await town.call("chains/base/mine", blocks=10))["block"]

        async def passed() -> bool:
            row = await cursor()
            return row is not None and row.block >= head - 5

        await until(passed)
    async with transaction() as db:
        watched = (await WatchList().read(db))["base"]
    assert watched.coins == (coin.contract,)
    assert watched.holders == (town.wallet("carol"),)
    assert coin.contract not in watched.contracts
    assert watched.wallets == ()
