"""What readings of balances store in the database."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from gateways.chains.balance_sheet import BalanceSheet, Cells, packed
from models import transaction
from services.holdings import fetch, stored_balances
from services.holdings.evaluate import Answers
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import Wants
from tests.support.builders import CONTRACT, a_server, address
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")

NOW = datetime(2026, 1, 2, tzinfo=UTC)
Told = tuple[str, int, int | None]
"""A wallet, a block, and the number that the contract said the wallet held then; None for no answer."""


def _asked(told: Told, server_id: int) -> tuple[HoldingsQuestion, Answers]:
    owner, block, amount = told
    cells = Cells(1, 1)
    cells.put(0, 0, amount)
    sheet = BalanceSheet("base", block, NOW, 0, "Base node 1", packed([CONTRACT]), packed([owner]), cells)
    question = HoldingsQuestion("base", Wants(balances=(CONTRACT,)), (owner,), server_id=server_id)
    return question, Answers(frozenset([owner]), sheet=sheet)


async def remembered(*rounds: tuple[Told, ...]) -> Mapping[str, tuple[int, int]]:
    """Store these rounds, and return by wallet the amount that is kept and its block."""
    for told in rounds:
        async with transaction() as db:
            server = await a_server(db)
            asked = [_asked(one, server.id or 0) for one in told]
            await fetch.remember(db, asked)
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


async def test_a_reading_that_came_too_late_does_not_replace_the_newer_snapshot() -> None:
    """Otherwise a node that is behind the newer one would be believed."""
    one = address()
    async with transaction() as db:
        server_id = (await a_server(db)).id or 0
    for block in (5, 9, 8):
        async with transaction() as db:
            await fetch.remember(db, [_asked((one, block, 2), server_id)])
    async with transaction() as db:
        (((block,),),) = await db.together(stored_balances.newest_blocks("base", [([CONTRACT], [one])]))
    assert block == 9


@pytest.mark.parametrize("last", [0, 2, 3])
async def test_of_two_readings_in_one_round_the_newer_one_stays(last: int) -> None:
    one = address()
    assert await remembered(((one, 5, 2),), ((one, 6, 7), (one, 8, last))) == {one: (last, 8)}


async def test_a_reading_that_came_too_late_does_not_hide_the_newer_one_of_the_same_round() -> None:
    """The first of two readings is older than the stored one, so it is not written; the second has the same amount."""
    one = address()
    assert await remembered(((one, 20, 2),), ((one, 10, 3), (one, 25, 3))) == {one: (3, 25)}
    assert (await remembered(((one, 26, 3),), ((one, 10, 0), (one, 27, 0))))[one] == (0, 27)


def _joint(
    server_id: int, contracts: tuple[str, ...], held: Mapping[str, int | None]
) -> tuple[HoldingsQuestion, Answers]:
    """Return a server's share of one reading at block 9, in which a wallet holds the same number of every contract."""
    owners = tuple(sorted(held))
    cells = Cells(len(contracts), len(owners))
    for row in range(len(contracts)):
        for column, owner in enumerate(owners):
            cells.put(row, column, held[owner])
    sheet = BalanceSheet("base", 9, NOW, 0, "Base node 1", packed(contracts), packed(owners), cells)
    return HoldingsQuestion("base", Wants(balances=contracts), owners, server_id=server_id), Answers(
        frozenset(owners), sheet=sheet
    )


async def test_one_reading_of_many_servers_changes_only_what_each_server_asked_about() -> None:
    one, both, unsure = sorted(address() for _ in range(3))
    first, second = "0x" + "c1" * 20, "0x" + "c2" * 20
    async with transaction() as db:
        here, there = [(await a_server(db)).id or 0 for _ in range(2)]
        # At first, every wallet holds one token of each contract.
        await fetch.remember(db, [_joint(here, (first, second), {one: 1, both: 1, unsure: 1})])
        await db.execute(text("UPDATE observation SET block = 8"))
    asked = [_joint(here, (first,), {one: 0, both: 0, unsure: None}), _joint(there, (second,), {both: 5, unsure: 0})]
    with Statements() as counted:
        async with transaction() as db:
            await fetch.remember(db, asked)
    async with transaction() as db:
        rows = await db.execute(text("SELECT address, contract, amount FROM observation"))
        kept = {(owner, contract): int(amount) for owner, contract, amount in rows.all()}
        surveyed = await db.execute(
            text(
                "SELECT d.address, d.server_id, s.contracts FROM surveyed d JOIN survey s ON s.id = d.survey_id "
                "WHERE (d.server_id, s.contracts) <> (:here, ARRAY[:first, :second])"
            ),
            {"here": here, "first": first, "second": second},
        )
        told = sorted((owner, server_id, *contracts) for owner, server_id, contracts in surveyed.all())
    assert kept == {
        (one, first): 0, (one, second): 1,
        (both, first): 0, (both, second): 5,
        (unsure, first): 1, (unsure, second): 0,
    }  # fmt: skip
    assert told == sorted([(one, here, first), (both, here, first), (both, there, second), (unsure, there, second)])
    assert counted.count <= 3, "however many servers there are"


async def test_two_servers_that_ask_the_same_of_the_same_wallet_write_it_down_once() -> None:
    one = address()
    async with transaction() as db:
        servers = [(await a_server(db)).id or 0 for _ in range(3)]
        await fetch.remember(db, [_joint(server, (CONTRACT,), {one: 4}) for server in servers])
    async with transaction() as db:
        counts = await db.execute(text("SELECT (SELECT count(*) FROM observation), (SELECT count(*) FROM surveyed)"))
        assert tuple(counts.one()) == (1, 3)
