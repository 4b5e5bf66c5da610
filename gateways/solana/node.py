"""One Solana endpoint: the node's JSON-RPC and, behind the same address, its index of assets (DAS)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TypeVar

import orjson

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.errors import NodeTimedOut
from gateways.evm.rpc.failover import REQUEST_SECONDS, first_answer, rested_first
from gateways.evm.rpc.node import CHAIN_AGAIN, LONGEST_PAUSE, SHORT_PAUSE, Head, Node
from gateways.transport import corrected_clock, provider_reports
from gateways.transport.corrected_clock import LATEST
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError, ProviderRefused
from gateways.transport.fair_turns import FairGate

SOLANA = CHAINS["solana"]
GENESIS = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
"""Mainnet's genesis hash, which identifies the network as a chain id does on EVM chains."""
DEADLINE = 20.0
AT_ONCE, MOST_FOR_ONE, FOR_URGENT = 4, 2, 1
TRIES = 3
LONGEST_STEP = 1.0
PATIENCE = SHORT_PAUSE
"""Most seconds that a request waits for its turn; while a node wants a longer pause, nothing is sent to it."""
SLOTS_BACK = 4
"""Slots to try for a time, backwards: a slot's block may be missing or skipped, and then a slot before it counts."""

Params = Mapping[str, object] | Sequence[object]
T = TypeVar("T")


class SolanaNode(Node):
    """A node's address and what we know about it. DAS takes parameters by name, the node by position.

    At most AT_ONCE requests run at a time. When the node asks to slow down, a request waits as long as the node says,
    at most LONGEST_PAUSE, and is sent again, up to TRIES times in all. Requests are then spaced out, at distances that
    shrink as they succeed. A caller that would have to wait longer than PATIENCE gets ProviderBusy at once, and nothing
    is sent.
    """

    unit = "slot"

    def __init__(self, index: int, url: str, *, request_seconds: float = REQUEST_SECONDS) -> None:
        super().__init__(SOLANA, index, url, request_seconds=request_seconds)
        self.sent = 0
        """The number of requests so far."""
        self._turns = FairGate(AT_ONCE, MOST_FOR_ONE, FOR_URGENT)
        self._next_turn = 0.0
        self._step = 0.0

    async def ask(self, method: str, params: Params) -> object:
        """Return the result of one call; raise its error as Node does."""
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        for attempt in range(TRIES):
            async with self._turns:
                await self._turn()
                self.sent += 1
                try:
                    result = self._result(await self.post(body), 1)
                except NodeTimedOut:
                    if self._http.silent:
                        self._turns.turn_away(lambda: ProviderDown(self.name, "it answers nobody"))
                    raise
                except ProviderBusy as fault:
                    self._slower(fault.retry_after)
                    if attempt == TRIES - 1 or (fault.retry_after or 0) > PATIENCE:
                        raise
                else:
                    self._step = self._step * 0.9 if self._step > 0.01 else 0.0
                    return result
        raise ProviderBusy(self.name, "too many requests")

    async def _turn(self) -> None:
        clock = asyncio.get_running_loop()
        wait = max(0.0, self._next_turn - clock.time())
        if wait > PATIENCE:
            raise ProviderBusy(self.name, "its rate limit is used up", retry_after=wait)
        self._next_turn = clock.time() + wait + self._step
        await asyncio.sleep(wait)

    def _slower(self, retry_after: float | None) -> None:
        self._step = min(LONGEST_STEP, max(0.1, self._step * 2))
        pause = LONGEST_STEP if retry_after is None else min(retry_after, LONGEST_PAUSE)
        self._next_turn = max(self._next_turn, asyncio.get_running_loop().time() + pause)

    async def _ask_newest(self) -> Head:
        """Return the newest confirmed slot; the node must serve mainnet."""
        await self._check_chain()
        slot = await self._slot()
        time = await self.time_of(slot)
        if (age := self._age(time)) > self._stale_after:
            raise provider_reports.Stale(self.name, f"its head is {age:.0f} s old")
        if corrected_clock.is_ahead(time):
            raise ProviderConfused(self.name, "its head is dated in the future")
        await self._believe(slot)
        return Head(slot, time)

    async def _numbers_of_others(self) -> list[int]:
        said = await self._of_others("getSlot", [{"commitment": "confirmed"}])
        return sorted((slot for slot in said if isinstance(slot, int) and not isinstance(slot, bool)), reverse=True)

    async def time_of(self, slot: int) -> datetime:
        """Return the time of a slot's block, or of the nearest one before it that has a time."""
        refused: ProviderError = ProviderConfused(self.name, f"it knows no time for slot {slot}")
        for back in range(SLOTS_BACK):
            try:
                seconds = await self.ask("getBlockTime", [slot - back])
            except ProviderRefused as fault:
                refused = fault
                continue
            if isinstance(seconds, int) and 0 < seconds <= LATEST:
                return datetime.fromtimestamp(seconds, UTC)
        raise refused

    async def _slot(self) -> int:
        slot = await self.ask("getSlot", [{"commitment": "confirmed"}])
        if not isinstance(slot, int) or isinstance(slot, bool) or slot < 0:
            raise ProviderConfused(self.name, "its slot is not a number")
        return slot

    async def _check_chain(self) -> None:
        if monotonic() < self._right_chain_until:
            return
        self._right_chain_until = 0.0
        found = await self.ask("getGenesisHash", [])
        if found != GENESIS:
            raise ProviderConfused(self.name, "it serves another network than Solana's mainnet")
        self._right_chain_until = monotonic() + CHAIN_AGAIN


class SolanaNodes:
    """The Solana endpoints that are set, in order of preference; each question has `deadline` seconds."""

    def __init__(
        self, urls: Sequence[str], *, deadline: float = DEADLINE, request_seconds: float = REQUEST_SECONDS
    ) -> None:
        self.deadline = deadline
        self.nodes = tuple(SolanaNode(index, url, request_seconds=request_seconds) for index, url in enumerate(urls))
        for node in self.nodes:
            node.others = [other for other in self.nodes if other is not node]

    async def close(self) -> None:
        """Close all connections."""
        for node in self.nodes:
            await node.close()

    async def first(
        self, ask: Callable[[SolanaNode], Awaitable[T]], *, endpoint: int | None = None, deadline: float | None = None
    ) -> T:
        """Return the first good answer, or raise the last ProviderError; `deadline` is loop time.

        With a number as `endpoint`, only that node is used.
        """
        if not self.nodes:
            raise ProviderDown(SOLANA.title, "no node is set for it")
        nodes = rested_first(self.nodes) if endpoint is None else [self.nodes[endpoint]]
        until = deadline or asyncio.get_running_loop().time() + self.deadline
        return await first_answer(SOLANA.title, nodes, ask, until)
