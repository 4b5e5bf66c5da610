"""A node's report about blocks that the chain has replaced since counts for none of the blocks that replaced them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.evm.log_decoding import Transfer
from gateways.evm.rpc.node import Head
from gateways.evm.transfer_logs import LogRead
from services.triggers.chain_cursor import Position
from services.triggers.transfer_poller import Reader

CONTRACT, SELLER, BUYER = (f"0x{number:040x}" for number in (1, 2, 3))
MOVED = {104, 105, 106}
"""The blocks that have a transfer since they were replaced."""


@dataclass
class Forked:
    """A chain's nodes; the chain replaces its blocks after 103, and the replacements have transfers."""

    count: int
    head_block: int = 100
    is_replaced: bool = False
    leaves_out: set[int] = field(default_factory=set[int])
    """Endpoints that omit all transfers."""
    hash_reads: int = 0

    def endpoints(self, chain: str) -> int:
        return self.count

    def _hash(self, block: int) -> str:
        return f"{block}{'new' if self.is_replaced and block > 103 else ''}"

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        return Head(self.head_block, datetime.now(UTC), self._hash(self.head_block))

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        self.hash_reads += 1
        return self._hash(block)

    async def of_contracts(self, chain: str, contracts: object, first: int, last: int, endpoint: int) -> LogRead:
        moved = MOVED if self.is_replaced and endpoint not in self.leaves_out else set[int]()
        found = [Transfer(one, self._hash(one), CONTRACT, SELLER, BUYER) for one in moved if first <= one <= last]
        return LogRead(found, last)


class Following:
    """A reader of the nodes, and the blocks in which it found transfers."""

    def __init__(self, nodes: Forked) -> None:
        self.nodes = nodes
        self.reader = Reader("base")
        self.position = Position(0, "")
        self.found: set[int] = set()

    async def polls(self, *heads: int) -> None:
        for head in heads:
            self.nodes.head_block = head
            outside: Any = type("Outside", (), {"transfers": self.nodes})
            look = await self.reader.look(cast("Gateways", outside), self.position, (CONTRACT,))
            self.position = look.position
            self.found |= {one.block for one in look.moved}


@pytest.mark.parametrize("grown", [0, 1, 2, 3, 10, 90])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_block_that_replaced_a_reported_one_waits_for_another_report(count: int, grown: int) -> None:
    """The nodes that are asked first after the reorganisation omit the transfers, each for one poll."""
    nodes = Forked(count)
    following = Following(nodes)
    await following.polls(*[100] * count, *[103] * count, *[105] * count)
    nodes.is_replaced = True
    for _ in range(max(1, count - 1)):
        nodes.leaves_out = set(range(count))
        await following.polls(106 + grown)
    nodes.leaves_out = set()
    await following.polls(107 + grown, 110 + grown, 140 + grown)
    assert following.found == MOVED


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_while_no_block_is_replaced_a_poll_reads_two_hashes_and_settles_all_reported_blocks(count: int) -> None:
    nodes = Forked(count)
    following = Following(nodes)
    heads = [100 + 30 * poll for poll in range(20)]
    await following.polls(*heads[:12])
    for poll in range(12, 20):
        nodes.hash_reads = 0
        await following.polls(heads[poll])
        assert nodes.hash_reads == 2
        assert following.position.block == heads[poll - max(1, count - 1)]


async def test_a_node_on_a_chain_of_its_own_does_not_stop_the_others() -> None:
    """Its reports are of other blocks in every poll, so they count far behind its head only."""

    class Apart(Forked):
        async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
            head = await super().head(chain, endpoint, not_before_block)
            return Head(head.block, head.time, head.block_hash + "apart" * endpoint)

    following = Following(Apart(2))
    await following.polls(*range(100, 2_100, 10))
    assert following.position.block > 1_900
