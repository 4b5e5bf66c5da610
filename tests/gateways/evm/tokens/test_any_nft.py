"""Any NFT: a token is gone only if the contract counts none of the owner's, not because `ownerOf` reverts."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from gateways.chains.balance_sheet import Segment
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from tests.gateways.evm_lab import address, anvil, deploy, front, rpc
from tests.gateways.token_lab import ANVIL, HOLDS_TWO

SHUT = address(2)
ANN = address(100)


@dataclass(frozen=True)
class Item:
    contract: str
    token_id: str


@dataclass
class Lists:
    items: Sequence[Item] = field(default_factory=lambda: (Item(SHUT, "1"),))
    source: str = "An indexer"

    async def account_nfts(self, chain: str, address: str) -> "Lists":
        return self


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    async def build(url: str) -> None:
        await deploy(url, SHUT, HOLDS_TWO.format(rest="0 0 REVERT"))
        await rpc(url, "anvil_mine", hex(200))

    with anvil(*ANVIL) as url:
        asyncio.run(build(url))
        yield url


@pytest.mark.parametrize("settled", [False, True])
async def test_a_contract_that_answers_for_no_token_but_counts_two_is_unclear(node: str, settled: bool) -> None:
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as end:
        pool = NodePool({"base": [end.url]}, request_seconds=5, deadline=20)
        chains = EvmChains(pool, Lists(), (Lists(source="Another"),))
        (sheet,) = await chains.balances("base", [Segment((SHUT,), (ANN,))])
        assert sheet.amount(SHUT, ANN) == 2
        trails = {ANN: TokenHints(frozenset({f"{SHUT}:1"}))}
        said = await chains.anything("base", [ANN], trails=trails, at=ReadPoint(None, 0, settled))
        await chains.close()
    assert ANN in said.unsure
