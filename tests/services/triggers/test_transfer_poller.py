"""Following a chain's transfers, on fake nodes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.evm.log_decoding import Transfer
from gateways.evm.rpc.node import Head
from gateways.evm.transfer_logs import LogRead
from gateways.transport.errors import ProviderDown
from services.triggers import reorganisations, transfer_poller
from services.triggers.chain_cursor import Position
from services.triggers.transfer_poller import PollResult, Reader, UnreadableTransfers, WalletReader

CONTRACT, SELLER, BUYER = (f"0x{number:040x}" for number in (1, 2, 3))


@dataclass
class Node:
    """The only node of a chain that grows by one block at each look; `moved` are the blocks with a transfer."""

    block: int = 100
    moved: set[int] = field(default_factory=set[int])
    asked: list[str] = field(default_factory=list[str])
    fork: str = ""
    """The suffix of all blocks' hashes since the chain was reorganised."""
    forks_after: int | None = None
    """The number of answers after which the chain is reorganised."""
    grows_by: int = 1
    nameless: bool = False
    gone: set[int] = field(default_factory=set[int])
    reads: int = 10**9
    """The number of blocks whose logs the node returns in one read."""
    refuses_wallets: bool = False
    asked_wallets: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    excessive: dict[str, str] = field(default_factory=dict[str, str])
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def _answers(self, what: str) -> None:
        if len(self.asked) == self.forks_after:
            self.moved, self.fork = set(), "f"
        self.asked.append(what)

    def endpoints(self, chain: str) -> int:
        return 1

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        self.block += self.grows_by
        self._answers("head")
        if self.block < not_before_block:
            raise ProviderDown("the node", "its head is before that block")
        return Head(self.block, datetime.now(UTC), hex(self.block) + self.fork)

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        self._answers("name")
        if self.nameless:
            raise ProviderDown("the node", "away")
        return None if block in self.gone else hex(block) + self.fork

    def for_wallets(self, chain: str) -> Sequence[int]:
        return [] if self.refuses_wallets else [0]

    async def of_wallets(self, chain: str, wallets: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        self.asked_wallets.append(tuple(wallets))
        found = [
            Transfer(block, hex(block), CONTRACT, wallet, wallet)
            for block in sorted(self.moved)
            if first <= block <= last
            for wallet in wallets
        ]
        return LogRead(found, last)

    async def of_contracts(self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        self._answers("logs")
        last = min(last, first + self.reads - 1)
        found = [
            Transfer(block, hex(block) + self.fork, CONTRACT, SELLER, BUYER)
            for block in sorted(self.moved)
            if first <= block <= last
        ]
        return LogRead(found, last, self.excessive, self.skipped)


class Reading:
    """A reader of the node that continues from its last position."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.reader = Reader("base")
        self.position = Position(0, "")

    async def look(self) -> PollResult:
        outside: Any = type("Outside", (), {"transfers": self.node})
        found = await self.reader.look(cast("Gateways", outside), self.position, (CONTRACT,))
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
    """The reorganisation comes after `looks` looks and `calls` more answers; if `quiet`, no more blocks come."""
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
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    node.nameless = False
    assert (await reading.look()).moved


async def test_a_block_that_the_node_does_not_have_is_not_settled(reading: Reading) -> None:
    """The chain may be reorganising, and a position without a hash would no longer be compared with it."""
    node, before = reading.node, reading.position
    node.gone = set(range(before.block + 1, before.block + 50))
    await reading.look()
    assert reading.position == before
    node.gone = set()
    await reading.look()
    assert reading.position == Position(before.block + 2, hex(before.block + 2))


@pytest.mark.parametrize("looks", [1, 2, 5])
async def test_a_block_that_a_machine_of_the_node_lacks_is_not_taken_for_replaced(reading: Reading, looks: int) -> None:
    """The transfer is reported once, and once more only when its block has been replaced."""
    node = reading.node
    moved = node.block + 1
    node.moved, node.grows_by = {moved}, 1
    assert (await reading.look()).moved
    node.moved, node.gone, node.grows_by = set(), {moved}, 0
    for _ in range(looks):
        assert not (await reading.look()).moved
    assert reading.position.block < moved
    node.gone, node.fork, node.grows_by = set(), "f", 1
    assert {one.block for one in (await reading.look()).moved} == {moved}


async def test_a_look_that_the_node_does_not_get_through_loses_no_transfer(reading: Reading) -> None:
    node = reading.node
    node.block += 500
    node.moved = set(range(node.block - 490, node.block, 10))
    node.reads, node.grows_by = 60, 0
    found: set[int] = set()
    for _ in range(40):
        found |= {block for _, _, block in (await reading.look()).moved}
    assert found == node.moved
    assert reading.position.block >= max(node.moved) - 1


async def test_what_is_too_much_is_named_and_the_chain_is_read_on(reading: Reading) -> None:
    node, before = reading.node, reading.position
    node.excessive = {SELLER: "too large"}
    look = await reading.look()
    assert look.excessive == {SELLER: "too large"}
    assert look.position.block == before.block + 1


async def test_a_contract_that_writes_odd_logs_in_every_block_does_not_fill_the_log(
    reading: Reading, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    reading.node.skipped = {CONTRACT: 3}
    for _ in range(20):
        await reading.look()
    line = "skipped logs of a wrong shape chain=base logs=3 contracts=1"
    assert [one.getMessage() for one in caplog.records] == [line]
    monkeypatch.setattr(transfer_poller, "SKIPPED_LOGGED_EVERY", 0.0)
    await reading.look()
    assert [one.getMessage() for one in caplog.records] == [line, line]


async def test_what_is_remembered_of_blocks_is_bounded(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reorganisations, "MOST_SEEN", 30)
    node = reading.node
    node.moved = set(range(node.block + 1, node.block + 100))
    node.grows_by = 20
    for _ in range(4):
        await reading.look()
        assert sum(map(len, reading.reader._memory.seen._blocks.values())) <= 30


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_poller, "BEYOND_SECONDS", 0.0)


async def test_a_position_beyond_every_node_goes_back_and_everybody_is_reconciled(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = reading.node
    reading.position = Position(400_000_000, "0x1")
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    at_once(monkeypatch)
    look = await reading.look()
    assert look.missed
    assert look.went_back
    assert node.block - 40 < reading.position.block <= node.block
    assert reading.position.block_hash == hex(reading.position.block)
    node.moved = {node.block + 1}
    assert (await reading.look()).moved
    for _ in range(5):
        assert not (await reading.look()).missed
    assert reading.position.block > node.block - 10


async def test_a_node_that_is_a_little_behind_moves_no_position(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position moves only if the node's head, with a fresh time, is before it at every look for a long time."""
    node, far = reading.node, reading.position
    monkeypatch.setattr(transfer_poller, "BEYOND_SECONDS", 3_600.0)
    node.block, node.grows_by = far.block - 30, 0
    for _ in range(20):
        with pytest.raises(UnreadableTransfers):
            await reading.look()
    assert reading.position == far
    node.block = far.block + 20
    assert not (await reading.look()).missed
    assert reading.reader._memory.lower == {}


async def test_a_head_that_the_node_itself_does_not_have_begins_nothing() -> None:
    node = Node()
    reading = Reading(node)
    node.gone = set(range(1_000_000))
    with pytest.raises(UnreadableTransfers, match="does not have"):
        await reading.look()
    assert reading.position == Position(0, "")


async def test_after_a_long_absence_the_first_look_that_succeeds_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    reading = Reading(node)
    reading.position = Position(5, "0x5")
    monkeypatch.setattr(transfer_poller, "MOST_BEHIND_SECONDS", 60)
    node.nameless = True
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    node.nameless = False
    assert (await reading.look()).missed
    assert not (await reading.look()).missed


@pytest.mark.parametrize("seconds", [5, 60, 600, 3_600])
async def test_the_first_poll_of_a_chain_finds_what_moved_since_its_first_rule_was_made(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """The rule was made just after the poll before, and its members were read at once."""
    monkeypatch.setenv("FOLLOW_SECONDS", str(seconds))
    transfer_poller.settings.cache_clear()
    node = Node(block=10_000)
    node.moved = {node.block - seconds // 2}
    reading, found = Reading(node), set[int]()
    for _ in range(3):
        found |= {one.block for one in (await reading.look()).moved}
    transfer_poller.settings.cache_clear()
    assert found == node.moved


@pytest.mark.parametrize(("hours", "missed"), [(23, False), (25, True)])
async def test_blocks_of_a_long_outage_are_not_read_although_the_process_kept_running(
    reading: Reading, monkeypatch: pytest.MonkeyPatch, hours: int, missed: bool
) -> None:
    """For example, a plan's requests were used up until the next month, and would be used up again."""
    node, loop = reading.node, asyncio.get_running_loop()
    real, ahead = loop.time, 0
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    moved = node.block + 1
    node.nameless, node.moved = True, {moved}
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    ahead = hours * 3_600
    with pytest.raises(UnreadableTransfers):
        await reading.look()
    node.nameless, node.block = False, node.block + 100_000
    look = await reading.look()
    assert (look.missed, bool(look.moved)) == (missed, not missed)
    node.moved = {node.block + 1}
    look = await reading.look()
    assert not look.missed
    assert bool(look.moved) is missed


async def test_a_follower_with_a_very_slow_pace_skips_no_block(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, loop, now = reading.node, asyncio.get_running_loop(), asyncio.get_running_loop().time()
    monkeypatch.setattr(loop, "time", lambda: now + 200_000)
    node.moved = {node.block + 1}
    node.block += 100_000
    look = await reading.look()
    assert look.moved
    assert look.more
    assert not look.missed


WALLETS = tuple(f"0x{number:040x}" for number in range(100, 131))


class WalletReading:
    """A reader of ten wallets a look that continues from its last position."""

    def __init__(self, node: Node, wallets: Sequence[str] = WALLETS) -> None:
        self.node, self.wallets = node, wallets
        self.reader = WalletReader("base", 10)
        self.position = Position(0, "")

    async def look(self) -> PollResult:
        outside: Any = type("Outside", (), {"transfers": self.node})
        found = await self.reader.look(cast("Gateways", outside), self.position, self.wallets)
        self.position = found.position
        return found


async def test_many_wallets_are_read_in_turns_and_none_misses_a_block() -> None:
    node = Node()
    reading = WalletReading(node)
    for _ in range(12):
        await reading.look()
    assert reading.reader.slices == 4
    node.asked_wallets.clear()
    node.moved = {node.block + 3}
    looks = [await reading.look() for _ in range(12)]
    assert max(map(len, node.asked_wallets)) < len(WALLETS)
    assert {one.address for look in looks for one in look.moved} == set(WALLETS)
    assert reading.position.block >= next(iter(node.moved))


async def test_another_number_of_turns_reads_on_from_the_part_that_was_furthest_behind() -> None:
    node = Node()
    reading = WalletReading(node)
    for _ in range(20):
        await reading.look()
    before = reading.position
    node.moved = {before.block + 1}
    reading.wallets = WALLETS[:5]
    looks = [await reading.look() for _ in range(3)]
    assert reading.reader.slices == 1
    assert {one.address for look in looks for one in look.moved} == set(WALLETS[:5])
    assert {one.contract for look in looks for one in look.moved} == {"any"}


async def test_wallets_are_asked_only_of_nodes_that_give_their_logs() -> None:
    node = Node(block=1_000)
    node.refuses_wallets = True
    reading = WalletReading(node)
    with pytest.raises(UnreadableTransfers, match="no node gives logs of wallets"):
        await reading.look()
