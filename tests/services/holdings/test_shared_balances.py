"""Balances for many servers: one question per chain and node, and each server's own answer."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from gateways.chains.balance_sheet import NATIVE, BalanceSheet, Cells, Segment, packed
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import Chains
from gateways.evm.rpc.node import Head
from gateways.solana.client import SolanaChains
from gateways.solana.node import SolanaNodes
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError
from services.holdings import shared_balances
from services.holdings.shared_balances import JointBalances
from tests.sandbox.chains.otters import OTTERS, STRANGER, running
from tests.support.builders import address

NOW = datetime(2026, 1, 2, tzinfo=UTC)
A, B, C = (f"0x{letter * 40}" for letter in "abc")


class OneNode:
    """A chain with one node, where a wallet's last two hex digits are its balance, and 99 means 600."""

    def __init__(self, head: int = 100, fault: ProviderError | None = None) -> None:
        self.asked: list[tuple[int | None, int, list[Segment]]] = []
        self.block = head
        self.fault = fault
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.stopped = 0

    def endpoints(self, _: str) -> int:
        return 1

    async def head(self, chain: str, _endpoint: int | None = None) -> Head:
        if self.fault is not None:
            raise self.fault
        return Head(self.block, NOW, chain)

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        self.asked.append((at.endpoint, at.not_before_block, list(segments)))
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self.fault is not None:
            raise self.fault
        if self.block < at.not_before_block:
            raise ProviderConfused("Base (node 1)", f"its head {self.block} is before block {at.not_before_block}")
        return [self._sheet(chain, segment) for segment in segments]

    def _sheet(self, chain: str, segment: Segment) -> BalanceSheet:
        contracts, owners = packed(segment.contracts), packed(segment.owners)
        cells = Cells(len(contracts) // 20, len(owners) // 20)
        for row in range(cells.contracts):
            for column in range(cells.owners):
                cells.put(row, column, amount_of(owners[column * 20 : column * 20 + 20].hex()))
        return BalanceSheet(chain, self.block, NOW, 0, "Base (node 1)", contracts, owners, cells)


def amount_of(owner: str) -> int:
    return 600 if owner.endswith("99") else int(owner[-2:], 16)


def joint(node: OneNode | SolanaChains) -> JointBalances:
    return JointBalances(cast(Chains, cast(object, node)))


def wallets(*ends: str) -> tuple[str, ...]:
    """Return wallets that no other test has, with these last two digits."""
    return tuple(sorted(f"0x{address()[-38:]}{end}" for end in ends))


async def test_a_thousand_servers_with_contracts_of_their_own_are_one_question() -> None:
    node = OneNode()
    together = joint(node)
    asked = [((f"0x{at + 5000:040x}",), wallets("01", "02")) for at in range(1_000)]
    sheets = await asyncio.gather(
        *(
            together.read("base", contracts, owners, endpoint=None, not_before=at)
            for at, (contracts, owners) in enumerate(asked, -950)
        )
    )
    ((endpoint, not_before, segments),) = node.asked
    assert (endpoint, not_before, len(segments)) == (None, 49, 1_000)
    for (contracts, owners), sheet in zip(asked, sheets, strict=True):
        assert [sheet.amount(contracts[0], owner) for owner in owners] == [amount_of(owner) for owner in owners]


async def test_equal_contracts_are_asked_about_once_and_each_server_gets_its_own_wallets() -> None:
    node = OneNode()
    together = joint(node)
    shared, first, second = wallets("05"), wallets("01", "99"), wallets("99", "00")
    one, two, three = await asyncio.gather(
        together.read("base", (A, B), tuple(sorted(first + shared)), endpoint=None, not_before=1),
        together.read("base", (A, B), tuple(sorted(second + shared)), endpoint=None, not_before=1),
        together.read("base", (C,), first, endpoint=None, not_before=1),
    )
    ((_, _, segments),) = node.asked
    assert [(len(segment.contracts), len(segment.owners)) for segment in segments] == [(2, 5), (1, 2)]
    for sheet, owners, strangers in ((one, first + shared, second), (two, second + shared, first), (three, first, ())):
        assert len(sheet.owners) == 20 * len(owners)
        contract = C if sheet is three else B
        assert {owner: sheet.amount(contract, owner) for owner in owners} == {one: amount_of(one) for one in owners}
        assert all(sheet.amount(contract, stranger) is None for stranger in strangers)


async def test_servers_share_a_coin_of_solana_and_each_gets_its_own_wallets(tmp_path: Path) -> None:
    async with running(tmp_path / "sandbox") as otters:
        reef, collection = [(await otters.collection(slug))["contract"] for slug in ("reef-dollar", OTTERS)]
        carol, dave, erin = [await otters.wallet(who) for who in ("carol", "dave", "erin")]
        other = (await otters.act("deploy", standard="SPL", name="Other", slug="other", decimals=0))["contract"]
        await otters.act("mint", contract=other, amount="3", to=STRANGER)
        nodes = SolanaNodes([f"{str(otters.http.base_url).rstrip('/')}/solana"], request_seconds=2, deadline=6)
        together, wanted = joint(SolanaChains(nodes)), (collection, NATIVE, reef)
        one, two, three = await asyncio.gather(
            *(
                together.read("solana", coins, owners, endpoint=None, not_before=1, coins=frozenset(coins[-2:]))
                for coins, owners in ((wanted, (carol, dave)), (wanted, (dave, erin)), ((other,), (STRANGER, carol)))
            )
        )
        await nodes.close()
    assert [one.amount(reef, owner) for owner in (carol, dave, erin)] == [1_000 * 10**6, 250 * 10**6, None]
    assert [two.amount(reef, owner) for owner in (carol, dave, erin)] == [None, 250 * 10**6, 20 * 10**6]
    assert [three.amount(other, owner) for owner in (STRANGER, carol, dave)] == [3, 0, None]
    assert (one.amount(NATIVE, erin), two.amount(collection, carol), three.amount(reef, carol)) == (None,) * 3
    assert all(one.amount(contract, dave) is not None for contract in wanted)
    assert (one.unknown(reef), two.unknown(NATIVE), three.unknown(other)) == (0, 0, 0)
    assert (dict(two.holders(reef)), one.owner_count) == ({dave: 250 * 10**6, erin: 20 * 10**6}, 2)


async def test_a_server_that_asks_for_very_much_keeps_nobody_else_waiting() -> None:
    node = OneNode()
    together = joint(node)
    large = tuple(f"0x{at:040x}" for at in range(1, shared_balances.MOST_WEIGHT))
    waiting = asyncio.create_task(together.read("base", (B,), large, endpoint=None, not_before=0))
    small = [
        asyncio.create_task(together.read("base", (one,), wallets("01"), endpoint=None, not_before=0)) for one in (A, C)
    ]
    while len(node.asked) < 2:
        await asyncio.sleep(0)
    assert [[segment.contracts for segment in segments] for _, _, segments in node.asked] == [[(A,), (C,)], [(B,)]]
    assert all(isinstance(one, BalanceSheet) for one in await asyncio.gather(*small))
    assert len((await waiting).owners) == 20 * len(large)


async def test_very_many_servers_make_questions_of_bounded_size() -> None:
    node = OneNode()
    together = joint(node)
    contracts = [tuple(f"0x{5000 + server * 10 + at:040x}" for at in range(10)) for server in range(1_000)]
    sheets = await asyncio.gather(
        *(together.read("base", some, wallets("01", "02"), endpoint=None, not_before=0) for some in contracts)
    )
    assert 1 < len(node.asked) <= 4
    assert sum(len(segments) for _, _, segments in node.asked) == 1_000
    assert [sheet.contracts for sheet in sheets] == [packed(some) for some in contracts]


async def test_nodes_are_asked_apart_and_so_are_later_questions() -> None:
    node = OneNode()
    together = joint(node)
    await asyncio.gather(
        *(together.read("base", (A,), wallets("01"), endpoint=at, not_before=0) for at in (0, 1, 0, None))
    )
    await together.read("base", (A,), wallets("01"), endpoint=None, not_before=0)
    asked = [(endpoint, len(segments)) for endpoint, _, segments in node.asked]
    assert asked == [(0, 1), (1, 1), (None, 1), (None, 1)]


async def test_a_block_that_no_node_has_spoils_nobody_elses_answer() -> None:
    node = OneNode(head=100)
    together = joint(node)
    said = await asyncio.gather(
        together.read("base", (A,), wallets("01"), endpoint=None, not_before=90),
        together.read("base", (B,), wallets("02"), endpoint=None, not_before=400_000_000),
        together.read("base", (C,), wallets("03"), endpoint=None, not_before=99),
        return_exceptions=True,
    )
    good, absurd, other = said
    assert isinstance(good, BalanceSheet)
    assert isinstance(other, BalanceSheet)
    assert isinstance(absurd, ProviderConfused)
    assert "its head 100 is before block 400000000" in str(absurd)
    assert [not_before for _, not_before, _ in node.asked] == [400_000_000, 99]


async def test_a_fault_of_the_node_is_everybodys_and_is_not_asked_about_twice() -> None:
    node = OneNode(fault=ProviderDown("Base (node 1)", "no answer"))
    together = joint(node)
    said = await asyncio.gather(
        *(together.read("base", (A,), wallets("01"), endpoint=None, not_before=at) for at in (1, 2)),
        return_exceptions=True,
    )
    assert [str(one) for one in said] == ["Base (node 1): no answer"] * 2
    assert len(node.asked) == 1


async def test_who_is_stopped_leaves_the_others_their_answer_and_the_last_one_stops_the_question() -> None:
    node = OneNode()
    node.goes_on.clear()
    together = joint(node)
    reads = [
        asyncio.create_task(together.read("base", (A,), wallets("01"), endpoint=None, not_before=0)) for _ in range(3)
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    reads[0].cancel()
    node.goes_on.set()
    said = await asyncio.gather(*reads, return_exceptions=True)
    assert [isinstance(one, BalanceSheet) for one in said] == [False, True, True]
    node.goes_on.clear()
    alone = asyncio.create_task(together.read("base", (A,), wallets("01"), endpoint=None, not_before=0))
    for _ in range(5):
        await asyncio.sleep(0)
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    for _ in range(5):
        await asyncio.sleep(0)
    assert node.stopped == 1
