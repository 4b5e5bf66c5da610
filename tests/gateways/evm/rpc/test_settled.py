"""Reading at a chain's settled block, for the second reading before a removal."""

from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderError
from tests.gateways.evm_lab import COLLECTION, address, anvil, deploy, front, rpc
from tests.support.balances import balances

COOL, OWNER = address(1), address(7)
DEEP = CHAINS["base"].settled_after


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil() as url:
        yield url


def test_no_chain_is_read_at_a_block_that_an_ordinary_node_has_forgotten() -> None:
    assert all(chain.confirmations <= chain.settled_after < 100 for chain in CHAINS.values())


async def test_a_settled_read_shows_the_state_of_its_block_and_names_it(node: str) -> None:
    async with AsyncExitStack() as stack:
        end = await stack.enter_async_context(front(node))
        pool = NodePool({"base": [end.url]})
        chains = EvmChains(pool)
        stack.push_async_callback(chains.close)
        young = await pool.first("base", Node.settled)
        assert young.block == 0, "a chain with fewer blocks is read at its first one"
        await deploy(node, COOL, COLLECTION, {int(OWNER, 16): 3})
        await rpc(node, "anvil_mine", hex(DEEP + 3))
        await deploy(node, COOL, COLLECTION, {int(OWNER, 16): 0})
        newest = await balances(chains, "base", [COOL], [OWNER])
        settled = await balances(
            chains, "base", [COOL], [OWNER], at=ReadPoint(settled=True, not_before_block=newest.block)
        )
        assert (newest.amount(COOL, OWNER), settled.amount(COOL, OWNER)) == (0, 3)
        assert settled.block == newest.block - DEEP
        assert settled.block_time <= newest.block_time
        await rpc(node, "anvil_mine", hex(DEEP))
        assert (await balances(chains, "base", [COOL], [OWNER], at=ReadPoint(settled=True))).amount(COOL, OWNER) == 0
        with pytest.raises(ProviderError):
            await balances(
                chains, "base", [COOL], [OWNER], at=ReadPoint(settled=True, not_before_block=newest.block + DEEP + 50)
            )
