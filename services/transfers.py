"""Reading on along a chain: what has moved since the last look, up to where that is certain.

Blocks that are not settled yet are read again at every look, by each node in turn, so that a node which leaves
something out, or a chain that changes its mind, costs a moment and not a change.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from math import ceil

from gateways import Gateways
from gateways.chain_table import CHAINS
from gateways.errors import ProviderError
from gateways.evm_transfers import NOBODY, Transfer, Transfers
from services.following import Position, Watched, registry_on

log = logging.getLogger("holdfast.services.transfers")

AT_ONCE = 2_000
"""Blocks that one look reads at most; who is further behind looks again at once."""
LOOKED_BACK = 64
"""Blocks to go back when the last settled one is not the chain's any more."""
KEPT = 1_024
"""Blocks whose transfers are remembered, to be looked at again should they vanish."""
WAITED_FOR = 60.0
"""Seconds that a node which does not answer keeps blocks from being settled by the others."""
BEFORE_THE_HEAD_SECONDS = 60
MOST_BEHIND_SECONDS = 86_400
"""Who is further behind has everybody looked at once, instead of reading the history."""


def followed_chains(outside: Gateways) -> list[str]:
    """The chains that can be followed: those with a node that gives logs."""
    return [chain for chain in CHAINS if outside.transfers.endpoints(chain)]


@dataclass(frozen=True, slots=True)
class Look:
    """What came of one look: read up to `position` for good, at a chain whose newest block is `head`."""

    position: Position
    head: int
    moved: tuple[tuple[str, int], ...] = ()
    """`(address, block)` of whoever a token left or reached."""
    delegated: tuple[tuple[str, int], ...] = ()
    """`(delegate, block)` of whomever a vault gave or took a right."""
    more: bool = False
    """Whether there is more to read at once."""
    missed: bool = False
    """Whether we were away for so long that everybody has to be looked at."""


class Unreadable(Exception):
    """The node whose turn it was gave no usable answer; the next look asks another. The text says why."""


async def new_blocks(outside: Gateways, chain: str) -> AsyncGenerator[None]:
    """One item when a node's socket stands, and one for each block that it tells of; ends with Unreadable."""
    try:
        async for _ in outside.heads.follow(chain):
            yield
    except ProviderError as fault:
        raise Unreadable(str(fault)) from fault


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
    end: tuple[str, Watched] | None = None
    """The newest head (its hash) up to which everything was read, and what was watched then."""
    end_told: list[int] = field(default_factory=list[int])
    """By which endpoints, one entry a reading."""

    def told(self, end: tuple[str, Watched], endpoint: int) -> None:
        """The endpoint has told everything up to this head."""
        if end != self.end:
            self.end, self.end_told = end, []
        self.end_told.append(endpoint)

    def tells_nothing_new(self, end: tuple[str, Watched], endpoint: int) -> bool:
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
        return news


class Reader:
    """Reads one chain on, look by look; what it remembers between two looks may be lost without harm."""

    def __init__(self, chain: str) -> None:
        self.chain: str = chain
        self._memory: _Memory = _Memory()

    def forget(self) -> None:
        """Somebody else follows the chain now, or nobody has to."""
        self._memory = _Memory()

    async def look(self, outside: Gateways, stored: Position, watched: Watched) -> Look:
        """Read on from the stored position. Raises Unreadable."""
        try:
            return await self._look(outside.transfers, stored, watched)
        except ProviderError as fault:
            raise Unreadable(str(fault)) from fault

    async def _look(self, transfers: Transfers, stored: Position, watched: Watched) -> Look:
        endpoint = self._next(transfers.endpoints(self.chain))
        newest = await transfers.head(self.chain, endpoint, stored.block)
        head = newest.block
        missed = self._missed(stored, head)
        if not missed and self._memory.tells_nothing_new((newest.block_hash, watched), endpoint):
            # The same head is the same chain: nothing but the head is asked for until there is a block more.
            last, news, position = head, set[Transfer](), stored
        else:
            if missed or stored.block == 0:
                stored = self._beginning(head)
            last = min(head, stored.block + AT_ONCE)
            # The name of what is settled by now is asked for before all else. So a chain that changes its mind is found
            # out, by this look or the next: the name is that of an older chain than was read, never of a newer one.
            position = await self._reached(transfers, stored, head, last, endpoint)
            is_there, found = await asyncio.gather(
                self._is_there(transfers, stored, endpoint),
                self._read(transfers, watched, stored.block + 1, last, endpoint),
            )
            if not is_there:
                log.warning("%s: block %s was replaced, reading back", CHAINS[self.chain].title, stored.block)
                position = stored = Position(max(1, stored.block - LOOKED_BACK), "")
                last = min(head, stored.block + AT_ONCE)
                found = await self._read(transfers, watched, stored.block + 1, last, endpoint)
            replaced = await self._replaced(transfers, self._memory.doubtful(found, stored.block + 1, last), endpoint)
            news = self._memory.news(found, replaced, last)
            if last == head:
                self._memory.told((newest.block_hash, watched), endpoint)
        self._note(endpoint, last)
        rights = {one for one in news if one.contract == registry_on(self.chain)}
        given = tuple(sorted((one.receiver, one.block) for one in rights))
        return Look(position, head, tuple(sorted(_places(news))), given, last < head, missed)

    def _missed(self, stored: Position, head: int) -> bool:
        fresh, self._memory.fresh = self._memory.fresh, False
        behind = (head - stored.block) * CHAINS[self.chain].block_seconds
        return fresh and stored.block > 0 and behind > MOST_BEHIND_SECONDS

    def _beginning(self, head: int) -> Position:
        """Where to begin: a moment before the head, for a rule that was made while we were about to begin has been
        answered by no older block.
        """
        return Position(max(1, head - ceil(BEFORE_THE_HEAD_SECONDS / CHAINS[self.chain].block_seconds)), "")

    async def _is_there(self, transfers: Transfers, stored: Position, endpoint: int) -> bool:
        """Whether the stored position is the chain's still."""
        if not stored.block_hash:
            return True
        return await transfers.block_hash(self.chain, stored.block, endpoint) == stored.block_hash

    async def _replaced(self, transfers: Transfers, doubtful: dict[int, str], endpoint: int) -> set[int]:
        """Which of these blocks are not the chain's any more; a node that only leaves something out has them still."""
        newest = sorted(doubtful, reverse=True)[:LOOKED_BACK]
        hashes = [await transfers.block_hash(self.chain, block, endpoint) for block in newest]
        return {block for block, said in zip(newest, hashes, strict=True) if said != doubtful[block]}

    def _next(self, endpoints: int) -> int:
        self._memory.turn = (self._memory.turn + 1) % max(1, endpoints)
        clock = asyncio.get_running_loop().time()
        for endpoint in range(endpoints):
            self._memory.answered.setdefault(endpoint, clock)
        return self._memory.turn

    async def _reached(self, transfers: Transfers, stored: Position, head: int, last: int, endpoint: int) -> Position:
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

    def _note(self, endpoint: int, last: int) -> None:
        """The node has told us of everything up to `last`."""
        self._memory.answered[endpoint] = asyncio.get_running_loop().time()
        self._memory.read[endpoint] = last

    async def _read(
        self, transfers: Transfers, watched: Watched, first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        found: list[Transfer] = []
        if watched.contracts:
            found += await transfers.of_contracts(self.chain, watched.contracts, first, last, endpoint)
        if watched.wallets:
            found += await transfers.of_wallets(self.chain, watched.wallets, first, last, endpoint)
        return found


def _places(transfers: set[Transfer]) -> list[tuple[str, int]]:
    return [(who, one.block) for one in transfers for who in (one.sender, one.receiver) if who != NOBODY]
