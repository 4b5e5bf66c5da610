"""The rows of a count: what the transfers add up to, and that an owner who has nothing left has no row."""

import pytest
from sqlalchemy import text

from gateways.evm.tokens.transfer_history import TokenMove
from models import Census, transaction
from models.db.session import AsyncSession
from services.collections.census import owned_tokens
from services.collections.census.owned_tokens import NEWEST, NOBODY, SETTLED, TooManyTokens, Written

ALICE, BOB = "0x" + 20 * "a1", "0x" + 20 * "b0"


async def a_census(db: AsyncSession) -> int:
    row = Census(chain="base", contract=ALICE)
    db.add(row)
    await db.flush()
    return row.id or 0


async def test_rows_of_nothing_are_deleted_and_those_below_are_told(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_tokens, "_ROWS", 2)
    async with transaction() as db:
        census = await a_census(db)
        given = {(ALICE, token): 1 for token in range(5)}
        assert await owned_tokens.add(db, census, SETTLED, given) == Written(5, False)
        moved = {(ALICE, 0): -1, (ALICE, 1): -1, (ALICE, 2): 4, (BOB, 0): 1, (BOB, 1): 1}
        assert await owned_tokens.add(db, census, SETTLED, moved) == Written(0, False)
        left = await db.execute(text("SELECT owner, token, amount FROM census_token ORDER BY owner, token"))
        assert [(owner, int(token), int(amount)) for owner, token, amount in left.all()] == [
            (ALICE, 2, 5), (ALICE, 3, 1), (ALICE, 4, 1), (BOB, 0, 1), (BOB, 1, 1),
        ]  # fmt: skip
        assert await owned_tokens.add(db, census, SETTLED, {(BOB, 9): -1}) == Written(1, True)


async def test_less_than_nothing_is_seen_in_the_sum_of_both_parts(product: None) -> None:
    async with transaction() as db:
        census = await a_census(db)
        await owned_tokens.add(db, census, SETTLED, {(ALICE, 1): 2})
        await owned_tokens.add(db, census, NEWEST, {(ALICE, 1): -2})
        assert not await owned_tokens.is_negative_in_sum(db, census)
        await owned_tokens.add(db, census, NEWEST, {(ALICE, 1): -1})
        assert await owned_tokens.is_negative_in_sum(db, census)


def test_one_log_for_more_tokens_than_a_count_keeps_is_refused_before_it_costs_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owned_tokens, "MOST_TOKENS", 100)
    whole = TokenMove(1, 0, 100, 1, NOBODY, ALICE)
    assert len(owned_tokens.added_up([whole])) == 101
    for hostile in ([TokenMove(1, 0, 101, 1, NOBODY, ALICE)], [whole, TokenMove(2, 0, 1, 1, ALICE, BOB)]):
        with pytest.raises(TooManyTokens):
            owned_tokens.added_up(hostile)
    single = [TokenMove(1, token, token, 1, NOBODY, ALICE) for token in range(300)]
    assert len(owned_tokens.added_up(single)) == 300
