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
    asked: list[str] = field(default_factory=list[str])
    fork: str = ""
    """What the hashes of all blocks end with since the chain has changed its mind."""
    forks_after: int | None = None
    """After how many answers it does."""
    grows_by: int = 1
    nameless: bool = False
    gone: set[int] = field(default_factory=set[int])

    def _answers(self, what: str) -> None:
        if len(self.asked) == self.forks_after:
            self.moved, self.fork = set(), "f"
        self.asked.append(what)

    def endpoints(self, chain: str) -> int:
        return 1

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        self.block += self.grows_by
        self._answers("head")
        return Head(self.block, datetime.now(UTC), hex(self.block) + self.fork)

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        self._answers("name")
        if self.nameless:
            raise ProviderDown("the node", "away")
        return None if block in self.gone else hex(block) + self.fork

    async def of_contracts(
        self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        self._answers("logs")
        return [
            Transfer(block, hex(block) + self.fork, CONTRACT, SELLER, BUYER)
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


async def test_what_has_moved_is_told_without_anything_being_asked_after_the_logs(reading: Reading) -> None:
    node, before = reading.node, reading.position
    node.moved = {node.block + 1}
    node.asked.clear()
    assert len((await reading.look()).moved) == 2
    assert node.asked[-1] == "logs"
    assert reading.position.block == before.block + 1


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("looks", [1, 2, 3, 10])
@pytest.mark.parametrize("calls", range(6))
async def test_whenever_a_chain_changes_its_mind_a_transfer_that_it_takes_back_is_told_again(
    reading: Reading, looks: int, calls: int, quiet: bool
) -> None:
    """So many looks after the transfer was read, and after so many more answers; also when no more blocks come."""
    node = reading.node
    node.moved = {node.block + 1}
    assert (await reading.look()).moved
    for _ in range(looks - 1):
        assert not (await reading.look()).moved
    if quiet:
        node.grows_by = 0
        for _ in range(3):
            await reading.look()
    node.forks_after = len(node.asked) + calls
    assert any([(await reading.look()).moved for _ in range(10)])


async def test_a_node_that_cannot_name_a_block_loses_no_transfer(reading: Reading) -> None:
    node = reading.node
    node.moved = {node.block + 1}
    node.nameless = True
    with pytest.raises(Unreadable):
        await reading.look()
    node.nameless = False
    assert (await reading.look()).moved


async def test_a_block_that_the_node_does_not_have_is_not_settled(reading: Reading) -> None:
    """The chain may be changing its mind: a position without a name would not be compared with it any more."""
    node, before = reading.node, reading.position
    node.gone = set(range(before.block + 1, before.block + 50))
    await reading.look()
    assert reading.position == before
    node.gone = set()
    await reading.look()
    assert reading.position == Position(before.block + 2, hex(before.block + 2))
