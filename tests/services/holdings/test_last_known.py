"""What is remembered about wallets' holdings."""

from decimal import Decimal

import pytest

from models import Observation, Tally, now, transaction
from services.holdings import last_known
from services.rules.expression import Requirement
from tests.support.builders import CONTRACT, address

pytestmark = pytest.mark.usefixtures("database")


async def test_holdings_of_any_number_of_wallets_are_found() -> None:
    """A statement takes at most 65,535 parameters, and anybody may delegate hundreds of vaults to a member's wallet."""
    mine, others = address(), [f"vault {number}" for number in range(70_000)]
    place = {"chain": "base", "contract": CONTRACT, "address": mine, "source": "Base node 1", "observed_at": now()}
    async with transaction() as db:
        db.add(Observation(**place, amount=Decimal(2), block=5))
        db.add(Tally(**place, scope="trait", amount=Decimal(1), block=5))
    async with transaction() as db:
        memory = await last_known.load(db, [Requirement("basic", "base", CONTRACT)], [*others, mine])
    assert {key[2:]: one.part.amount for key, one in memory.items()} == {(mine, "balance"): 2, (mine, "trait"): 1}
