"""A claim whose lease has lapsed stays over."""

import pytest
from sqlalchemy import text

from models import transaction
from models.db.session import GuardFailed
from services.core import queue
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
