"""Searches one node's logs for tokens that owners received: in pieces that the node takes, as long as there is time."""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import cast

from gateways.chains.chain_file import Chain
from gateways.chains.token_sheet import MOST_IDS_KEPT, TokenHints
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.block_ranges import RANGE_REMEMBERED
from gateways.evm.rpc.errors import NodeTimedOut, Pruned, StateMissing
from gateways.evm.rpc.log_refusals import about_range, too_much
from gateways.evm.rpc.node import Head, Node, binary, quantity, stale_seconds
from gateways.evm.rpc.old_logs import REMEMBERED, OldLogs
from gateways.evm.rpc.stated_limits import stated_blocks
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.transport import question_time
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderConfused, ProviderError, ProviderRefused
from locales import N_
from locales.stored_texts import storable

_RECEIVER = {TRANSFER: 2, TRANSFER_SINGLE: 3, TRANSFER_BATCH: 3, CONSECUTIVE: 3}
"""Which topic is the owner that the tokens came to."""

UNTRIED = 1 << 40
"""Blocks in a piece while the node has refused none: more than any chain has."""
OWNERS_A_QUERY = 500
"""Owners in one request; geth takes at most 1,000 values for one topic."""
SETTLED = 64
"""Blocks before the head that are searched again the next time, since they may yet be replaced. See `unsettled`."""
PAUSES = (0.0, 0.2, 0.5)
"""Seconds before each request for the newest logs: a node that does not have the last block is asked again."""
MOST_PIECES = 20_000
"""A node that would need more requests than this for a chain's history is not asked for it at all."""
PIECES_A_LOOK = 400
"""The most requests in one search; the next search continues from there."""
TRIED_AGAIN_AFTER = 20
"""Pieces of the greatest size in a row after which a greater one is tried."""


def unsettled(chain: Chain) -> int:
    """Return how many blocks before the head are searched again the next time.

    They may yet be replaced, and where blocks come fast, one of a node's machines may lag by more than SETTLED blocks.
    """
    return max(SETTLED, math.ceil(stale_seconds(chain) / chain.block_seconds))


class IdSpans:
    """Consecutive ids that were read, as separate spans in order.

    Anybody can send ten thousand events in a block to anybody's wallet, each of which names thousands of tokens and
    most of them again (ERC-2309).
    """

    def __init__(self) -> None:
        self._firsts = list[int]()
        self._lasts = list[int]()

    def fresh(self, first: int, last: int) -> list[range]:
        """Add the ids from `first` to `last`, and return those that were not there, in order."""
        begin = end = bisect_left(self._lasts, first)
        found, upto = list[range](), first
        while end < len(self._firsts) and self._firsts[end] <= last:
            found.append(range(upto, self._firsts[end]))
            upto = self._lasts[end] + 1
            end += 1
        found.append(range(upto, last + 1))
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        if first <= last:
            self._firsts[begin:end], self._lasts[begin:end] = [first], [last]
        return [one for one in found if one]


@dataclass(slots=True)
class HistorySearch:
    """One search in progress; `low` and `high` are each owner's first and last searched block, none if low > high."""

    contract: str
    """Empty for every contract; the ids that are found then read "contract:id"."""
    topics: Sequence[str]
    """The first topics of the events that bring tokens to an owner."""
    head: Head
    until: float
    """Loop time at which no further piece is begun."""
    pieces: int
    """How many more pieces may be asked for."""
    low: dict[str, int] = field(default_factory=dict[str, int])
    high: dict[str, int] = field(default_factory=dict[str, int])
    found: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    seen: dict[tuple[str, str], IdSpans] = field(default_factory=dict[tuple[str, str], IdSpans])
    """By owner and contract, the consecutive ids that were read."""

    def complete(self, owner: str) -> bool:
        """Return whether the whole history up to the head was searched and nothing had to be left out."""
        whole = self.low[owner] == 0 and self.high[owner] >= self.head.block
        return whole and len(self.found[owner]) < MOST_IDS_KEPT


class LogReader:
    """One node's logs, and how many blocks of them it gives at a time."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._old = OldLogs(node, TRANSFER)
        self._most = self._ceiling = UNTRIED
        self._in_a_row = 0
        self._gone, self._there, self._gone_until = -1, UNTRIED, 0.0
        """The newest block found pruned, the oldest found there, and until when (monotonic seconds) both count."""
        self._until = 0.0
        """Until when (monotonic seconds) no larger pieces are tried, because the node refused the number of blocks."""
        self._tried_until = 0.0
        """Until when (monotonic seconds) it counts that every size was tried again."""

    async def search(
        self,
        contract: str,
        many: bool,
        owners: Sequence[str],
        trails: dict[str, TokenHints],
        head: Head,
        until: float,
        pieces: int | None = None,
    ) -> tuple[set[str], str]:
        """Search for one contract's tokens that came to these owners, newest blocks first, and update their trails.

        `many` is true for ERC-1155. An empty `contract` stands for every contract. Returns the owners whose history is
        complete, and the reason why that of the others is not.
        """
        if monotonic() >= max(self._until, self._tried_until) and head.block // self._most > MOST_PIECES:
            # The node may have refused every size only because it failed for a while.
            self._most = self._ceiling = UNTRIED
            self._tried_until = monotonic() + REMEMBERED
        if self._most == UNTRIED and (known := node_limits.known(self.node.url).log_blocks):
            self._most = self._ceiling = known
            self._until = monotonic() + RANGE_REMEMBERED
        topics = (TRANSFER_SINGLE, TRANSFER_BATCH) if many else (TRANSFER, CONSECUTIVE)
        if not contract:
            topics = tuple(_RECEIVER)
        search, here = HistorySearch(contract, topics, head, until, pieces or PIECES_A_LOOK), self.node.mark
        for owner in owners:
            trail = trails.get(owner, TokenHints())
            search.low[owner], search.high[owner] = trail.searched.get(here, (head.block + 1, head.block))
            search.found[owner] = set(trail.ids)
        reason = N_("its history has not been searched in full yet")
        try:
            await self._forward(search)
            await self._backward(search)
        except ProviderError as fault:
            reason = _unsearched(fault)
        complete = {owner for owner in owners if search.complete(owner)}
        try:
            if complete:
                await self._old.check(head)
        except ProviderError as fault:
            reason, complete = _unsearched(fault), set[str]()
            if isinstance(fault, StateMissing):
                # The node's address may lead to another node one day, so nothing counts as searched.
                search.low = dict.fromkeys(owners, head.block + 1)
        for owner in owners:
            trail = trails.get(owner, TokenHints()).with_ids(sorted(search.found[owner]))
            searched = {node: span for node, span in trail.searched.items() if node != here}
            low, high = search.low[owner], min(search.high[owner], head.block - unsettled(self.node.chain))
            if low <= high:
                searched[here] = (low, high)
            trails[owner] = TokenHints(trail.ids, searched)
        return complete, reason

    async def _forward(self, search: HistorySearch) -> None:
        """Search from where earlier searches ended to the head."""
        behind = sorted((high, owner) for owner, high in search.high.items() if high < search.head.block)
        for group in chunks([owner for _, owner in behind], OWNERS_A_QUERY):
            start = min(search.high[owner] for owner in group) + 1
            while start <= search.head.block and self._time_left(search):
                end = min(search.head.block, start + self._most - 1)
                if await self._piece(search, group, start, end):
                    for owner in group:
                        search.high[owner] = max(search.high[owner], end)
                    start = end + 1

    async def _backward(self, search: HistorySearch) -> None:
        """Search from where earlier searches began back to the chain's first block, or to the oldest that is there."""
        if monotonic() >= self._gone_until:
            self._gone, self._there = -1, UNTRIED
        is_pruned = False
        missing = sorted(
            (-low, owner) for owner, low in search.low.items() if low > 0 and search.high[owner] >= search.head.block
        )
        for group in chunks([owner for _, owner in missing], OWNERS_A_QUERY):
            end = max(search.low[owner] for owner in group) - 1
            while end > self._gone and self._time_left(search):
                if end // self._most > MOST_PIECES:
                    few = f"it gives logs of {self._most} blocks at a time"
                    raise ProviderRefused(self.node.name, few, status=200)
                start = self._start(end)
                try:
                    if not await self._piece(search, group, start, end):
                        continue
                except Pruned:
                    self._gone, self._gone_until = start, monotonic() + REMEMBERED
                    continue
                for owner in group:
                    search.low[owner] = min(search.low[owner], start)
                self._there, end = min(self._there, start), start - 1
            is_pruned = is_pruned or 0 <= end <= self._gone
        if is_pruned:
            raise Pruned(self.node.name, f"it does not have the logs before block {self._gone + 1} any more")

    def _start(self, end: int) -> int:
        """Return the first block of the piece that ends with this one.

        Where its first block would be pruned, it is the oldest block that is known to be there, or else one half way.
        """
        start = max(0, end - self._most + 1)
        if start > self._gone:
            return start
        return self._there if self._gone < self._there <= end else (self._gone + end) // 2 + 1

    @staticmethod
    def _time_left(search: HistorySearch) -> bool:
        return search.pieces > 0 and question_time.now() < search.until

    async def _piece(self, search: HistorySearch, owners: Sequence[str], start: int, end: int) -> bool:
        """Read one piece; return False if it was too much for the node and a smaller one must be tried."""
        padded = ["0x" + "0" * 24 + owner[2:] for owner in owners]
        # One request for all events that have the owner in the same topic.
        places = dict.fromkeys(_RECEIVER[topic] for topic in search.topics)
        filters = [
            [[topic for topic in search.topics if _RECEIVER[topic] == place], *[None] * (place - 1), padded]
            for place in places
        ]
        where = {"fromBlock": hex(start), "toBlock": hex(end)}
        if search.contract:
            where["address"] = search.contract
        size = end - start + 1
        search.pieces -= 1
        try:
            logs = [await self._logs(search, {**where, "topics": topics}, end) for topics in filters]
        except ProviderError as fault:
            wants_address = not search.contract and "address" in str(fault).lower()
            if size == 1 or wants_address or not too_much(fault):
                raise
            stated = stated_blocks(str(fault))
            fewer = max(1, size // (8 if isinstance(fault, NodeTimedOut) else 2))
            self._most = self._ceiling = stated if stated is not None and stated < size else fewer
            self._in_a_row, self._until = 0, monotonic() + RANGE_REMEMBERED if about_range(fault) else 0.0
            if about_range(fault) and self._most == stated and search.contract:
                node_limits.note(self.node.url, log_blocks=stated)
            return False
        for answer in logs:
            self._read(search, answer, set(owners), start, end)
        self._grow(size)
        return True

    async def _logs(self, search: HistorySearch, wanted: Mapping[str, object], end: int) -> object:
        """Return the node's answer to one request for logs up to block `end`. Raises ProviderError.

        Behind one address there may be several machines. One that lags refuses blocks that it lacks, or gives no logs
        of them and no error, so near the head it has to name its newest block in the same request.
        """
        if end <= search.head.block - unsettled(self.node.chain):
            return await self.node.call("eth_getLogs", (wanted,))
        for pause in PAUSES:
            await asyncio.sleep(pause)
            answers = await self.node.batch([("eth_blockNumber", ()), ("eth_getLogs", (wanted,))])
            if any(isinstance(answer, StateMissing) and not isinstance(answer, Pruned) for answer in answers):
                continue
            for answer in answers:
                if isinstance(answer, ProviderError):
                    raise answer
            newest, logs = answers
            if quantity(self.node.name, newest) >= end:
                return logs
        raise StateMissing(self.node.name, "it does not have the newest blocks yet")

    def _grow(self, size: int) -> None:
        """Ask for larger pieces after one that went well: up to the size that was refused, and sometimes beyond."""
        if size < self._most:
            return
        self._in_a_row += 1
        if self._in_a_row >= TRIED_AGAIN_AFTER and monotonic() >= self._until:
            self._ceiling, self._in_a_row = self._ceiling * 2, 0
        self._most = min(self._most * 2, self._ceiling)

    def _read(self, search: HistorySearch, logs: object, owners: set[str], start: int, end: int) -> None:
        if not isinstance(logs, list):
            raise ProviderConfused(self.node.name, "the logs are not a list")
        for item in cast("list[object]", logs):
            log = cast("dict[str, object]", item) if isinstance(item, dict) else {}
            contract = str(log.get("address")).lower()
            if search.contract and contract != search.contract:
                raise ProviderConfused(self.node.name, "a log of another contract")
            if not start <= quantity(self.node.name, log.get("blockNumber")) <= end:
                raise ProviderConfused(self.node.name, "a log of another block")
            topics = log.get("topics")
            names = [str(one).lower() for one in cast("list[object]", topics)] if isinstance(topics, list) else []
            if len(names) != 4 or names[0] not in search.topics:
                continue  # an ERC-20's transfer, for example
            owner = "0x" + names[_RECEIVER[names[0]]][-40:]
            if owner in owners:
                prefix, found = "" if search.contract else f"{contract}:", search.found[owner]
                seen = search.seen.setdefault((owner, contract), IdSpans())
                for one in self._ids(names, log.get("data"), seen):
                    # A search that found so many is not complete in any case.
                    if len(found) >= MOST_IDS_KEPT:
                        break
                    found.add(prefix + one)

    def _ids(self, topics: Sequence[str], data: object, seen: IdSpans) -> Iterable[str]:
        if topics[0] == TRANSFER:
            return (str(quantity(self.node.name, topics[3])),)
        said = binary(self.node.name, data)
        if topics[0] == CONSECUTIVE:
            begin, last = quantity(self.node.name, topics[1]), int.from_bytes(said[:32], "big")
            return map(str, chain.from_iterable(seen.fresh(begin, min(last, begin + MOST_IDS_KEPT))))
        words = [int.from_bytes(said[at : at + 32], "big") for at in range(0, len(said) - 31, 32)]
        if topics[0] == TRANSFER_SINGLE:
            return map(str, words[:1])
        # Two lists. Of the first: its offset, then at that place its length and its items.
        begin = words[0] // 32 if words else len(words)
        return map(str, words[begin + 1 : begin + 1 + words[begin]] if begin < len(words) else ())


def _unsearched(fault: ProviderError) -> str:
    return storable("its history could not be searched ({reason})", reason=str(fault))
