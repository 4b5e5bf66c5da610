"""Reading on along a chain: what has moved since the last look, up to where that is certain.

Blocks that are not settled yet are read again at every look, by each node in turn, so that a node which leaves
something out, or a chain that changes its mind, costs a moment and not a change.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from zlib import crc32

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.transfer_logs import CONTRACTS, NOBODY, WALLETS, LogRead, Transfer, TransferLogs
from gateways.transport.errors import ProviderConfused, ProviderError, ProviderRefused
from services.triggers.chain_cursor import ANY, Position, registry_on
from services.triggers.sightings import Moved

log = logging.getLogger("holdfast.services.triggers.transfer_poller")

AT_ONCE = 2_000
"""Blocks that one look reads at most; who is further behind looks again at once."""
LOOKED_BACK = 64
"""Blocks to go back when the last settled one is not the chain's any more."""
KEPT = 1_024
"""Blocks whose transfers are remembered, to be looked at again should they vanish."""
MOST_SEEN = 50_000
"""Transfers that are remembered at most (some 500 bytes each); the oldest blocks are forgotten first."""
WAITED_FOR = 60.0
"""Seconds that a node which does not answer keeps blocks from being settled by the others."""
BEYOND_SECONDS = 180.0
"""For so long all nodes must be before the stored position until it is taken for wrong."""
BEFORE_THE_HEAD_SECONDS = 60
MOST_BEHIND_SECONDS = 86_400
"""Who is further behind has everybody looked at once, instead of reading the history."""


def followed_chains(outside: Gateways) -> list[str]:
    """The chains that can be followed: those with a node that gives logs."""
    return [chain for chain in CHAINS if outside.transfers.endpoints(chain)]


@dataclass(frozen=True, slots=True)
class PollResult:
    """The outcome of one look: everything up to `position` is read.

    `head` is the newest block that a node of the chain named lately.
    """

    position: Position
    head: int
    moved: tuple[Moved, ...] = ()
    delegated: tuple[tuple[str, int], ...] = ()
    """`(delegate, block)` for each right that a vault gave or took."""
    excessive: Mapping[str, str] = field(default_factory=dict[str, str])
    """Addresses whose logs were left out since they are too much for the node, and its words."""
    more: bool = False
    """Whether there is more to read at once."""
    missed: bool = False
    """Whether we were away for so long that everybody has to be looked at."""
    went_back: bool = False
    """Whether the position before was one that the chain has not reached."""


class UnreadableTransfers(Exception):
    """The node whose turn it was gave no usable answer; the next look asks another. The text says why."""


async def new_blocks(outside: Gateways, chain: str) -> AsyncGenerator[None]:
    """One item when a node's socket stands, and one for each block that it tells of; ends with Unreadable."""
    try:
        async for _ in outside.heads.follow(chain):
            yield
    except ProviderError as fault:
        raise UnreadableTransfers(str(fault)) from fault


@dataclass
class _Memory:
    """What this process has seen of the unsettled end of the chain."""

    seen: dict[int, set[Transfer]] = field(default_factory=dict[int, set[Transfer]])
    read: dict[int, int] = field(default_factory=dict[int, int])
    """Endpoint → up to which block it has told us of transfers."""
    answered: dict[int, float] = field(default_factory=dict[int, float])
    """Endpoint → when (loop time) it last did, or when we began to ask it."""
    turn: int = 0
    fresh: bool = True
    """Whether nothing has been read since this process began, or began again, to follow the chain."""
    end: tuple[str, Sequence[str]] | None = None
    """The newest head (its hash) up to which everything was read, and the addresses that were watched then."""
    end_told: list[int] = field(default_factory=list[int])
    """By which endpoints, one entry a reading."""
    lower: dict[int, float] = field(default_factory=dict[int, float])
    """Endpoint → since when (loop time) its head is before the stored position."""
    silent: set[int] = field(default_factory=set[int])
    """Endpoints that did not name their head when they were last asked because of that."""
    heads: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    """Endpoint → the head that it named last, and when (loop time)."""
    reach: dict[int, int] = field(default_factory=dict[int, int])
    """Endpoint → how many blocks it gets through in one look, where that is less than AT_ONCE."""

    def told(self, end: tuple[str, Sequence[str]], endpoint: int) -> None:
        """The endpoint has told everything up to this head."""
        if end != self.end:
            self.end, self.end_told = end, []
        self.end_told.append(endpoint)

    def tells_nothing_new(self, end: tuple[str, Sequence[str]], endpoint: int) -> bool:
        """Whether the endpoint has told everything up to this head before, and two readings have been made of it."""
        return bool(end[0]) and end == self.end and endpoint in self.end_told and len(self.end_told) > 1

    def doubtful(self, found: list[Transfer], first: int, last: int) -> dict[int, str]:
        """The blocks of which a transfer is missing now, with the hash that they had."""
        there = set(found)
        return {
            block: next(iter(known)).block_hash
            for block, known in self.seen.items()
            if first <= block <= last and known - there
        }

    def news(self, found: list[Transfer], replaced: set[int], last: int) -> set[Transfer]:
        """What was not known yet, and what was in blocks that have been replaced since."""
        news: set[Transfer] = set()
        for block in replaced:
            news |= self.seen.pop(block, set())
        for one in found:
            known = self.seen.setdefault(one.block, set())
            if one not in known:
                known.add(one)
                news.add(one)
        for block in [block for block in self.seen if block < last - KEPT]:
            del self.seen[block]
        left = sum(map(len, self.seen.values()))
        for block in sorted(self.seen):
            if left <= MOST_SEEN:
                break
            left -= len(self.seen.pop(block))
        return news


class Reader:
    """Reads one chain on, look by look; what it remembers between two looks may be lost without harm.

    It follows either contracts or wallets (`kind`).
    """

    def __init__(self, chain: str, kind: str = CONTRACTS) -> None:
        self.chain: str = chain
        self.kind: str = kind
        self._memory: _Memory = _Memory()

    def forget(self) -> None:
        """Somebody else follows the chain now, or nobody has to."""
        self._memory = _Memory()

    async def look(self, outside: Gateways, stored: Position, addresses: Sequence[str]) -> PollResult:
        """Read on from the stored position. Raises Unreadable."""
        try:
            return await self._look(outside.transfers, stored, addresses)
        except ProviderError as fault:
            raise UnreadableTransfers(str(fault)) from fault

    async def _look(self, transfers: TransferLogs, stored: Position, addresses: Sequence[str]) -> PollResult:
        endpoints = self._endpoints(transfers)
        endpoint = self._next(endpoints)
        try:
            newest = await transfers.head(self.chain, endpoint, stored.block)
        except ProviderError:
            if (back := await self._back(transfers, stored, endpoint, endpoints)) is None:
                raise
            return back
        self._memory.lower.clear()
        head = newest.block
        self._memory.heads[endpoint] = head, asyncio.get_running_loop().time()
        missed = self._missed(stored, head)
        excessive: Mapping[str, str] = {}
        if not missed and self._memory.tells_nothing_new((newest.block_hash, addresses), endpoint):
            # The same head is the same chain: nothing but the head is asked for until there is a block more.
            last, news, position = head, set[Transfer](), stored
        else:
            if missed or stored.block == 0:
                stored = await self._beginning(transfers, head, endpoint)
            last = min(head, stored.block + self._memory.reach.get(endpoint, AT_ONCE))
            # The name of what is settled by now is asked for before all else. So a chain that changes its mind is found
            # out, by this look or the next: the name is that of an older chain than was read, never of a newer one.
            position = await self._reached(transfers, stored, head, last, endpoint)
            is_there, read = await asyncio.gather(
                self._is_there(transfers, stored, endpoint),
                self._read(transfers, addresses, stored.block + 1, last, endpoint),
            )
            if not is_there:
                log.warning("%s: block %s was replaced, reading back", CHAINS[self.chain].title, stored.block)
                position = stored = Position(max(1, stored.block - LOOKED_BACK), "")
                last = min(head, stored.block + AT_ONCE)
                read = await self._read(transfers, addresses, stored.block + 1, last, endpoint)
            self._pace(endpoint, stored.block, last, read.last)
            last, excessive = read.last, read.excessive
            if position.block > last:
                position = stored  # named for a block that this look did not get to; the next one asks for less
            found = read.transfers
            replaced = await self._replaced(transfers, self._memory.doubtful(found, stored.block + 1, last), endpoint)
            news = self._memory.news(found, replaced, last)
            if last == head:
                self._memory.told((newest.block_hash, addresses), endpoint)
        self._note(endpoint, last)
        self._memory.fresh = False
        rights = {one for one in news if one.contract == registry_on(self.chain)}
        given = tuple(sorted((one.receiver, one.block) for one in rights)) if self.kind == CONTRACTS else ()
        return PollResult(position, self._newest_head(), self._moved(news), given, excessive, last < head, missed)

    def _endpoints(self, transfers: TransferLogs) -> Sequence[int]:
        """The nodes that can be asked. Raises ProviderRefused where none can."""
        count = transfers.endpoints(self.chain)
        if self.kind == CONTRACTS:
            return range(max(1, count))
        if not (found := transfers.for_wallets(self.chain)):
            reason = "no node gives logs of wallets, only of contracts that are named"
            raise ProviderRefused(CHAINS[self.chain].title, reason, status=200)
        return found

    def _pace(self, endpoint: int, begin: int, planned: int, reached: int) -> None:
        """Plan looks that the node gets through: a position is named before it is known how far the look comes."""
        if reached < planned:
            self._memory.reach[endpoint] = max(1, reached - begin)
        elif endpoint in self._memory.reach:
            wider = 2 * self._memory.reach.pop(endpoint)
            if wider < AT_ONCE:
                self._memory.reach[endpoint] = wider

    def _moved(self, news: set[Transfer]) -> tuple[Moved, ...]:
        named = self.kind == CONTRACTS
        return tuple(
            sorted(
                Moved(one.contract if named else ANY, who, one.block)
                for one in news
                for who in (one.sender, one.receiver)
                if who != NOBODY
            )
        )

    def _missed(self, stored: Position, head: int) -> bool:
        behind = (head - stored.block) * CHAINS[self.chain].block_seconds
        return self._memory.fresh and stored.block > 0 and behind > MOST_BEHIND_SECONDS

    async def _beginning(self, transfers: TransferLogs, head: int, endpoint: int) -> Position:
        """Where to begin: a moment before the head, for a rule that was made while we were about to begin has been
        answered by no older block. Raises ProviderConfused where the node does not have the head that it names.
        """
        block = max(1, head - ceil(BEFORE_THE_HEAD_SECONDS / CHAINS[self.chain].block_seconds))
        name = await transfers.block_hash(self.chain, block, endpoint)
        if name is None and await transfers.block_hash(self.chain, head, endpoint) is None:
            raise ProviderConfused(CHAINS[self.chain].title, f"a node names the head {head}, which it does not have")
        return Position(block, name or "")

    async def _back(
        self, transfers: TransferLogs, stored: Position, endpoint: int, endpoints: Sequence[int]
    ) -> PollResult | None:
        """The look that goes back to where the chain is, once all nodes that answer have been before the position for
        long: a wrong head led to it. None until then.
        """
        memory, clock = self._memory, asyncio.get_running_loop().time()
        try:
            newest = await transfers.head(self.chain, endpoint)
        except ProviderError:
            memory.lower.pop(endpoint, None)
            memory.silent.add(endpoint)
            return None
        memory.silent.discard(endpoint)
        if newest.block >= stored.block:
            memory.lower.clear()
            return None
        memory.lower.setdefault(endpoint, clock)
        asked = memory.lower.keys() | memory.silent
        if not asked >= set(endpoints) or clock - max(memory.lower.values()) < BEYOND_SECONDS:
            return None
        position = await self._beginning(transfers, newest.block, endpoint)
        log.warning("went back to where the chain is chain=%s from=%d to=%d", self.chain, stored.block, position.block)
        self.forget()
        return PollResult(position, newest.block, missed=True, went_back=True)

    async def _is_there(self, transfers: TransferLogs, stored: Position, endpoint: int) -> bool:
        """Whether the stored position is the chain's still."""
        if not stored.block_hash:
            return True
        return await transfers.block_hash(self.chain, stored.block, endpoint) == stored.block_hash

    async def _replaced(self, transfers: TransferLogs, doubtful: dict[int, str], endpoint: int) -> set[int]:
        """Which of these blocks are not the chain's any more; a node that only leaves something out has them still."""
        newest = sorted(doubtful, reverse=True)[:LOOKED_BACK]
        hashes = [await transfers.block_hash(self.chain, block, endpoint) for block in newest]
        return {block for block, said in zip(newest, hashes, strict=True) if said != doubtful[block]}

    def _next(self, endpoints: Sequence[int]) -> int:
        self._memory.turn += 1
        clock = asyncio.get_running_loop().time()
        for endpoint in endpoints:
            self._memory.answered.setdefault(endpoint, clock)
        for endpoint in self._memory.answered.keys() - set(endpoints):
            del self._memory.answered[endpoint]
        return endpoints[self._memory.turn % len(endpoints)]

    async def _reached(
        self, transfers: TransferLogs, stored: Position, head: int, last: int, endpoint: int
    ) -> Position:
        """Up to where the chain is read for good once the endpoint has told of everything up to `last`.

        What it does not have is not settled: a position without a name would not be compared with the chain.
        """
        settled = min(self._settled(endpoint, last), head - CHAINS[self.chain].confirmations)
        if settled <= stored.block:
            return stored
        name = await transfers.block_hash(self.chain, settled, endpoint)
        return Position(settled, name) if name else stored

    def _settled(self, endpoint: int, last: int) -> int:
        """Up to where every node that answers these days has told us what happened, this one up to `last`.

        Where it is the only one, twice counts as two.
        """
        memory, clock = self._memory, asyncio.get_running_loop().time()
        others = [one for one, moment in memory.answered.items() if one != endpoint and clock - moment < WAITED_FOR]
        before = memory.read.get(endpoint, 0)
        told = [memory.read.get(one, 0) for one in others] if len(memory.answered) > 1 else [before]
        return min([last, *told])

    def _newest_head(self) -> int:
        """The newest head that the nodes named when each was last asked: one that lags hides nothing from us."""
        clock = asyncio.get_running_loop().time()
        return max(head for head, at in self._memory.heads.values() if clock - at < WAITED_FOR)

    def _note(self, endpoint: int, last: int) -> None:
        """The node has told us of everything up to `last`."""
        self._memory.answered[endpoint] = asyncio.get_running_loop().time()
        self._memory.read[endpoint] = last

    async def _read(
        self, transfers: TransferLogs, addresses: Sequence[str], first: int, last: int, endpoint: int
    ) -> LogRead:
        ask = transfers.of_contracts if self.kind == CONTRACTS else transfers.of_wallets
        read = await ask(self.chain, addresses, first, last, endpoint)
        if read.skipped:
            count = sum(read.skipped.values())
            log.info(
                "skipped logs of a wrong shape chain=%s logs=%d contracts=%d", self.chain, count, len(read.skipped)
            )
        return read


class WalletReader:
    """Reads the logs that name members' wallets; of more than `most` a part at each look, the parts in turn."""

    def __init__(self, chain: str, most: int) -> None:
        self.chain: str = chain
        self._most: int = most
        self._readers: list[Reader] = []
        self._positions: list[Position] = []
        self._turn: int = 0

    @property
    def slices(self) -> int:
        """In how many turns the wallets are read."""
        return max(1, len(self._readers))

    def forget(self) -> None:
        """Somebody else follows the chain now, or nobody has to."""
        self._readers = []

    async def look(self, outside: Gateways, stored: Position, addresses: Sequence[str]) -> PollResult:
        """Read one part on; the position is that of the part that is furthest behind. Raises Unreadable."""
        slices = max(1, ceil(len(addresses) / self._most))
        if slices != len(self._readers):
            self._readers = [Reader(self.chain, WALLETS) for _ in range(slices)]
            self._positions = [stored] * slices
        if slices == 1:
            self._positions = [stored]
        turn = self._turn = (self._turn + 1) % slices
        part = addresses if slices == 1 else tuple(one for one in addresses if crc32(one.encode()) % slices == turn)
        look = await self._readers[turn].look(outside, self._positions[turn], part)
        if look.missed or self._positions[turn].block == 0:
            # The others begin where this one does: what was before it is no part's to read.
            self._positions = [look.position] * slices
        self._positions[turn] = look.position
        return replace(look, position=min(self._positions, key=lambda position: position.block))
