"""Servers that are slow to read have their own lanes, so that members of other servers do not wait for them."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from jobs import reconciler
from jobs.reconciler import Reconciler
from models import AsyncSession, transaction
from services.core.queue import Claim
from services.engine import reconcile
from services.engine.reconcile import BatchPart
from tests.services.engine.stage import Stage, left, mark, until, while_it_works
from tests.services.engine.stage import stage as stage

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("dear", [False, True])
async def test_who_is_slow_keeps_nobody_else_waiting(stage: Stage, dear: bool) -> None:
    stage.held = {1}
    stage.dear = {1} if dear else set()

    async def doing(_: Reconciler) -> None:
        await mark(1)
        await until(lambda: stage.under_way == [1])
        for server_id in (2, 3):
            await mark(server_id)
            await until(lambda server_id=server_id: server_id in stage.servers_settled())
        assert stage.under_way == [1]
        stage.go_on.set()
        await until(lambda: 1 in stage.servers_settled())

    await while_it_works(doing)
    assert await left() == 0


@pytest.mark.parametrize("dear", [False, True])
async def test_a_member_marked_while_under_way_is_claimed_again_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, dear: bool
) -> None:
    monkeypatch.setattr(reconciler, "IDLE_SECONDS", 3_600)
    stage.held = {1}
    stage.dear = {1} if dear else set()

    async def doing(_: Reconciler) -> None:
        await mark(1)
        await until(lambda: stage.under_way == [1])
        await mark(1)
        await mark(2)
        await until(lambda: 2 in stage.servers_settled() and stage.idle)
        stage.go_on.set()
        await until(lambda: [claim.server_id for claim in stage.settled] == [2, 1, 1])

    await while_it_works(doing)
    assert await left() == 0


async def test_more_slow_servers_than_there_are_lanes_take_turns_beside_what_balances_answer(stage: Stage) -> None:
    slow = set(range(10, 10 + 2 * reconciler.LANES))
    stage.held = stage.dear = slow

    async def doing(_: Reconciler) -> None:
        for server_id in slow:
            await mark(server_id)
        await until(lambda: len(stage.under_way) == reconciler.LANES)
        await mark(2)
        await until(lambda: 2 in stage.servers_settled())
        assert len(stage.under_way) == reconciler.LANES
        stage.go_on.set()
        await until(lambda: stage.servers_settled() == slow | {2})

    await while_it_works(doing)


async def test_a_server_has_one_lane_and_few_members_in_it_and_the_others_stay_due(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "FEW", 3)
    monkeypatch.setattr(reconciler, "IDLE_SECONDS", 3_600)
    stage.held = stage.dear = {1}

    async def doing(worker: Reconciler) -> None:
        await mark(1, people=8)
        await until(lambda: stage.under_way == [1])
        await mark(2)
        await until(lambda: 2 in stage.servers_settled() and stage.idle)
        assert stage.under_way == [1]
        stage.go_on.set()
        await until(lambda: len(stage.settled) == 9)

    await while_it_works(doing)


@pytest.mark.parametrize(
    ("unanswered", "late", "sizes"),
    [
        (set[int](), set[int](), [2, 4, 8, 16, 16, 4]),
        ({2}, set[int](), [2, 4, 8, 2, 4, 8, 16, 6]),
        (set[int](), {2}, [2, 4, 8, 4, 8, 16, 8]),
    ],
    ids=["quick", "unanswered", "late"],
)
async def test_a_servers_parts_grow_while_they_are_quick_and_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, unanswered: set[int], late: set[int], sizes: list[int]
) -> None:
    monkeypatch.setattr(reconciler, "FEW", 2)
    monkeypatch.setattr(reconciler, "MOST_OF_A_SERVER", 16)
    stage.dear, stage.unanswered, stage.late = {1}, unanswered, late
    await mark(1, people=50)
    worker = Reconciler(asyncio.Event())
    while await worker.once():
        pass
    assert stage.sizes == sizes


async def test_a_large_part_leaves_room_for_small_ones(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "FEW", 2)
    monkeypatch.setattr(reconciler, "MOST_IN_LANES", 16)
    stage.dear, stage.held = {1, 2}, {1, 2}
    await mark(1, people=10)
    await mark(2, people=10)

    async def doing(worker: Reconciler) -> None:
        worker._sizes.update({1: 8, 2: 8})  # pyright: ignore[reportPrivateUsage]
        await until(lambda: len(stage.under_way) == 2)
        assert sorted(stage.sizes) == [2, 8]
        stage.go_on.set()
        await until(lambda: len(stage.settled) == 20)

    await while_it_works(doing)


async def test_servers_without_a_place_to_wait_are_put_off(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "MOST_WAITING", 2)
    monkeypatch.setattr(reconciler, "PUT_OFF_SECONDS", 0.05)
    slow = {11, 12, 13, 14, 15}
    stage.held = stage.dear = slow

    async def doing(_: Reconciler) -> None:
        for server_id in slow:
            await mark(server_id)
        await until(lambda: len(stage.under_way) == 2)
        stage.go_on.set()
        await until(lambda: stage.servers_settled() == slow)

    await while_it_works(doing)
    assert all(claim.attempts == 0 for claim in stage.settled)


@pytest.mark.parametrize("silent", [{"ethereum"}, {"ethereum", "polygon"}])
async def test_a_silent_chain_keeps_no_member_of_another_chain_waiting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, silent: set[str]
) -> None:
    monkeypatch.setattr(reconciler, "MOST_IN_FLIGHT", 4)
    monkeypatch.setattr(reconciler, "MOST_STALLED", 6)
    monkeypatch.setattr(reconciler, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(reconciler, "LOOKED_AFTER_SECONDS", 0.02)
    said, outside = set[str](), SimpleNamespace(is_silent=lambda chain: chain in said)
    monkeypatch.setattr(reconciler, "gateways", lambda: SimpleNamespace(chains=outside))
    stage.held = set(range(11, 41))
    stage.chains = {server_id: ("ethereum", "polygon")[server_id % 2] for server_id in stage.held}
    hung = {server_id for server_id in stage.held if stage.chains[server_id] in silent}

    async def doing(_: Reconciler) -> None:
        for server_id in hung:
            await mark(server_id)
        await until(lambda: len(stage.under_way) == 4)
        await mark(2, people=6)
        # It is not known yet whether the chains are silent or only slow, so no extra lane is free.
        assert not stage.settled
        said.update(silent)
        await until(lambda: len(stage.settled) == 6)
        assert stage.servers_settled() == {2}
        # No more parts wait for one chain at a time than are allowed.
        assert all(
            sum(stage.chains[server_id] == chain for server_id in stage.under_way) <= reconciler.MOST_STALLED
            for chain in silent
        )
        said.clear()
        stage.go_on.set()
        await until(lambda: len(stage.settled) == 6 + len(hung))

    await while_it_works(doing)
    assert all(claim.attempts == 0 for claim in stage.settled)


async def test_no_more_members_are_claimed_than_a_worker_can_have_in_hand(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "MOST_IN_FLIGHT", 4)
    stage.held = {1}

    async def doing(_: Reconciler) -> None:
        await mark(1, people=10)
        async with asyncio.timeout(30):
            while True:
                async with transaction() as db:
                    said = await db.execute(text("SELECT count(*) FROM due WHERE claimed_by IS NOT NULL"))
                if said.scalar_one() == 4:
                    break
                await asyncio.sleep(0.01)
        stage.go_on.set()
        await until(lambda: len(stage.settled) == 10)

    await while_it_works(doing)


async def test_members_in_the_lanes_take_no_room_from_those_whom_balances_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "MOST_IN_FLIGHT", 4)
    monkeypatch.setattr(reconciler, "MOST_IN_LANES", 8)
    monkeypatch.setattr(reconciler, "PUT_OFF_SECONDS", 0.05)
    stage.held = stage.dear = {11, 12, 13}

    async def doing(_: Reconciler) -> None:
        for server_id in stage.dear:
            await mark(server_id, people=4)
        await until(lambda: len(stage.under_way) == 2)
        await mark(2, people=6)
        await until(lambda: len(stage.settled) == 6)
        assert len(stage.under_way) == 2
        stage.go_on.set()
        await until(lambda: len(stage.settled) == 18)

    await while_it_works(doing)


async def test_claims_are_kept_while_their_batch_is_split(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another worker claims them and splits the batch too, and neither gets to the member at fault."""
    monkeypatch.setattr(reconciler, "RENEW_SECONDS", 0.01)
    stage.held = {1}
    made = stage.parts

    async def failing(db: AsyncSession, outside: object, claims: Sequence[Claim]) -> list[BatchPart]:
        if any(claim.server_id == 2 for claim in claims):
            raise ValueError("nobody foresaw this")
        return await made(db, outside, claims)

    monkeypatch.setattr(reconcile, "parts", failing)
    for server_id in (1, 2):
        await mark(server_id)

    async def doing(_: Reconciler) -> None:
        await until(lambda: stage.under_way == [1])
        async with transaction() as db:
            await db.execute(text("UPDATE due SET claimed_until = now() + interval '20 seconds'"))
        async with asyncio.timeout(30):
            while not await is_claimed(2):
                await asyncio.sleep(0.01)
        stage.go_on.set()
        await until(lambda: stage.servers_settled() == {1})

    await while_it_works(doing)


async def is_claimed(server_id: int) -> bool:
    async with transaction() as db:
        found = await db.execute(
            text("SELECT 1 FROM due WHERE starts_with(key, :server) AND claimed_until > now() + interval '30 seconds'"),
            {"server": f"{server_id}:"},
        )
        return found.first() is not None
