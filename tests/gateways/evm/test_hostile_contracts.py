"""Every type of rule on hostile contracts: unknown, never a wrong no, and correct answers for other contracts."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from services.core.answer import Answer
from services.holdings import fetch
from services.holdings.evaluate import read
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import ANY, Wants
from services.rules.expression import Requirement
from tests.gateways.evm_lab import HOSTILE, Front, address, anvil, deploy, without_override
from tests.gateways.token_lab import ANVIL, HOLDS_TWO, collection, mint

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
GOOD, ANN, BEN = address(1), address(100), address(101)
WORST = {**HOSTILE, "returns a megabyte": "1048576 0 RETURN", "burns its gas in a loop": HOSTILE["never ends"]}
SILENT = {address(6000 + at): code for at, code in enumerate(WORST.values())}
"""They answer nothing usable to any call."""
COUNTING = {
    address(6100 + at): HOLDS_TWO.format(rest=code.replace("again", "loop")) for at, code in enumerate(WORST.values())
}
"""They say that every address has two, and answer nothing usable about any token."""
BAD = (*SILENT, *COUNTING)


@dataclass(frozen=True)
class Item:
    contract: str
    token_id: str


@dataclass
class Lists:
    """An indexer that lists a token of every bad contract for every account."""

    items: Sequence[Item] = tuple(Item(contract, "1") for contract in BAD)
    source: str = "An indexer"

    async def account_nfts(self, chain: str, address: str) -> "Lists":
        return self


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """One honest collection, of which ANN has a token and BEN none, among the hostile ones."""

    async def build(url: str) -> None:
        await collection(url, GOOD, "ERC721")
        await mint(url, GOOD, ANN, 1)
        for contract, code in {**SILENT, **COUNTING}.items():
            await deploy(url, contract, code)

    with anvil(*ANVIL) as url:
        asyncio.run(build(url))
        yield url


def leaves(contract: str) -> list[Requirement]:
    return [
        Requirement("basic", "base", contract, 3),
        Requirement("token_id", "base", contract, token_ids=("1", "7-9")),
        Requirement("trait", "base", contract, traits=(("Fur", "Gold"),)),
    ]


@pytest.mark.parametrize("change", [None, without_override], ids=["state override", "batches"])
async def test_no_type_of_rule_is_denied_by_a_contract_that_says_nothing(end: Front, change: Any) -> None:
    end.change = change
    everything = (GOOD, *BAD)
    wants = Wants(
        balances=everything,
        tokens=tuple(sorted((contract, ids) for contract in everything for ids in ((), ("1", "7-9")))),
        anything=True,
    )
    chains = EvmChains(NodePool({"base": [end.url]}, request_seconds=5.0, deadline=60.0), Lists())
    outside = cast("Gateways", SimpleNamespace(chains=chains))
    answers = await fetch.ask(outside, HoldingsQuestion("base", wants, (ANN, BEN)))
    await chains.close()

    def judged(leaf: Requirement, who: str) -> Answer:
        return read(leaf, [("evm", who)], answers).answer

    for who, expected in ((ANN, YES), (BEN, NO)):
        assert judged(Requirement("basic", "base", GOOD), who) is expected
        assert judged(Requirement("token_id", "base", GOOD, token_ids=("1", "7-9")), who) is expected
    wrong = [
        (leaf.type, contract)
        for contract in BAD
        for leaf in leaves(contract)
        for who in (ANN, BEN)
        # A contract that reports "two" for everybody has also said that nobody has three.
        if judged(leaf, who) is not (NO if leaf.type == "basic" and contract in COUNTING else UNKNOWN)
    ]
    assert wrong == []
    assert judged(Requirement("any_nft", "base", ANY), ANN) is YES
    assert judged(Requirement("any_nft", "base", ANY), BEN) is not NO
