"""A claim whose lease has lapsed stays over."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from models import transaction
from models.db.session import AsyncSession, GuardFailed
from services.core import queue
from services.core.queue import Claim
from services.core.queue.claims import LEASE
from tests.services.core.test_queue import claimed, mark, ours, rows

pytestmark = pytest.mark.usefixtures("database")


async def lapse() -> None:
    async with transaction() as db:
        await db.execute(text("UPDATE due SET claimed_until = now() - interval '1 second'"))


async def test_a_lapsed_claim_is_over_even_if_the_same_worker_claims_the_member_again() -> None:
    """A process that stood still goes on with its first look, after a later look has ended and a third has begun."""
    await mark(1, "5")
    (first,) = await claimed()
    await lapse()
    (second,) = await claimed()
    async with transaction() as db:
        assert await ours(db, [first]) == []
        assert await ours(db, [second]) == ["1:5"]
        queue.complete(db, "w1", [second])
    await mark(1, "5")
    (third,) = await claimed()
    async with transaction() as db:
        assert await ours(db, [first]) == [], "what the first look saw is older than the mark"
        assert await ours(db, [third]) == ["1:5"]


@pytest.mark.parametrize("renewed", [False, True])
async def test_a_lapsed_claim_is_over_even_if_nobody_has_claimed_the_member_since(renewed: bool) -> None:
    """The whole machine slept, so nobody could mark the member either."""
    await mark(1, "5")
    (first,) = await claimed()
    await lapse()
    async with transaction() as db:
        if renewed:
            await queue.renew(db, "w1")
        assert await ours(db, [first]) == []
    with pytest.raises(GuardFailed):
        async with transaction() as db:
            queue.check_unchanged(db, "w1", [first])
    async with transaction() as db:
        await queue.retry_later(db, "w1", [first], ["a node did not answer"])
        queue.complete(db, "w1", [first])
    (row,) = await rows()
    assert (row.attempts, row.claimed_until) == (0, None), "the member still waits"
    (second,) = await claimed()
    async with transaction() as db:
        assert await ours(db, [second]) == ["1:5"]


async def completed(db: AsyncSession, worker: str, claims: list[Claim]) -> None:
    queue.complete(db, worker, claims)


async def postponed(db: AsyncSession, worker: str, claims: list[Claim]) -> None:
    await queue.postpone(db, worker, claims, 60)


async def left_for_a_retry(db: AsyncSession, worker: str, claims: list[Claim]) -> None:
    await queue.retry_later(db, worker, claims, ["a node did not answer"])


@pytest.mark.parametrize("end", [queue.release, postponed, completed, left_for_a_retry])
@pytest.mark.parametrize("marks", [0, 3])
async def test_the_end_of_a_lapsed_claim_leaves_the_next_one_of_the_same_worker_alone(
    end: Callable[[AsyncSession, str, list[Claim]], Awaitable[None]], marks: int
) -> None:
    """A part that stood still past its lease ends while the worker's next reconcile of the member is under way."""
    await mark(1, "5")
    (first,) = await claimed()
    # As if that had been a lease and a second ago.
    since = round((LEASE + timedelta(seconds=1)) / timedelta(microseconds=1))
    first = replace(first, version=first.version - since)
    async with transaction() as db:
        await db.execute(
            text("UPDATE due SET claimed_until = now() - interval '1 second', version = version - :since"),
            {"since": since},
        )
    for _ in range(marks):
        await mark(1, "5")
    (second,) = await claimed()
    async with transaction() as db:
        await end(db, "w1", [first])
    (row,) = await rows()
    assert (row.claimed_by, row.version, row.attempts) == ("w1", second.version, 0)
    async with transaction() as db:
        assert await ours(db, [second]) == ["1:5"]
        await end(db, "w1", [second])
    assert [row.claimed_by for row in await rows()] in ([], [None])


@pytest.mark.parametrize("end", [queue.release, postponed, completed])
async def test_a_claim_that_was_marked_again_and_again_is_released_all_the_same(
    end: Callable[[AsyncSession, str, list[Claim]], Awaitable[None]],
) -> None:
    await mark(1, "5")
    (claim,) = await claimed()
    for _ in range(5):
        await mark(1, "5")
    async with transaction() as db:
        await end(db, "w1", [claim])
    (row,) = await rows()
    assert (row.claimed_by, row.version) == (None, claim.version + 5)
