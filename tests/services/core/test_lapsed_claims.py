"""A claim whose lease has lapsed is over for good."""

import pytest
from sqlalchemy import text

from models import transaction
from services.core import queue
from tests.services.core.test_queue import claimed, mark, ours

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
