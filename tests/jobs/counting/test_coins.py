"""Counts of a coin's holders: sums of its transfers, used only if its contract reports the same."""

import uuid
from typing import Any

import pytest

from services.collections.census import count_by_transfers
from services.collections.census import reach_numbers as numbers_of_rules
from tests.jobs.counting.counts import NOBODY, leaf, numbers, stale
from tests.jobs.town import BOTH, STRANGER, Town


def coin(contract: str, **bounds: str) -> dict[str, Any]:
    return {"type": "token", "chain": "base", "contract": contract, "decimals": 6, **bounds}


async def test_the_holders_of_a_coin_are_those_of_its_own_ledger(town: Town) -> None:
    made = await town.call("chains/base/deploy", standard="ERC20", name="Reef", slug=uuid.uuid4().hex, decimals=6)
    contract = made["contract"].lower()
    for who, amount in ((town.wallet("carol"), 10**24), (town.wallet("dave"), 2_500_000), (STRANGER, 1)):
        await town.call("chains/base/mint", contract=contract, to=who, amount=str(amount))
    await town.call("chains/base/mine", blocks=5)
    burnt = {"contract": contract, "from": town.wallet("dave"), "amount": "500000"}
    await town.call("chains/base/transfer", **burnt, to=NOBODY)
    world = (await town.control.get("/control/world")).json()
    (listed,) = [one for one in world["chains"]["base"]["collections"] if one["contract"].lower() == contract]
    held = [int(amount) for amount in listed["holders"].values()]
    assert len(held) == 4
    for least, units in (("0.000001", 1), ("2", 2_000_000), ("1000000000000000000", 10**24)):
        found = await numbers(town, coin(contract, min=least))
        assert (found.state, found.holders) == ("done", sum(1 for one in held if one >= units)), least
    both = await numbers(town, {"all": [coin(contract, min="1"), leaf(town)]})
    assert (both.holders, both.verified_here) == (2, 1)
    for kind in ("zero", "empty", "500"):
        await stale()
        await town.break_(kind, *BOTH)
        found = await numbers(town, coin(contract, min="1"))
        assert (found.state, found.holders) == ("failed", None), kind
        await town.heal()
    tokens = await numbers(town, leaf(town, contract=contract))
    assert (tokens.state, tokens.holders, tokens.reason) == ("failed", None, count_by_transfers.UNREADABLE)
    odd = await numbers(town, coin(town.contract, min="1"))
    assert (odd.state, odd.holders, odd.reason) == ("failed", None, numbers_of_rules.NO_COIN)


async def test_a_coin_whose_balances_change_without_transfers_is_not_counted(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await town.call(
        "chains/base/deploy", standard="ERC20", name="Tide", slug=uuid.uuid4().hex, decimals=6, rebases=True
    )
    await town.call("chains/base/mint", contract=made["contract"], to=STRANGER, amount="1000")
    await town.call("chains/base/rebase", contract=made["contract"], percent=50)
    found = await numbers(town, coin(made["contract"].lower(), min="0.0001"))
    assert (found.state, found.holders, "not the sums" in (found.reason or "")) == ("failed", None, True)
