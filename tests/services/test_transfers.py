"""Reading on along a chain, on nodes that are played here."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.errors import ProviderDown
from gateways.evm import Head
from gateways.evm_transfers import Transfer
from services.following import Position, Watched
from services.transfers import Look, Reader, Unreadable

CONTRACT, SELLER, BUYER = (f"0x{number:040x}" for number in (1, 2, 3))
WATCHED = Watched((CONTRACT,), ())


@dataclass
class Node:
    """The one node of a chain that grows by a block a look; `moved` are the blocks with a transfer."""

    block: int = 100
    moved: set[int] = field(default_factory=set[int])
    names_asked: int = 0
    nameless: bool = False

    def endpoints(self, chain: str) -> int:
        return 1

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        self.block += 1
        return Head(self.block, datetime.now(UTC), hex(self.block))

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str:
        self.names_asked += 1
        if self.nameless:
            raise ProviderDown("the node", "away")
        return hex(block)

    async def of_contracts(
        self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        return [
            Transfer(block, hex(block), CONTRACT, SELLER, BUYER)
            for block in sorted(self.moved)
            if first <= block <= last
        ]


class Reading:
    """A reader of the node that goes on where it has come."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.reader = Reader("base")
        self.position = Position(0, "")

    async def look(self) -> Look:
        outside: Any = type("Outside", (), {"transfers": self.node})
        found = await self.reader.look(cast("Gateways", outside), self.position, WATCHED)
        self.position = found.position
        return found


@pytest.fixture
async def reading() -> Reading:
    found = Reading(Node())
    for _ in range(20):
        await found.look()
    return found


async def test_what_has_moved_does_not_wait_for_the_name_of_a_settled_block(reading: Reading) -> None:
    node, before = reading.node, reading.position
    node.moved = {node.block + 1}
    node.names_asked = 0
    assert len((await reading.look()).moved) == 2
    assert node.names_asked == 1, "that of the position from which was read on"
    assert reading.position == before
    assert not (await reading.look()).moved
    assert reading.position.block == before.block + 2


async def test_a_chain_on_which_something_moves_in_every_block_is_settled_all_the_same(reading: Reading) -> None:
    node, before = reading.node, reading.position
    node.moved = set(range(node.block + 1, node.block + 11))
    for _ in range(10):
        assert (await reading.look()).moved
    assert reading.position.block == before.block + 10


async def test_what_has_moved_is_told_though_a_block_has_no_name(reading: Reading) -> None:
    node = reading.node
    node.moved = {node.block + 1, node.block + 2}
    await reading.look()
    # A position without a name is not compared with the chain: the name of the settled block is the only one asked for.
    reading.position = Position(reading.position.block, "")
    node.nameless = True
    assert (await reading.look()).moved
    with pytest.raises(Unreadable):
        await reading.look()
