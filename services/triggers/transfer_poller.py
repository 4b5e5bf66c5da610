"""Poll a chain's transfers since the last poll, up to settled blocks.

Unsettled blocks are read again at every poll, by each node in turn. So if a node omits a transfer, or the chain is
reorganised (`reorganisations.py`), a change is found later but not missed. `sightings.py` queues members by what moved.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from zlib import crc32

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.log_decoding import Transfer
from gateways.evm.rpc.node import Head
from gateways.evm.transfer_logs import COINS, CONTRACTS, NOBODY, WALLETS, LogRead, TransferLogs
from gateways.transport.errors import ProviderConfused, ProviderError, ProviderRefused
from services.triggers.chain_cursor import ANY, Position, registry_on
from services.triggers.reorganisations import LOOKED_BACK, SeenTransfers, ask_about, is_on_chain, read_back_from
from services.triggers.sightings import Moved
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

AT_ONCE = 2_000
"""Maximum blocks of one poll; a follower that is further behind polls again at once."""
SOONEST_SECONDS = 1.0
"""Shortest time between two polls, however often new blocks are announced."""
WAITED_FOR = 60.0
"""Seconds for which a node that was asked and does not answer keeps the others from settling blocks."""
BEYOND_SECONDS = 180.0
"""Seconds for which all nodes must be behind the stored position before it counts as wrong."""
BEFORE_THE_HEAD_SECONDS = 60
"""How much further back than the last poll a chain is read at first: a poll may fail, or take long."""
SKIPPED_LOGGED_EVERY = 600.0
"""Seconds between two lines about logs of a wrong shape, because anybody can write such logs in every block."""
MOST_BEHIND_SECONDS = 86_400
"""If a chain could not be read for longer than this, the missed blocks are not read: all members are queued once."""


def followed_chains(outside: Gateways) -> list[str]:
    """Return the chains that can be followed: those with a node that returns logs."""
    return [chain for chain in CHAINS if outside.transfers.endpoints(chain)]


@dataclass(frozen=True, slots=True)
class PollResult:
    """The outcome of one poll: everything up to `position` has been read.

    `head` is the newest block that a node of the chain has lately reported.
    """

    position: Position
    head: int
    moved: tuple[Moved, ...] = ()
    delegated: tuple[tuple[str, int], ...] = ()
    """`(delegate, block)` for each right that a vault gave or withdrew."""
    excessive: Mapping[str, str] = field(default_factory=dict[str, str])
    """Addresses whose logs were too many for the node, with its message."""
    more: bool = False
    """Whether there is more to read at once."""
    missed: bool = False
    """Whether so much was missed that all members must be queued."""
    went_back: bool = False
    """Whether the former position was beyond the chain's head."""


class UnreadableTransfers(Exception):
    """The node whose turn it was gave no usable answer; the next poll asks another. The text says why."""


async def new_blocks(outside: Gateways, chain: str) -> AsyncGenerator[None]:
    """Yield once when a node's socket is open, and once for each block that it reports. Raises UnreadableTransfers."""
    try:
        async for _ in outside.heads.follow(chain):
            yield
    except ProviderError as fault:
        raise UnreadableTransfers(str(fault)) from fault


@dataclass(frozen=True, slots=True)
class _Report:
    """How far one node has reported transfers."""

    last: int = 0
    block_hash: str = ""
    """The hash of that block if it was the node's head."""
    confirmed: int = 0
    """The last of these blocks that had its confirmations, so that no reorganisation is expected to replace it."""


@dataclass
class _Memory:
    """What this process has read of the unsettled end of the chain."""

    seen: SeenTransfers = field(default_factory=SeenTransfers)
    reports: dict[int, _Report] = field(default_factory=dict[int, _Report])
    """Endpoint → its last report."""
    unanswered: dict[int, float] = field(default_factory=dict[int, float])
    """Endpoint → since when (loop time) it was asked and has not reported; infinite if it owes no answer.

    The time of its last report would not do: at a slow pace its next turn comes long after that.
    """
    turn: int = 0
    failing_since: float | None = -inf
    """Since when (loop time) every poll has failed, None after one that succeeded, -inf before the first."""
    end: tuple[str, Sequence[str]] | None = None
    """The hash of the newest head up to which everything was read, and the addresses watched then."""
    end_told: list[int] = field(default_factory=list[int])
    """The endpoints that read up to that head, one entry per reading."""
    lower: dict[int, float] = field(default_factory=dict[int, float])
    """Endpoint → since when (loop time) its head is behind the stored position."""
    silent: set[int] = field(default_factory=set[int])
    """Endpoints that were asked for their head because of that, and did not report it the last time."""
    heads: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    """Endpoint → its last reported head, and when (loop time)."""
    reach: dict[int, int] = field(default_factory=dict[int, int])
    """Endpoint → blocks that it can return in one poll, if fewer than AT_ONCE."""

    def note_reported(self, end: tuple[str, Sequence[str]], endpoint: int) -> None:
        """Record that the endpoint has reported everything up to this head."""
        if end != self.end:
            self.end, self.end_told = end, []
        self.end_told.append(endpoint)

    def is_unchanged(self, end: tuple[str, Sequence[str]], endpoint: int) -> bool:
        """Return whether the endpoint has already reported up to this head, and two readings of it exist."""
        return bool(end[0]) and end == self.end and endpoint in self.end_told and len(self.end_told) > 1


class Reader:
    """Polls one chain; its memory between polls may be lost without harm.

    It follows either contracts, or wallets, or wallets' transfers of certain coins (`kind`).
    """

    def __init__(self, chain: str, kind: str = CONTRACTS) -> None:
        self.chain: str = chain
        self.kind: str = kind
        self._coins: tuple[str, ...] = ()
        self._memory: _Memory = _Memory()
        self._skipped_logged_at: float = -inf

    def forget(self) -> None:
        """Forget everything, because another process follows the chain or no rule needs it."""
        self._memory = _Memory()

    async def look(
        self, outside: Gateways, stored: Position, addresses: Sequence[str], coins: tuple[str, ...] = ()
    ) -> PollResult:
        """Poll from the stored position. Raises UnreadableTransfers."""
        if coins != self._coins:
            # The earlier readings up to the head did not include all of these coins.
            self._coins, self._memory.end = coins, None
        try:
            return await self._look(outside.transfers, stored, addresses)
        except ProviderError as fault:
            if self._memory.failing_since is None:
                self._memory.failing_since = asyncio.get_running_loop().time()
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
        if not missed and self._memory.is_unchanged((newest.block_hash, addresses), endpoint):
            # The same head means the same chain: only the head is read until there is another block.
            last, reported, news, position = head, head, set[Transfer](), stored
        else:
            if missed or stored.block == 0:
                stored = await self._beginning(transfers, head, endpoint)
            last = min(head, stored.block + self._memory.reach.get(endpoint, AT_ONCE))
            # The settled block's hash is read before the logs, so that a reorganisation in between is detected by this
            # poll or the next: the hash may be older than the logs, never newer.
            position = await self._reached(transfers, stored, head, last, endpoint)
            still_there, read = await asyncio.gather(
                is_on_chain(transfers, self.chain, stored, endpoint),
                self._read(transfers, addresses, stored.block + 1, last, endpoint),
            )
            if not still_there:
                log.warning("block replaced, reading back chain=%s block=%s", self.chain, stored.block)
                position = stored = read_back_from(stored)
                last = min(head, stored.block + AT_ONCE)
                read = await self._read(transfers, addresses, stored.block + 1, last, endpoint)
            self._pace(endpoint, stored.block, last, read.last)
            last, excessive = read.last, read.excessive
            if position.block > last:
                position = stored  # the hash is of a block that this poll did not reach; the next one asks for less
            found = read.transfers
            doubtful = self._memory.seen.doubtful(found, stored.block + 1, last)
            doubts = await ask_about(transfers, self.chain, doubtful, endpoint)
            news = self._memory.seen.news(found, doubts.replaced, last)
            if last == head and not doubts.lacking:
                self._memory.note_reported((newest.block_hash, addresses), endpoint)
            reported = min([last, *(block - 1 for block in doubts.lacking)])
        self._note(endpoint, newest, reported)
        self._memory.failing_since = None
        rights = {one for one in news if one.contract == registry_on(self.chain)}
        given = tuple(sorted((one.receiver, one.block) for one in rights)) if self.kind == CONTRACTS else ()
        return PollResult(position, self._newest_head(), self._moved(news), given, excessive, last < head, missed)

    def _endpoints(self, transfers: TransferLogs) -> Sequence[int]:
        """Return the nodes that can be asked. Raises ProviderRefused if there is none."""
        count = transfers.endpoints(self.chain)
        if self.kind != WALLETS:
            return range(max(1, count))
        if not (found := transfers.for_wallets(self.chain)):
            reason = "no node gives logs of wallets, only of contracts that are named"
            raise ProviderRefused(CHAINS[self.chain].title, reason, status=200)
        return found

    def _pace(self, endpoint: int, begin: int, planned: int, reached: int) -> None:
        """Adapt the size of polls to what the node manages: the position is planned before the result is known."""
        if reached < planned:
            self._memory.reach[endpoint] = max(1, reached - begin)
        elif endpoint in self._memory.reach:
            wider = 2 * self._memory.reach.pop(endpoint)
            if wider < AT_ONCE:
                self._memory.reach[endpoint] = wider

    def _moved(self, news: set[Transfer]) -> tuple[Moved, ...]:
        named = self.kind != WALLETS
        return tuple(
            sorted(
                Moved(one.contract if named else ANY, who, one.block)
                for one in news
                for who in (one.sender, one.receiver)
                if who != NOBODY
            )
        )

    def _missed(self, stored: Position, head: int) -> bool:
        """Return whether so many blocks came while nobody read them that they are skipped."""
        since = self._memory.failing_since
        if since is None or stored.block == 0:
            return False
        behind = (head - stored.block) * CHAINS[self.chain].block_seconds
        return min(behind, asyncio.get_running_loop().time() - since) > MOST_BEHIND_SECONDS

    async def _beginning(self, transfers: TransferLogs, head: int, endpoint: int) -> Position:
        """Return the first position, so far behind the head that a rule created since the last poll is covered.

        Raises ProviderConfused if the node does not have the head that it reported.
        """
        before = BEFORE_THE_HEAD_SECONDS + min(settings().follow_pace(self.chain), MOST_BEHIND_SECONDS)
        block = max(1, head - ceil(before / CHAINS[self.chain].block_seconds))
        name = await transfers.block_hash(self.chain, block, endpoint)
        if name is None and await transfers.block_hash(self.chain, head, endpoint) is None:
            raise ProviderConfused(CHAINS[self.chain].title, f"a node names the head {head}, which it does not have")
        return Position(block, name or "")

    async def _back(
        self, transfers: TransferLogs, stored: Position, endpoint: int, endpoints: Sequence[int]
    ) -> PollResult | None:
        """Return a result that moves back to the chain's head, if all nodes have long been behind the position.

        Such a position came from a wrong head. Returns None before that.
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
        log.warning("moved back to the head chain=%s from=%d to=%d", self.chain, stored.block, position.block)
        self.forget()
        return PollResult(position, newest.block, missed=True, went_back=True)

    def _next(self, endpoints: Sequence[int]) -> int:
        self._memory.turn += 1
        clock = asyncio.get_running_loop().time()
        unanswered = self._memory.unanswered
        for endpoint in endpoints:
            unanswered.setdefault(endpoint, inf)
        for endpoint in unanswered.keys() - set(endpoints):
            del unanswered[endpoint]
        found = endpoints[self._memory.turn % len(endpoints)]
        unanswered[found] = min(unanswered[found], clock)
        return found

    async def _reached(
        self, transfers: TransferLogs, stored: Position, head: int, last: int, endpoint: int
    ) -> Position:
        """Return the settled position after the endpoint has reported everything up to `last`.

        A block that the endpoint lacks is not settled: a position without a hash could not be compared with the chain.
        """
        confirmed = head - CHAINS[self.chain].confirmations
        reports = self._reports(endpoint)
        lower = min([last, confirmed, *(one.confirmed for one in reports)])
        settled = min([last, confirmed, *(one.last for one in reports)])
        # A node may have reported blocks that the chain has replaced since. Its report ends in its head, so the hash of
        # that block, which is read anyway, shows whether it did.
        told = {one.block_hash if one.last == settled else "" for one in reports if one.confirmed < settled}
        for block in (settled, lower - LOOKED_BACK) if "" not in told else (lower,):
            if block <= stored.block:
                break
            name = await transfers.block_hash(self.chain, block, endpoint)
            if block <= lower or told <= {name}:
                return Position(block, name) if name else stored
        return stored

    def _reports(self, endpoint: int) -> list[_Report]:
        """Return the last reports of the other nodes that answer; a node that is alone counts as two."""
        memory, clock = self._memory, asyncio.get_running_loop().time()
        others = [one for one, since in memory.unanswered.items() if one != endpoint and clock - since < WAITED_FOR]
        return [memory.reports.get(one, _Report()) for one in others or [endpoint]]

    def _newest_head(self) -> int:
        """Return the newest head in the nodes' last reports, so that a lagging node hides nothing."""
        clock, owing = asyncio.get_running_loop().time(), self._memory.unanswered
        return max(
            head for one, (head, at) in self._memory.heads.items()
            if clock - at < WAITED_FOR or owing.get(one) == inf
        )  # fmt: skip

    def _note(self, endpoint: int, newest: Head, last: int) -> None:
        """Record that the node, whose head is `newest`, has reported everything up to `last`."""
        self._memory.unanswered[endpoint] = inf
        confirmed = min(last, newest.block - CHAINS[self.chain].confirmations)
        name = newest.block_hash if last == newest.block else ""
        self._memory.reports[endpoint] = _Report(last, name, confirmed)

    async def _read(
        self, transfers: TransferLogs, addresses: Sequence[str], first: int, last: int, endpoint: int
    ) -> LogRead:
        if self.kind == COINS:
            read = await transfers.of_coins(self.chain, self._coins, addresses, first, last, endpoint)
        else:
            ask = transfers.of_contracts if self.kind == CONTRACTS else transfers.of_wallets
            read = await ask(self.chain, addresses, first, last, endpoint)
        clock = asyncio.get_running_loop().time()
        if read.skipped and clock - self._skipped_logged_at >= SKIPPED_LOGGED_EVERY:
            self._skipped_logged_at = clock
            count = sum(read.skipped.values())
            log.info(
                "skipped logs of a wrong shape chain=%s logs=%d contracts=%d", self.chain, count, len(read.skipped)
            )
        return read


class WalletReader:
    """Reads the logs that name members' wallets, at most `most` of them in each poll, in turn.

    With the kind COINS, it reads only the logs of certain coins.
    """

    def __init__(self, chain: str, most: int, kind: str = WALLETS) -> None:
        self.chain: str = chain
        self.kind: str = kind
        self._most: int = most
        self._readers: list[Reader] = []
        self._positions: list[Position] = []
        self._turn: int = 0

    @property
    def slices(self) -> int:
        """Return the number of polls that cover all wallets."""
        return max(1, len(self._readers))

    def forget(self) -> None:
        """Forget everything, because another process follows the chain or no rule needs it."""
        self._readers = []

    async def look(
        self, outside: Gateways, stored: Position, addresses: Sequence[str], coins: tuple[str, ...] = ()
    ) -> PollResult:
        """Poll one slice; the position is that of the slice furthest behind. Raises UnreadableTransfers."""
        slices = max(1, ceil(len(addresses) / self._most))
        if slices != len(self._readers):
            self._readers = [Reader(self.chain, self.kind) for _ in range(slices)]
            self._positions = [stored] * slices
        if slices == 1:
            self._positions = [stored]
        turn = self._turn = (self._turn + 1) % slices
        part = addresses if slices == 1 else tuple(one for one in addresses if crc32(one.encode()) % slices == turn)
        look = await self._readers[turn].look(outside, self._positions[turn], part, coins)
        if look.missed or self._positions[turn].block == 0:
            # The other slices begin at the same position; earlier blocks belong to none.
            self._positions = [look.position] * slices
        self._positions[turn] = look.position
        return replace(look, position=min(self._positions, key=lambda position: position.block))
