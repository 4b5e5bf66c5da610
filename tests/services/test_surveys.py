"""What readings of balances leave in the database."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from gateways.balance_sheet import BalanceSheet, Cells, packed
from models import transaction
from services import holdings
from services.holdings import Question
from services.readings import Answers
from services.wants import Wants
from tests.builders import CONTRACT, a_server, address

pytestmark = pytest.mark.usefixtures("database")

NOW = datetime(2026, 1, 2, tzinfo=UTC)
Told = tuple[str, int, int | None]
"""A wallet, a block, and how many the contract said that it held then; None for no answer."""


def _asked(told: Told, server_id: int) -> tuple[Question, Answers]:
    owner, block, amount = told
    cells = Cells(1, 1)
    cells.put(0, 0, amount)
    sheet = BalanceSheet("base", block, NOW, 0, "Base node 1", packed([CONTRACT]), packed([owner]), cells)
    question = Question("base", Wants(balances=(CONTRACT,)), (owner,), server_id=server_id)
    return question, Answers(frozenset([owner]), sheet=sheet)


async def remembered(*rounds: tuple[Told, ...]) -> Mapping[str, tuple[int, int]]:
    """By wallet the amount that is kept after these rounds, and its block."""
    for told in rounds:
        async with transaction() as db:
            server = await a_server(db)
            asked = [_asked(one, server.id or 0) for one in told]
            await holdings.remember(db, asked)
    async with transaction() as db:
        rows = await db.execute(text("SELECT address, amount, block FROM observation"))
        return {owner: (int(amount), block) for owner, amount, block in rows.all()}


async def test_only_changes_are_written() -> None:
    one, two = address(), address()
    kept = await remembered(((one, 5, 2), (two, 5, 0)), ((one, 6, 2), (two, 6, 1)), ((one, 7, 0), (two, 7, 1)))
    assert kept == {one: (0, 7), two: (1, 6)}


async def test_what_is_unknown_overwrites_nothing_and_neither_does_an_older_block() -> None:
    one = address()
    assert await remembered(((one, 9, 2),), ((one, 10, None),), ((one, 8, 3),)) == {one: (2, 9)}


@pytest.mark.parametrize("last", [0, 2, 3])
async def test_of_two_readings_in_one_round_the_newer_one_stays(last: int) -> None:
    one = address()
    assert await remembered(((one, 5, 2),), ((one, 6, 7), (one, 8, last))) == {one: (last, 8)}


async def test_a_reading_that_came_too_late_does_not_hide_the_newer_one_of_the_same_round() -> None:
    """The first of the two is older than what is kept, so it is not written, and the second says the same as it."""
    one = address()
    assert await remembered(((one, 20, 2),), ((one, 10, 3), (one, 25, 3))) == {one: (3, 25)}
    assert (await remembered(((one, 26, 3),), ((one, 10, 0), (one, 27, 0))))[one] == (0, 27)
