"""Transfers as they happen: the logs of tokens and coins in a range of blocks, read from one node of a chain.

The same requests read the registry of delegations, where a right passes from a vault to a delegate.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from gateways.evm import delegate_registry
from gateways.evm.log_decoding import THIRD, Log, Transfer, decode_logs, read_logs
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.block_ranges import LogSpan
from gateways.evm.rpc.errors import NeedsAddress, NodeTimedOut, Pruned
from gateways.evm.rpc.log_refusals import about_range, too_much
from gateways.evm.rpc.node import Head, Node, patiently
from gateways.evm.rpc.pool import NodePool
from gateways.evm.rpc.special_addresses import UNUSED
from gateways.evm.rpc.stated_limits import stated_blocks
from gateways.evm.tokens.event_topics import TRANSFER
from gateways.transport import question_time
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderError, Unauthorized

NOBODY = "0x" + 40 * "0"
CONTRACTS_AT_ONCE = 500
WALLETS_AT_ONCE = 500
MOST_OF_ONE = 5_000
"""The most logs of one contract in one block. More would slow down every reader of the chain's logs, block after block,
even if the node gives them all."""
MOST_EXCESSIVE = 16
"""The most addresses of one read that may be too much; if there are more, the node is the cause."""
STUCK_AFTER = 3
"""Reads that fail at the same block in a row before the address that causes it is searched for."""
SPENT_SHARE = 0.6
"""Share of the time for a question after which no further piece of the range is begun."""
WALLETS_TRIED_AGAIN = 3_600.0
"""Seconds after which a node that gave only logs of named contracts is asked for wallets' logs again."""
CONTRACTS, WALLETS, COINS = "contracts", "wallets", "coins"
"""How logs are filtered; a node may take more blocks with one filter than with another.

COINS filters by coins and by wallets together, since some coins move thousands of times in a block.
"""


@dataclass(frozen=True, slots=True)
class LogRead:
    """What a node's logs say about a range of blocks."""

    transfers: list[Transfer]
    last: int
    """The last block that was read; it is before the one that was asked for if the time ran out."""
    excessive: Mapping[str, str] = field(default_factory=dict[str, str])
    """Addresses with more logs in a block than the node gives or we accept, each with why; they are left out."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Contract → how many of its logs are neither a token's nor the registry's."""


@dataclass(slots=True)
class _RangeRead:
    """One read in progress."""

    node: Node
    kind: str
    addresses: Sequence[str]
    last: int
    coins: Sequence[str] = ()
    found: list[Transfer] = field(default_factory=list[Transfer])
    excessive: dict[str, str] = field(default_factory=dict[str, str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    cut_off: int = 0
    """Blocks of the first piece if it was cancelled: by the end of the question's time, or because nobody waits."""


class TransferLogs:
    """The transfers on the EVM chains. Every failure is a ProviderError, never an empty list.

    It learns how many blocks each node allows in one request. One address cannot hold up the range: where a single
    block is too much for a node, its logs are asked for by fewer and fewer addresses, and an address that is too much
    alone is left out and named.
    """

    def __init__(self, nodes: NodePool) -> None:
        self._nodes = nodes
        self._spans: dict[tuple[str, str], LogSpan] = {}
        self._suspects: dict[tuple[str, str], tuple[str, ...]] = {}
        """Chain and kind → addresses, one of which makes the nodes fail."""
        self._stuck: dict[tuple[str, str], tuple[int, int]] = {}
        """URL and kind → the block at which reads fail, and how often in a row."""
        self._wallets_refused: dict[str, float] = {}
        """URL → until when (loop time) the node is not asked for wallets' logs."""

    def endpoints(self, chain: str) -> int:
        """Return how many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return self._nodes.endpoints(chain)

    def for_wallets(self, chain: str) -> Sequence[int]:
        """Return the numbers of the nodes that give logs by wallets, as far as is known.

        A node that refused logs without a contract's address is left out for a while.
        """
        clock = asyncio.get_running_loop().time()
        return [
            node.index
            for node in self._nodes.all()
            if node.chain.key == chain and self._wallets_refused.get(node.url, 0.0) <= clock
        ]

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        """Return the newest block of one node that serves the right chain, is not stale, and has `not_before_block`.

        The block is handed on, because the reconcile of the members whom its transfers concern reads at this block.
        """

        async def ask(node: Node) -> Head:
            head = await node.head(not_before_block)
            node.hand_on(head)
            return head

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        """Return the hash of a block as one node has it; None when it has no such block (any more)."""

        async def ask(node: Node) -> str | None:
            found = await node.call("eth_getBlockByNumber", (hex(block), False))
            if found is None:
                return None
            said = cast("dict[str, object]", found).get("hash") if isinstance(found, dict) else None
            if not isinstance(said, str):
                raise ProviderConfused(node.name, f"its block {block} has no hash")
            return said

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def of_contracts(self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        """Return every transfer of these contracts' tokens in the blocks from `first` to `last`, both included.

        If the registry of delegations is among the contracts, its changes are included. Logs are filtered by contract
        and event, in one request for all contracts if that fits.
        """
        return await self._read(chain, CONTRACTS, contracts, first, last, endpoint)

    async def of_wallets(self, chain: str, wallets: Sequence[str], first: int, last: int, endpoint: int) -> LogRead:
        """Return every transfer of any contract's tokens from or to these wallets in the blocks from `first` to `last`.

        Logs are filtered by the wallets as indexed topics, sender and receiver, of both families of events. Raises
        NeedsAddress where the node gives only logs of named contracts; `for_wallets` then leaves it out.
        """
        return await self._read(chain, WALLETS, wallets, first, last, endpoint)

    async def of_coins(
        self, chain: str, coins: Sequence[str], wallets: Sequence[str], first: int, last: int, endpoint: int
    ) -> LogRead:
        """Return every transfer of these coins from or to these wallets in the blocks from `first` to `last`.

        Logs are filtered by the coins and by the wallets as indexed topics, so transfers between others are not read.
        """
        return await self._read(chain, COINS, wallets, first, last, endpoint, *coins)

    async def _read(
        self, chain: str, kind: str, addresses: Sequence[str], first: int, last: int, endpoint: int, *coins: str
    ) -> LogRead:
        done: list[_RangeRead] = []

        async def ask(node: Node) -> None:
            reading = _RangeRead(node, kind, addresses, first - 1, coins)
            done.append(reading)
            await self._pieces(reading, first, last)

        try:
            await self._nodes.first(chain, ask, endpoint=endpoint)
        except ProviderError as fault:
            if done and (blocks := done[-1].cut_off):
                # The question's time was over. Its requests may all have been quick, but too many for so many blocks.
                self._span(done[-1]).refused(blocks, for_range=False, slow=True)
            # What was read is kept: otherwise a range too long for the time of one question would never be read.
            if not done or done[-1].last < first:
                if isinstance(fault, NeedsAddress) and done:
                    until = asyncio.get_running_loop().time() + WALLETS_TRIED_AGAIN
                    self._wallets_refused[done[-1].node.url] = until
                    node_limits.note(done[-1].node.url, logs_need_address=True)
                raise
        reading = done[-1]
        if kind == WALLETS:
            node_limits.note(reading.node.url, logs_need_address=False)
        return LogRead(reading.found, reading.last, reading.excessive, reading.skipped)

    def _span(self, reading: _RangeRead) -> LogSpan:
        place = reading.node.url, reading.kind
        return self._spans.setdefault(place, LogSpan(node_limits.known(reading.node.url).log_blocks))

    async def _pieces(self, reading: _RangeRead, first: int, last: int) -> None:
        """Read the range in pieces that the node takes, until the time runs out."""
        node, kind, before = reading.node, reading.kind, reading.last
        until = question_time.now() + SPENT_SHARE * self._nodes.deadline
        span = self._span(reading)
        while first <= last and (reading.last == before or question_time.now() < until):
            end = min(last, first + span.blocks - 1)
            try:
                found = await self._piece(reading, first, end)
            except asyncio.CancelledError:
                reading.cut_off = end - first + 1 if reading.last == before else 0
                raise
            except ProviderError as fault:
                self._note_failure(reading, first, fault)
                slow = isinstance(fault, NodeTimedOut) or self._is_stuck(reading, first)
                if end == first or not (slow or too_much(fault)):
                    raise
                span.refused(end - first + 1, for_range=about_range(fault), slow=slow, stated=stated_blocks(str(fault)))
                if slow:
                    raise
                continue
            self._stuck.pop((node.url, kind), None)
            reading.found += found
            reading.last = end
            span.gave(end - first + 1)
            if kind == CONTRACTS:
                _note_limit(node.url, span.limit, end - first + 1)
            first = end + 1

    def _note_failure(self, reading: _RangeRead, first: int, fault: ProviderError) -> None:
        """Count reads that fail at one block other than for size, requests, a missing address, the key or its age."""
        if isinstance(fault, ProviderBusy | Unauthorized | NeedsAddress | Pruned) or too_much(fault):
            return
        place = reading.node.url, reading.kind
        block, times = self._stuck.get(place, (first, 0))
        self._stuck[place] = first, times + 1 if block == first else 1

    def _is_stuck(self, reading: _RangeRead, first: int) -> bool:
        block, times = self._stuck.get((reading.node.url, reading.kind), (first, 0))
        return block == first and times >= STUCK_AFTER

    async def _piece(self, reading: _RangeRead, first: int, last: int) -> list[Transfer]:
        """Return the transfers in a few blocks, asking about suspected addresses apart from the others."""
        place = reading.node.chain.key, reading.kind
        suspects = self._suspects.get(place, ())
        suspected = [one for one in reading.addresses if one in suspects] if suspects else []
        others = [one for one in reading.addresses if one not in suspects] if suspected else reading.addresses
        found: list[Transfer] = []
        for group in chunks(others, CONTRACTS_AT_ONCE if reading.kind == CONTRACTS else WALLETS_AT_ONCE):
            try:
                found += await self._group(reading, group, first, last)
            except NodeTimedOut:
                self._suspects.pop(place, None)
                if first == last and not suspected:
                    self._suspects[place] = tuple(group)
                raise
        if suspected:
            half = max(1, len(suspected) // 2)
            for group in (suspected[:half], suspected[half:]):
                try:
                    found += await self._group(reading, group, first, last) if group else ()
                except NodeTimedOut as fault:
                    if first < last:
                        raise
                    if len(group) > 1 or len(suspected) > 1:
                        self._suspects[place] = tuple(group)
                        raise
                    await self._leave_out(reading, group[0], first, fault)
            self._suspects.pop(place, None)
        return found

    async def _group(self, reading: _RangeRead, addresses: Sequence[str], first: int, last: int) -> list[Transfer]:
        """Return the transfers of these addresses, those of a single block in as many parts as the node needs."""
        try:
            return await self._ask(reading, addresses, first, last)
        except NodeTimedOut:
            raise
        except ProviderError as fault:
            if first < last:
                raise
            if not too_much(fault):
                if self._is_stuck(reading, first):
                    # Some nodes fail on a request that is too much, and say so in words of all kinds.
                    raise NodeTimedOut(reading.node.name, fault.reason) from fault
                raise
            if len(addresses) == 1:
                await self._leave_out(reading, addresses[0], first, fault)
                return []
        half = len(addresses) // 2
        return [
            *await self._group(reading, addresses[:half], first, last),
            *await self._group(reading, addresses[half:], first, last),
        ]

    async def _leave_out(self, reading: _RangeRead, address: str, block: int, fault: ProviderError) -> None:
        """Record an address that is too much alone; raise the fault if the node gives no logs of the block at all."""
        try:
            # A node that refuses even the logs of an unused address refuses everything.
            await self._ask(reading, [UNUSED], block, block)
        except ProviderError:
            raise fault from None
        reading.excessive[address] = str(fault)
        if len(reading.excessive) > MOST_EXCESSIVE:
            raise fault

    async def _ask(self, reading: _RangeRead, addresses: Sequence[str], first: int, last: int) -> list[Transfer]:
        found: list[Transfer] = []
        node, where = reading.node, {"fromBlock": hex(first), "toBlock": hex(last)}
        for wanted in _filters(reading.kind, addresses, reading.coins):
            answer = await patiently(node, "eth_getLogs", ({**wanted, **where},), decode_logs)
            said: list[object] = cast("list[object]", answer) if isinstance(answer, list) else []
            logs = [one for one in said if isinstance(one, Log)] if len(said) > MOST_OF_ONE else []
            if logs and reading.kind == CONTRACTS and (crowded := _floods(logs, node.chain.delegates)):
                reading.excessive.update(crowded)
                answer = [one for one in logs if one.address.lower() not in crowded]
            registry, coins = node.chain.delegates, reading.kind in {COINS, CONTRACTS}
            found += read_logs(node.name, cast("object", answer), first, last, registry, reading.skipped, coins=coins)
        return found


def _floods(logs: Iterable[Log], without: str | None) -> dict[str, str]:
    """Return the contracts with over MOST_OF_ONE logs in one block, but not `without`, each with a text of how many."""
    counts = Counter((log.address.lower(), log.block_number) for log in logs)
    found = {address: f"{count} logs in one block" for (address, _), count in counts.items() if count > MOST_OF_ONE}
    found.pop((without or "").lower(), None)
    return found


def _note_limit(url: str, limit: int | None, passed: int) -> None:
    """Note how many blocks a node gives, or that it gives more than was known."""
    before = node_limits.known(url).log_blocks
    if limit != before and (limit is not None or (before is not None and passed > before)):
        node_limits.note(url, log_blocks=limit)


def _filters(kind: str, addresses: Sequence[str], coins: Sequence[str]) -> list[Mapping[str, object]]:
    if kind == CONTRACTS:
        return [{"address": list(addresses), "topics": [[TRANSFER, *THIRD, *delegate_registry.CHANGED]]}]
    who = ["0x" + 24 * "0" + wallet[2:] for wallet in addresses]
    if kind == COINS:
        return [
            {"address": list(some), "topics": topics}
            for some in chunks(coins, CONTRACTS_AT_ONCE)
            for topics in ([TRANSFER, who], [TRANSFER, None, who])
        ]
    return [
        {"topics": [TRANSFER, who]},
        {"topics": [TRANSFER, None, who]},
        {"topics": [list(THIRD), None, who]},
        {"topics": [list(THIRD), None, None, who]},
    ]
