"""A block that the chain has not reached is remembered only for a while."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text

from models import Cursor, DelegationRead, Observation, Sighting, Survey, Tally, TokenTrail, now, transaction
from services.holdings import stored_balances
from services.triggers import unreached_blocks
from tests.support.builders import CONTRACT, address

pytestmark = pytest.mark.usefixtures("database")

HEAD, ABSURD = 40_000_000, 400_000_000


async def readings(wallet: str, block: int, minutes: int) -> None:
    """Store everything that can be remembered of a wallet, read at this block `minutes` ago."""
    moment = now() - timedelta(minutes=minutes)
    at: dict[str, Any] = {"chain": "base", "address": wallet}
    async with transaction() as db:
        db.add(
            Observation(**at, contract=CONTRACT, amount=Decimal(1), block=block, source="a node", observed_at=moment)
        )
        db.add(Survey(chain="base", block=block, source="a node", observed_at=moment, contracts=[CONTRACT]))
        db.add(
            Tally(
                **at, contract=CONTRACT, scope="", amount=Decimal(1), block=block, source="a node", observed_at=moment
            )
        )
        db.add(Sighting(**at, block=block, seen_at=moment))
        db.add(DelegationRead(chain="base", delegate=wallet, block=block, endpoint=0, read_at=moment))
        db.add(TokenTrail(**at, contract=CONTRACT, searched={"0": [0, block]}, updated_at=moment))


async def a_cursor(head: int = HEAD, minutes: int = 0) -> None:
    async with transaction() as db:
        moment = now() - timedelta(minutes=minutes)
        db.add(Cursor(chain="base", block=head - 2, head=head, updated_at=moment))


async def newest(wallet: str) -> tuple[int, int]:
    """Return the newest blocks of the wallet's balances and of its tokens; older answers are not trusted."""
    async with transaction() as db:
        rows = await db.together(
            stored_balances.newest_blocks("base", [([CONTRACT], [wallet])]),
            stored_balances.newest_tally("base", [CONTRACT], [wallet]),
        )
        return rows[0][0][0], rows[1][0][0]


async def count() -> list[int]:
    tables = ("observation", "survey", "tally", "sighting", "delegation_read", "token_trail")
    async with transaction() as db:
        return [(await db.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() for table in tables]


async def test_what_is_beyond_the_chain_for_long_is_corrected_and_the_rest_stays() -> None:
    wrong, right = address(), address()
    await a_cursor()
    await readings(wrong, ABSURD, minutes=20)
    await readings(right, HEAD + 100, minutes=20)
    assert await newest(wrong) == (ABSURD, ABSURD)
    async with transaction() as db:
        await unreached_blocks.correct(db)
    assert await newest(wrong) == (HEAD, 0)
    assert await newest(right) == (HEAD + 100, HEAD + 100)
    assert await count() == [2, 2, 1, 1, 1, 2]
    async with transaction() as db:
        rows = await db.execute(text("SELECT searched FROM token_trail WHERE address = :who"), {"who": wrong})
        assert rows.scalar_one() == {}


async def test_a_reading_of_this_moment_waits_unless_all_are_meant() -> None:
    wallet = address()
    await a_cursor()
    await readings(wallet, ABSURD, minutes=1)
    async with transaction() as db:
        await unreached_blocks.correct(db)
    assert await newest(wallet) == (ABSURD, ABSURD)
    async with transaction() as db:
        await unreached_blocks.correct(db, older=timedelta(0))
    assert await newest(wallet) == (HEAD, 0)


async def test_without_a_head_of_this_moment_nothing_is_corrected() -> None:
    wallet = address()
    await a_cursor(minutes=30)
    await readings(wallet, ABSURD, minutes=20)
    async with transaction() as db:
        await unreached_blocks.correct(db)
    assert await newest(wallet) == (ABSURD, ABSURD)
