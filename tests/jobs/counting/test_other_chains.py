"""Counts on Solana, with compressed and burnt assets, and on a chain that has its own virtual machine."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from services.collections.census import count_by_transfers
from tests.jobs.counting.counts import forgotten, leaf, numbers
from tests.jobs.town import STRANGER, Town, a_town

FAULTS = ["down", "429", "empty", "zero", "stale", "malformed"]
HARMLESS = {None, "stale", "zero"}
"""Faults that leave a list of assets as it was: a balance of zero is not part of the list."""


@pytest.fixture
async def on_abstract(product: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town whose collection is on Abstract, with three tokens held by two people."""
    async with a_town(sandbox_url, "ada", "carol", "dave", chain="abstract") as made:
        for who in ("carol", "carol", "dave"):
            await made.buys(who)
        yield made
        await made.heal()
        await made.leave()


async def seeded(town: Town) -> tuple[str, Counter[str]]:
    """Return the sandbox's own collection on Solana, and how many of it each wallet has."""
    world = (await town.control.get("/control/world")).json()
    listed = world["chains"]["solana"]["collections"][0]
    held = Counter(owner for token in listed["tokens"] for owner, amount in token["owners"].items() if int(amount))
    return listed["contract"], held


async def test_on_solana_compressed_assets_count_and_no_fault_makes_another_number(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_by_transfers, "MOST_FAULTS", 1)
    contract, held = await seeded(town)
    assert len(held) > 1
    for kind in (None, *FAULTS):
        if kind is not None:
            await town.break_anew(kind, "solana")
        for least in (1, 2):
            found = await numbers(town, {"type": "basic", "chain": "solana", "contract": contract, "minTokens": least})
            right = sum(amount >= least for amount in held.values())
            if kind in HARMLESS:
                assert (found.state, found.holders) == ("done", right), kind
            else:
                assert (found.state, found.holders, bool(found.reason)) == ("failed", None, True), kind
        await forgotten()


@pytest.mark.parametrize("nodes", [(1,), (2,), (1, 2)], ids=["first", "second", "both"])
async def test_on_abstract_no_fault_makes_another_number(
    on_abstract: Town, monkeypatch: pytest.MonkeyPatch, nodes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(count_by_transfers, "MOST_FAULTS", 1)
    for number, kind in enumerate(FAULTS):
        await on_abstract.break_anew(kind, *(("rpc:abstract", "rpc2:abstract")[node - 1] for node in nodes))
        somebody = f"{STRANGER[:-2]}{number:02}"
        await on_abstract.call("chains/abstract/transfer", contract=on_abstract.contract, token_id="3", to=somebody)
        found = await numbers(on_abstract, leaf(on_abstract, minTokens=2))
        assert found.state in {"done", "failed"}
        assert found.holders in ({1} if found.state == "done" else {None}), kind
        await forgotten()


async def test_on_abstract_holders_are_those_of_the_chain(on_abstract: Town) -> None:
    found = await numbers(on_abstract, leaf(on_abstract))
    assert (found.state, found.holders, [one.chain for one in found.chains]) == ("done", 2, ["abstract"])
