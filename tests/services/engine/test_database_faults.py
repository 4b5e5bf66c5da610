"""A database error in one part of a batch: only that part is reconciled again, unless the database is away."""

from collections.abc import Sequence
from datetime import datetime

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from jobs import reconciler
from jobs.reconciler import Reconciler
from models import AsyncSession
from services.core import queue
from services.core.queue import Claim
from services.engine import reconcile
from services.engine.reconcile import BatchPart
from tests.services.engine.stage import Stage, left, mark, until, while_it_works
from tests.services.engine.stage import stage as stage

pytestmark = pytest.mark.usefixtures("database")

FAULT = OperationalError("", {}, psycopg.errors.DeadlockDetected("deadlock detected"))


class Failing:
    """A reconcile whose first tries for server 2 end with a database error."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
        self.stage = stage
        self.times = times
        self.tries: list[int] = []
        monkeypatch.setattr(reconcile, "reconcile_part", self)

    async def __call__(self, outside: object, worker: str, part: BatchPart) -> bool:
        (server_id,) = {claim.server_id for claim in part.claims}
        self.tries.append(server_id)
        if server_id == 2 and self.tries.count(2) <= self.times:
            raise FAULT
        return await self.stage.reconcile_part(outside, worker, part)


@pytest.mark.parametrize("dear", [False, True])
async def test_a_deadlock_in_one_part_drops_no_other_reads(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, dear: bool
) -> None:
    failing = Failing(stage, monkeypatch)
    stage.held = {1}
    stage.dear = {1, 2} if dear else set()

    async def doing(_: Reconciler) -> None:
        await mark(1)
        await until(lambda: stage.under_way == [1])
        await mark(2)
        await until(lambda: 2 in stage.servers_settled())
        stage.go_on.set()
        await until(lambda: 1 in stage.servers_settled())

    await while_it_works(doing)
    assert failing.tries == [1, 2, 2]
    assert await left() == 0


async def test_when_the_database_is_away_the_worker_begins_again_with_all_its_members(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(stage, monkeypatch)
    stage.held = {1}
    postponed: list[Sequence[Claim]] = []

    async def away(_: AsyncSession, _worker: str, claims: Sequence[Claim], _seconds: float) -> None:
        postponed.append(claims)
        raise FAULT

    monkeypatch.setattr(queue, "postpone", away)

    async def doing(_: Reconciler) -> None:
        await mark(1)
        await until(lambda: stage.under_way == [1])
        await mark(2)
        await until(lambda: failing.tries.count(1) == 2)
        stage.go_on.set()
        await until(lambda: stage.servers_settled() == {1, 2})

    await while_it_works(doing)
    assert len(postponed) == 1
    assert await left() == 0


async def test_a_part_that_fails_each_time_is_tried_after_growing_pauses_up_to_a_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(stage, monkeypatch, times=4)
    pauses: list[float] = []
    postpone = queue.postpone

    async def at_once(db: AsyncSession, worker: str, claims: Sequence[Claim], seconds: float) -> None:
        pauses.append(seconds)
        await postpone(db, worker, claims, 0)

    monkeypatch.setattr(queue, "postpone", at_once)
    monkeypatch.setattr(reconciler, "LONGEST_REST_SECONDS", 5 * reconciler.IDLE_SECONDS)

    async def doing(_: Reconciler) -> None:
        await mark(2)
        await until(lambda: 2 in stage.servers_settled())
        failing.times = failing.tries.count(2) + 1
        stage.settled.clear()
        await mark(2)
        await until(lambda: 2 in stage.servers_settled())

    await while_it_works(doing)
    first = reconciler.IDLE_SECONDS
    assert pauses == [first, 2 * first, 4 * first, 5 * first, first], "a success ends the growth"
    assert await left() == 0


async def all_but_one_are_settled(stage: Stage) -> None:
    """Reconcile twenty members of whom one cannot be, and see that only that one is left."""

    async def doing(_: Reconciler) -> None:
        await mark(2, people=20)
        await until(lambda: len(stage.settled) == 19)

    await while_it_works(doing)
    assert await left() == 1


@pytest.mark.parametrize("dear", [False, True])
async def test_an_error_about_one_member_delays_the_others_of_the_part_only_at_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, dear: bool
) -> None:
    """As if the disk could not read the page of the database that has this member."""
    stage.dear = {2} if dear else set()

    async def unreadable(outside: object, worker: str, part: BatchPart) -> bool:
        if "0" in {claim.discord_id for claim in part.claims}:
            raise FAULT
        return await stage.reconcile_part(outside, worker, part)

    monkeypatch.setattr(reconcile, "reconcile_part", unreadable)

    await all_but_one_are_settled(stage)


async def test_a_member_who_cannot_be_read_delays_nobody_else_of_the_batch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot is read for all of a batch at once, before it has parts."""
    read: list[set[str]] = []

    async def unreadable(db: AsyncSession, outside: object, claims: Sequence[Claim]) -> list[BatchPart]:
        read.append({claim.discord_id for claim in claims})
        if "7" in read[-1]:
            raise FAULT
        return await stage.parts(db, outside, claims)

    monkeypatch.setattr(reconcile, "parts", unreadable)

    await all_but_one_are_settled(stage)
    assert len(read[0]) == 20, "they are read together at first"


async def test_when_the_database_is_away_nobody_is_read_in_halves(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    async def away(db: AsyncSession, outside: object, claims: Sequence[Claim]) -> list[BatchPart]:
        read.append(len(claims))
        if len(read) < 3:
            raise FAULT
        return await stage.parts(db, outside, claims)

    clock = AsyncSession.now

    async def stopped(session: AsyncSession) -> datetime:
        if len(read) < 3:
            raise FAULT
        return await clock(session)

    monkeypatch.setattr(reconcile, "parts", away)
    monkeypatch.setattr(AsyncSession, "now", stopped)

    async def doing(_: Reconciler) -> None:
        await mark(2, people=20)
        await until(lambda: len(stage.settled) == 20)

    await while_it_works(doing)
    assert read == [20, 20, 20]
