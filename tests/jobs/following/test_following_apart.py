"""One contract, wallet or node never keeps the followers from reading other people's transfers."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import text

from gateways import gateways
from gateways.evm.transfer_logs import WALLETS, LogRead
from gateways.transport.errors import ProviderRefused
from jobs.following.follower import Follower
from jobs.following.follower_turns import FollowerTurns
from models import Cursor, now, transaction
from services.health import monitoring
from services.health.views import GOOD
from services.rules.expression import Requirement, to_document
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until

HOSTILE = "0x" + "66" * 20
ANYTHING = to_document(Requirement("any_nft", "base", "any"))


@pytest.fixture
def flooded(monkeypatch: pytest.MonkeyPatch, town: Town) -> Callable[[], list[tuple[str, ...]]]:
    """A function that makes every node refuse the hostile contract, and returns the contracts of each later read."""

    def begin() -> list[tuple[str, ...]]:
        transfers, asked = gateways().transfers, list[tuple[str, ...]]()
        ask = transfers.of_contracts

        async def of_contracts(chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
            asked.append(tuple(contracts))
            read = await ask(chain, [one for one in contracts if one != HOSTILE], first, last, endpoint)
            too_much = {HOSTILE: "Base (node 1): the answer is too large"} if HOSTILE in contracts else {}
            return LogRead(read.transfers, read.last, too_much)

        monkeypatch.setattr(transfers, "of_contracts", of_contracts)
        return asked

    return begin


async def cursor(key: str) -> Cursor | None:
    async with transaction() as db:
        return await db.get(Cursor, key)


async def test_a_contract_that_floods_a_chain_delays_nobody_elses_purchase(
    town: Town, engine: Engine, flooded: Callable[[], list[tuple[str, ...]]]
) -> None:
    await town.rule("Holder")
    other = await town.rule("Whale")
    hostile = to_document(Requirement("basic", "base", HOSTILE))
    await town.change(other, expression=hostile)
    await town.prove("carol")
    asked, one = flooded(), Follower("base")
    async with engine():
        await one.once()
        assert HOSTILE in asked[-1]
        await town.buys("carol")

        async def given() -> bool:
            await one.once()
            return await town.has("carol", "Holder")

        await until(given)
        assert HOSTILE not in asked[-1]
        async with transaction() as db:
            await db.execute(text("UPDATE quarantine SET until = now()"))
        await town.call("chains/base/mine", blocks=1)
        await one.once()
        assert HOSTILE in asked[-1]
        async with transaction() as db:
            times = (await db.execute(text("SELECT times FROM quarantine WHERE ended_at IS NULL"))).scalar_one()
        assert times == 2, "it floods still"


async def test_a_node_that_gives_no_logs_of_wallets_is_followed_for_contracts(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    await town.change(await town.rule("Whale"), expression=ANYTHING)
    await town.prove("carol")

    async def refuse(*_: Any) -> LogRead:
        raise ProviderRefused("Base (node 1)", "JSON-RPC error -32701 (Please specify an address)", status=200)

    monkeypatch.setattr(gateways().transfers, "of_wallets", refuse)
    turns = FollowerTurns("one")
    contracts, wallets = Follower("base", turns), Follower("base", turns, kind=WALLETS)
    async with engine():
        await contracts.once()
        with pytest.raises(Exception, match="specify an address"):
            await wallets.once()
        token = await town.buys("carol")
        assert token

        async def given() -> bool:
            await contracts.once()
            return await town.has("carol", "Holder")

        await until(given)
    row = await cursor("base")
    assert row is not None
    assert row.fault is None


async def test_wallets_are_followed_by_a_cursor_of_their_own(town: Town, engine: Engine) -> None:
    await town.change(await town.rule("Whale"), expression=ANYTHING)
    await town.prove("carol")
    one = Follower("base", kind=WALLETS)
    async with engine():
        for _ in range(3):
            await one.once()
            await town.call("chains/base/mine", blocks=3)
        made = await town.call("chains/base/deploy", standard="ERC721", name="Unnamed", slug=uuid.uuid4().hex)
        await town.call("chains/base/mint", contract=made["contract"], token_id="1", to=town.wallet("carol"))

        async def given() -> bool:
            await one.once()
            return await town.has("carol", "Whale")

        await until(given)
    assert await cursor("base") is None
    row = await cursor("base:wallets")
    assert row is not None
    assert row.block > 0


async def test_what_no_rule_asks_for_any_more_is_not_missed(town: Town) -> None:
    rule_id = await town.rule("Whale")
    one = Follower("base")
    await one.once()
    await town.change(rule_id, expression=ANYTHING)
    async with transaction() as db:
        await db.execute(text("UPDATE cursor SET updated_at = now() - interval '1 day'"))
    assert await one.once() is False
    async with transaction() as db:
        assert await monitoring.lag(db, now()) == ()
    await town.change(rule_id, expression=to_document(Requirement("basic", "base", town.contract)))
    await one.once()
    async with transaction() as db:
        (shown,) = await monitoring.lag(db, now())
    assert (shown.chain, shown.state) == ("base", GOOD)
