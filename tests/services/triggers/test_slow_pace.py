"""The nodes of a chain wait for each other at whatever pace the chain is polled."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.evm.rpc.node import Head
from gateways.evm.transfer_logs import LogRead
from gateways.transport.errors import ProviderDown
from services.triggers.chain_cursor import Position
from services.triggers.transfer_poller import Reader, UnreadableTransfers, WalletReader
from tests.services.triggers.test_transfer_poller import CONTRACT, Node


@dataclass
class TwoNodes(Node):
    """Two nodes, of which either may leave logs out or be away."""

    leaves_out: set[int] = field(default_factory=set[int])
    """Endpoints whose logs are incomplete."""
    away: set[int] = field(default_factory=set[int])

    def endpoints(self, chain: str) -> int:
        return 2

    def for_wallets(self, chain: str) -> Sequence[int]:
        return [0, 1]

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        if endpoint in self.away:
            raise ProviderDown("the node", "away")
        return await super().head(chain, endpoint, not_before_block)

    async def of_contracts(self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        found = await super().of_contracts(chain, contracts, first, last, endpoint)
        return LogRead([], last) if endpoint in self.leaves_out else found

    async def of_wallets(self, chain: str, wallets: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        found = await super().of_wallets(chain, wallets, first, last, endpoint)
        return LogRead([], last) if endpoint in self.leaves_out else found


@pytest.mark.parametrize("seconds", [30.0, 61.0, 120.0])
@pytest.mark.parametrize("slices", [0, 1, 2])
async def test_a_transfer_that_one_node_leaves_out_is_found_at_every_pace(
    seconds: float, slices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + ahead[0])
    node = TwoNodes(grows_by=30)
    outside: Any = type("Outside", (), {"transfers": node})
    wallets = [f"0x{n:040x}" for n in range(1, 41)]
    reader: Any = WalletReader("base", 40 // slices) if slices else Reader("base")
    addresses = wallets if slices else (CONTRACT,)
    position = Position(0, "")

    async def look() -> set[int]:
        nonlocal position
        found = await reader.look(cast("Gateways", outside), position, tuple(addresses))
        position = found.position
        ahead[0] += seconds
        return {one.block for one in found.moved}

    for _ in range(12):
        await look()
    lost = 0
    for _ in range(6):
        # The transfer is in the next block, and the node that is asked next leaves it out.
        node.moved = {node.block + 1}
        inner = reader._readers[(reader._turn + 1) % slices] if slices else reader
        node.leaves_out = {(inner._memory.turn + 1) % 2}
        seen: set[int] = set()
        for _ in range(6 * max(1, slices)):
            seen |= await look()
        lost += not node.moved <= seen
    assert not lost


async def test_a_node_that_is_away_holds_no_block_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + ahead[0])
    node = TwoNodes(grows_by=30)
    outside: Any = type("Outside", (), {"transfers": node})
    reader, position = Reader("base"), Position(0, "")

    async def look() -> None:
        nonlocal position
        ahead[0] += 60
        with suppress(UnreadableTransfers):
            position = (await reader.look(cast("Gateways", outside), position, (CONTRACT,))).position

    for _ in range(6):
        await look()
    node.away = {1}
    before = position.block
    for _ in range(8):
        await look()
    assert position.block > before + 30


@pytest.mark.parametrize("grows_by", [1, 10])
async def test_a_node_whose_companion_is_away_reports_each_block_twice(
    grows_by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + ahead[0])
    node = TwoNodes(grows_by=grows_by)
    outside: Any = type("Outside", (), {"transfers": node})
    reader, position = Reader("base"), Position(0, "")

    async def look() -> set[int]:
        nonlocal position
        ahead[0] += 60
        with suppress(UnreadableTransfers):
            found = await reader.look(cast("Gateways", outside), position, (CONTRACT,))
            position = found.position
            return {one.block for one in found.moved}
        return set()

    for _ in range(6):
        await look()
    node.away = {1}
    for _ in range(6):
        await look()
    if not (reader._memory.turn + 1) % 2:
        await look()
    node.moved, node.leaves_out = {node.block + 1}, {0}
    for _ in range(2):
        assert not await look()
    node.leaves_out = set()
    assert any([await look() for _ in range(4)])
