"""The registries' answers about delegations are stored, however many wallets a server's members have."""

import pytest
from sqlalchemy import text

import models
from gateways.evm.delegate_registry import DelegationSheet, RegisteredDelegation
from locales import speaking
from locales.stored_texts import said
from services.holdings import delegations
from services.holdings.delegations import Fetched

pytestmark = pytest.mark.usefixtures("database")
MANY = 10_000
WALLETS = tuple(f"0x{number:040x}" for number in range(1, MANY + 1))


def sheet(found: dict[str, tuple[RegisteredDelegation, ...]], unsure: dict[str, str]) -> DelegationSheet:
    """Return a registry's answer at block 7."""
    return DelegationSheet("base", 7, models.now(), 0, "Base (node 1)", found, unsure)


async def kept(fault: str) -> int:
    """Return how many wallets' delegations are stored with this fault or, for "", without one."""
    async with models.reading() as db:
        question = "SELECT count(*) FROM delegation_read WHERE COALESCE(fault, '') = :fault"
        return int((await db.execute(text(question), {"fault": fault})).scalar_one())


async def test_more_wallets_than_a_statement_has_room_for_are_kept() -> None:
    said = Fetched("base", WALLETS, sheet(dict.fromkeys(WALLETS, ()), {}))
    async with models.transaction() as db:
        await delegations.remember(db, [said])
    assert await kept("") == MANY


async def test_more_wallets_that_could_not_be_read_than_a_statement_has_room_for_are_noted() -> None:
    async with models.transaction() as db:
        await delegations.remember(db, [Fetched("base", WALLETS, "no answer")])
    assert await kept("no answer") == MANY


def test_why_a_second_read_says_nothing_is_told_in_the_readers_language() -> None:
    one, other = WALLETS[:2]
    read = [
        Fetched("base", (one,), "waiting for a later block to confirm"),
        Fetched("base", (other,), sheet({}, {other: "no answer"})),
    ]
    found = delegations.disagreements({}, read)
    assert [said(reason) for reason in found.values()] == [
        "delegations: waiting for a later block to confirm", "delegations: no answer",
    ]  # fmt: skip
    with speaking("ja"):
        assert said(found["base", one]) == "委任：後のブロックでの確認を待っています"
