"""Read balances in bulk from one node by the best way that works there: the program, aggregate3 or JSON-RPC batches."""

from collections.abc import Sequence
from enum import Enum
from time import monotonic

from gateways.chains.balance_sheet import Asked, BalanceSheet
from gateways.chains.costly_contracts import CostlyContracts
from gateways.chains.read_point import ReadPoint
from gateways.evm.balances.fallbacks import FallbackRead
from gateways.evm.balances.program_reads import LoopRead, NothingCame, ReadPace
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import RpcRefused, TooMuch
from gateways.evm.rpc.node import Head, Node
from gateways.transport import question_time
from gateways.transport.errors import ProviderConfused, ProviderError

REMEMBERED = 600.0
"""Seconds after which better ways are tried again at a node where they did not work."""
KEPT_FOR_THE_ANSWER = 0.5

AskedSegment = tuple[bytes, bytes, frozenset[bytes]]
"""Packed contracts and owners (20 bytes each), and the contracts among them that are coins."""


class Way(Enum):
    """The ways to read balances, best first (docs/facts.md#cost-of-a-balance-check: 1, 3 and 20 µs a check)."""

    OVERRIDE = "state override"
    MULTICALL = "aggregate3"
    BATCH = "JSON-RPC batch"


class BulkReader:
    """Reads balances from one node, at one block, by the best way that it knows."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.way: Way | None = None
        self._way_until = 0.0
        self._pace = ReadPace()
        self.costly = CostlyContracts()

    async def read(self, segments: Sequence[AskedSegment], at: ReadPoint, deadline: float) -> list[BalanceSheet]:
        """Return a sheet for each segment, all at the node's head, or at its settled block.

        `deadline` is loop time. Raises ProviderError when the node cannot be trusted.
        """
        head = await (self.node.settled if at.settled else self.node.head_since)(at.not_before_block)
        asked = [Asked(*segment) for segment in segments]
        if any(one.cells.contracts and one.cells.owners for one in asked):
            asked = await self._fill(head, segments, deadline)
        return [
            BalanceSheet(
                chain=self.node.chain.key,
                block=head.block,
                block_time=head.time,
                endpoint=self.node.index,
                source=self.node.source,
                contracts=one.contracts,
                owners=one.owners,
                cells=one.cells,
            )
            for one in asked
        ]

    async def _fill(self, head: Head, segments: Sequence[AskedSegment], deadline: float) -> list[Asked]:
        """Try the way that is known to work, or each in turn.

        Only a refusal, or the empty answer of a node without state override, leads to the next way. A wrong answer does
        not: after one, the node is not asked in a way that is harder to check.
        """
        known = self.way if monotonic() < self._way_until else None
        fault: ProviderError | None = None
        ways = (known,) if known else tuple(Way)
        if self.way is None and node_limits.known(self.node.url).state_override is False:
            ways = (Way.MULTICALL, Way.BATCH)
        for way in ways:
            if way is Way.MULTICALL and self.node.chain.multicall3 is None:
                continue
            try:
                # Each way begins with cells that are all unknown.
                asked = [Asked(*segment) for segment in segments]
                await self._by(way, head, asked, deadline)
            except TooMuch:
                raise
            except (NothingCame, RpcRefused) as refused:
                fault = fault or refused
                continue
            if way is Way.OVERRIDE or known is None:
                # The best way is kept as long as it works, a lesser one only until the better ones are tried again.
                self.way, self._way_until = way, monotonic() + REMEMBERED
            if Way.OVERRIDE in ways:
                node_limits.note(self.node.url, state_override=way is Way.OVERRIDE)
            return asked
        if known is None and Way.OVERRIDE not in ways:
            node_limits.note(self.node.url, state_override=None)
        raise fault or ProviderConfused(self.node.name, "no way to read balances works")

    async def _by(self, way: Way, head: Head, asked: list[Asked], deadline: float) -> None:
        """Fill the cells in one way; amounts without time to read them stay unknown. Raises TimeoutError if all do."""
        try:
            async with question_time.timeout_at(deadline - KEPT_FOR_THE_ANSWER):
                await self._filled(way, head, asked)
        except TimeoutError:
            for one in asked:
                one.forget_inexact()
            if not any(one.knows_something() for one in asked):
                raise

    async def _filled(self, way: Way, head: Head, asked: list[Asked]) -> None:
        if way is Way.OVERRIDE:
            await LoopRead(self.node, self._pace, head, asked, self.costly, tried=self.way is way).run()
        else:
            fallback = FallbackRead(self.node, head, asked, self.costly)
            multicall = self.node.chain.multicall3
            if way is Way.MULTICALL and multicall:
                await fallback.by_multicall(multicall)
            else:
                await fallback.by_batches()
