"""Following a chain: transfers are acted on without a sweep, though nodes omit logs, fail or reorganise."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from gateways import gateways
from jobs.__main__ import lives
from jobs.following import follower
from jobs.following.follower import Follower
from jobs.following.follower_turns import FollowerTurns
from models import Cursor, transaction
from services.runtime.task_cancellation import stop
from services.triggers import chain_cursor, transfer_poller
from tests.jobs.conftest import Engine
from tests.jobs.town import STRANGER, Town, until
from tests.jobs.watching import given, taken


@pytest.fixture
async def follow(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[], Follower]]:
    """A function that starts a follower of Base, which polls until the test ends."""
    monkeypatch.setenv("FOLLOW_SECONDS", "0.1")
    follower.settings.cache_clear()
    running: list[asyncio.Task[None]] = []

    def start() -> Follower:
        made = Follower("base")
        running.append(asyncio.create_task(made.run()))
        return made

    yield start
    await stop(*running)


async def cursor() -> Cursor | None:
    async with transaction() as db:
        return await db.get(Cursor, "base")


async def caught_up(town: Town) -> None:
    """Wait until the follower has settled everything that happened before now."""
    head = (await gateways().chains.head("base")).block
    await town.call("chains/base/mine", blocks=5)

    async def settled() -> bool:
        row = await cursor()
        return row is not None and row.block >= head

    await until(settled)


async def test_a_purchase_and_a_sale_change_the_role_without_a_sweep(
    town: Town, engine: Engine, follow: Callable[[], Follower]
) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        follow()
        await caught_up(town)
        token = await town.buys("carol")
        await given(town)
        await town.sells(token)
        await taken(town)


async def test_a_collection_from_before_the_standards_is_followed_by_its_own_events(
    town: Town, engine: Engine, follow: Callable[[], Follower]
) -> None:
    """Its Transfer event has no token id, and it does not implement ERC-165."""
    made = await town.call("chains/base/deploy", standard="Punks", name="Punks", slug=uuid.uuid4().hex)
    town.contract = made["contract"]
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        follow()
        await caught_up(town)
        await town.call("chains/base/mint", contract=town.contract, token_id="1", to=STRANGER)
        await town.call("chains/base/transfer", contract=town.contract, token_id="1", to=town.wallet("carol"))
        await given(town)
        await town.sells("1")
        await taken(town)


async def test_what_happened_while_nobody_followed_is_caught_up(
    town: Town, engine: Engine, follow: Callable[[], Follower]
) -> None:
    await town.rule("Holder")
    token = await town.buys("carol")
    await town.prove("carol")
    async with engine():
        first = Follower("base")
        await first.once()
        await given(town)
        await town.call("chains/base/mine", blocks=100)
        for _ in range(3):
            await first.once()
        await town.sells(token)
        await town.call("chains/base/mine", blocks=200)
        async with transaction() as db:
            await chain_cursor.release_leases(db, lambda owner: owner == first.name)
        follow()
        await taken(town)


async def test_one_node_that_leaves_out_or_fails_loses_no_transfer(
    town: Town, engine: Engine, follow: Callable[[], Follower]
) -> None:
    # A node may rest after a fault that shows, so these come last.
    faults = {
        "carol": ("rpc:base", "empty"), "dave": ("rpc2:base", "empty"), "erin": ("rpc:base", "stale"),
        "frank": ("rpc:base", "malformed"), "grace": ("rpc:base", "down"),
    }  # fmt: skip

    async def asked(since: int, target: str) -> bool:
        return bool(await town.requests(since, target))

    await town.join("erin", "frank", "grace")
    await town.rule("Holder")
    for who in faults:
        await town.prove(who)
    async with engine():
        follow()
        for who, (target, kind) in faults.items():
            await caught_up(town)
            mark = await town.mark()
            await town.break_(kind, target)
            await town.buys(who)
            await given(town, who)
            # The other node may have been enough; what the broken one answers then may cost nothing either.
            await until(partial(asked, mark, target))
            await town.heal()


async def test_after_a_transfer_that_a_reorganisation_undoes_the_member_is_reconciled_again(
    town: Town, engine: Engine, follow: Callable[[], Follower]
) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        follow()
        await caught_up(town)
        await town.call("chains/base/mine", blocks=5)
        before = (await gateways().chains.head("base")).block
        await town.buys("carol")
        await given(town)
        after = (await gateways().chains.head("base")).block
        # Deeper by some of the empty blocks before, as the chain may have grown by one or two since it was asked.
        await town.call("chains/base/reorg", depth=after - before + 3)
        await taken(town)


async def test_one_chain_is_followed_by_one_process(town: Town) -> None:
    await town.rule("Holder")
    first, second = Follower("base"), Follower("base")
    assert await first.once() is not None
    assert await second.once() is None
    with pytest.raises(chain_cursor.CursorTaken):
        async with chain_cursor.advancing("base", second.name, chain_cursor.Position(2**40, "0x"), 2**40) as db:
            db.later("DELETE FROM rule", {})
    async with transaction() as db:
        assert (await db.execute(text("SELECT count(*) FROM rule"))).scalar_one() == 1, "nothing else was done"
    row = await cursor()
    assert row is not None
    assert row.block < 2**40
    async with transaction() as db:
        await chain_cursor.release_leases(db, lambda owner: owner == first.name)
    assert await second.once() is not None


async def test_the_lease_outlasts_the_pause_between_two_looks(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOW_SECONDS_BASE", "600")
    follower.settings.cache_clear()
    await town.rule("Holder")
    assert await Follower("base").once() is not None
    async with transaction() as db:
        kept = await db.execute(text("SELECT owned_until - now() FROM cursor WHERE chain = 'base'"))
        assert kept.scalar_one() > timedelta(seconds=600)


@pytest.mark.usefixtures("product")
async def test_a_chain_that_is_left_to_the_sweeps_has_no_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    follower.settings.cache_clear()
    every = len(lives(["followers"]))
    monkeypatch.setenv("FOLLOW_SECONDS_BASE", "0")
    follower.settings.cache_clear()
    assert len(lives(["followers"])) == every - 3


@pytest.mark.parametrize("taken", [True, False])
async def test_what_a_look_found_is_written_after_its_lease_or_found_again_if_another_process_took_it(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        one = Follower("base")
        for _ in range(3):
            await one.once()
        await town.buys("carol")
        look = transfer_poller.Reader.look

        async def slow_look(*arguments: Any) -> transfer_poller.PollResult:
            """Return the poll's result after the lease has expired, as if the poll had taken that long."""
            found = await look(*arguments)
            async with transaction() as db:
                await db.execute(text("UPDATE cursor SET owned_until = now() - interval '1 second'"))
                if taken:
                    await db.execute(text("UPDATE cursor SET owner = 'other'"))
            return found

        with monkeypatch.context() as patch:
            patch.setattr(transfer_poller.Reader, "look", slow_look)
            await one.once()
        if taken:
            assert not await town.has("carol", "Holder")
            await one.once()
        await given(town)


async def test_while_there_is_no_new_block_only_the_head_is_asked_for(town: Town) -> None:
    await town.rule("Holder")
    one = Follower("base")

    async def only_the_head() -> bool:
        since = await town.mark()
        await one.once()
        asked = [*await town.requests(since, "rpc:base"), *await town.requests(since, "rpc2:base")]
        return [request["rpc_method"] for request in asked] == ["eth_getBlockByNumber"]

    await until(only_the_head)


async def test_all_chains_of_a_process_take_their_turns_at_once(town: Town) -> None:
    await town.rule("Holder")
    turns = FollowerTurns("one")
    base, polygon, ethereum = await asyncio.gather(turns.of("base"), turns.of("polygon"), turns.of("ethereum"))
    assert base is not None
    assert base.watched.contracts
    assert polygon is not None
    assert not polygon.watched.contracts
    async with transaction() as db:
        owners = (await db.execute(text("SELECT DISTINCT owner FROM cursor"))).scalars().all()
        await db.execute(text("UPDATE cursor SET owner = 'other' WHERE chain = 'base'"))
    assert owners == ["one"]
    found = await asyncio.gather(turns.of("base"), turns.of("ethereum"))
    assert found == [None, ethereum]


async def test_who_reads_for_all_chains_may_be_stopped(town: Town) -> None:
    turns = FollowerTurns("one")
    first = asyncio.create_task(turns.of("base"))
    second = asyncio.create_task(turns.of("polygon"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await second is not None


async def test_after_a_long_absence_everybody_is_reconciled_instead_of_reading_the_history(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await Follower("base").once()
        await town.buys("carol")
        await town.call("chains/base/mine", blocks=50)
        monkeypatch.setattr(transfer_poller, "MOST_BEHIND_SECONDS", 40)
        async with transaction() as db:
            await chain_cursor.release_leases(db, lambda _: True)
        await Follower("base").once()
        await given(town)


async def test_a_chain_that_no_rule_names_is_not_asked(town: Town) -> None:
    since = await town.mark()
    assert await Follower("base").once() is False
    assert await town.requests(since, "rpc:base") == await town.requests(since, "rpc2:base") == []


async def test_how_far_each_chain_is_followed_can_be_seen(town: Town) -> None:
    await town.rule("Holder")
    one = Follower("base")
    for _ in range(3):
        await one.once()
    async with transaction() as db:
        (view,) = await chain_cursor.views(db)
    assert (view.chain, view.fault) == ("base", None)
    assert 0 <= view.behind <= 10
