"""Combine the balance requests of many servers into one per chain, and split the answer by server."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateways.chains.balance_sheet import BalanceSheet, Cells, Segment, packed
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.evm.client import Chains
from gateways.evm.rpc.node import Head
from gateways.solana.balances import SolanaBalances
from gateways.transport.errors import ProviderConfused, ProviderError

MOST_WEIGHT = 32_000
"""Maximum weight of one request, so that making and reading it does not block the event loop. A balance weighs 1."""
OF_A_SERVER, OF_A_CONTRACT = 16, 4
"""Weights of a server and of each contract that it names, besides the balances."""
AT_ONCE = 4
"""Concurrent requests to one node."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One server's request, and where its answer is delivered."""

    contracts: tuple[str, ...]
    owners: tuple[str, ...]
    coins: frozenset[str]
    not_before: int
    answer: asyncio.Future[BalanceSheet]

    @property
    def weight(self) -> int:
        """Its weight in a request of at most MOST_WEIGHT."""
        return OF_A_SERVER + len(self.contracts) * (OF_A_CONTRACT + len(self.owners))


class JointBalances:
    """Combines the requests to one chain and node that begin in the same turn of the event loop.

    A thousand servers with four members each then cost as much as one server with four thousand. Many servers make
    several requests of bounded size, the largest last; each server is answered once its own request is. With `settled`
    the answers are of settled blocks.
    """

    def __init__(self, chains: Chains, *, settled: bool = False) -> None:
        self._chains = chains
        self._settled = settled
        self._open: dict[tuple[str, int | None], list[_Asked]] = {}

    async def read(
        self,
        chain: str,
        contracts: tuple[str, ...],
        owners: tuple[str, ...],
        *,
        endpoint: int | None,
        not_before: int,
        coins: frozenset[str] = frozenset(),
    ) -> BalanceSheet:
        """Return how many tokens of each contract each owner holds, at or after block `not_before`.

        `coins` are those of the contracts that usually have large amounts. `endpoint` is the place of the node that
        must answer; None lets any. Raises ProviderError.
        """
        loop = asyncio.get_running_loop()
        group = self._open.get((chain, endpoint))
        if group is None:
            group = self._open[chain, endpoint] = []
            # All callers in this turn of the event loop were scheduled before `_send`.
            loop.call_soon(self._send, chain, endpoint)
        asked = _Asked(contracts, owners, coins, not_before, loop.create_future())
        group.append(asked)
        return await asked.answer

    def _send(self, chain: str, endpoint: int | None) -> None:
        turns = asyncio.Semaphore(AT_ONCE)
        for group in _questions(self._open.pop((chain, endpoint))):
            self._begin(chain, endpoint, group, turns)

    def _begin(self, chain: str, endpoint: int | None, group: Sequence[_Asked], turns: asyncio.Semaphore) -> None:
        """Send a group's request when its turn comes, unless nobody waits for the answer any more."""

        async def ask() -> Sequence[BalanceSheet | Exception]:
            async with turns:
                return await self._ask(chain, endpoint, group)

        asking = asyncio.create_task(ask())
        asking.add_done_callback(lambda done: _deliver(done, group))

        waiting = len(group)

        def stop_if_unwanted(_: object) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                asking.cancel()

        for one in group:
            one.answer.add_done_callback(stop_if_unwanted)

    async def _ask(
        self, chain: str, endpoint: int | None, group: Sequence[_Asked]
    ) -> Sequence[BalanceSheet | Exception]:
        newest = max(one.not_before for one in group)
        try:
            return await self._in_segments(chain, endpoint, group, newest)
        except ProviderError:
            if all(one.not_before == newest for one in group):
                raise
            # One server may have stored a block that no node has. The others' answers need not be as new.
            head = await self._head(chain, endpoint)
            if head is None or head.block >= newest:
                raise
        reachable = [one for one in group if one.not_before <= head.block]
        least = max((one.not_before for one in reachable), default=0)
        sheets = iter(await self._in_segments(chain, endpoint, reachable, least))
        name = CHAINS[chain].title
        return [
            next(sheets)
            if one.not_before <= head.block
            else ProviderConfused(name, f"its head {head.block} is before block {one.not_before}")
            for one in group
        ]

    async def _head(self, chain: str, endpoint: int | None) -> Head | None:
        """Return the newest head of the nodes that answer."""
        nodes = range(self._chains.endpoints(chain)) if endpoint is None else [endpoint]
        said = await asyncio.gather(*(self._chains.head(chain, node) for node in nodes), return_exceptions=True)
        return max((one for one in said if isinstance(one, Head)), key=lambda one: one.block, default=None)

    async def _in_segments(
        self, chain: str, endpoint: int | None, group: Sequence[_Asked], not_before: int
    ) -> Sequence[BalanceSheet]:
        """Ask about equal contracts together, and split the result into the group's shares."""
        alike: dict[tuple[tuple[str, ...], frozenset[str]], list[_Asked]] = {}
        for one in group:
            alike.setdefault((one.contracts, one.coins), []).append(one)
        segments = [Segment(contracts, _owners(some), coins) for (contracts, coins), some in alike.items()]
        if not segments:
            return []
        sheets = await self._chains.balances(chain, segments, at=ReadPoint(endpoint, not_before, self._settled))
        shares: dict[_Asked, BalanceSheet] = {}
        for some, sheet in zip(alike.values(), sheets, strict=True):
            shares.update(zip(some, _shares(sheet, some), strict=True))
        return [shares[one] for one in group]


def _questions(group: Sequence[_Asked]) -> list[list[_Asked]]:
    """Split the group into requests of at most MOST_WEIGHT, or of one heavier server.

    Servers with the same contracts are grouped, because these are asked once. Large requests take long and come last,
    so that small ones do not wait for them.
    """
    made: list[list[_Asked]] = []
    room = 0
    for one in sorted(group, key=lambda one: (one.weight > MOST_WEIGHT, one.contracts)):
        room -= one.weight
        if room < 0 or not made:
            made.append([])
            room = MOST_WEIGHT - one.weight
        made[-1].append(one)
    return made


def _deliver(done: asyncio.Task[Sequence[BalanceSheet | Exception]], group: Sequence[_Asked]) -> None:
    """Deliver its sheet, or the error, to each server of a group."""
    if done.cancelled():
        for one in group:
            one.answer.cancel()
        return
    fault = done.exception()
    said = done.result() if fault is None else [fault] * len(group)
    for one, sheet in zip(group, said, strict=True):
        if one.answer.done():
            continue
        if isinstance(sheet, BalanceSheet):
            one.answer.set_result(sheet)
        else:
            one.answer.set_exception(sheet)


def _owners(some: Sequence[_Asked]) -> tuple[str, ...]:
    if len(some) == 1:
        return some[0].owners
    return tuple(sorted({owner for one in some for owner in one.owners}))


def _shares(sheet: BalanceSheet, some: Sequence[_Asked]) -> list[BalanceSheet]:
    """Split a sheet into one for each asker; a single asker gets the sheet unchanged."""
    if len(some) == 1:
        return [sheet]
    if isinstance(sheet, SolanaBalances):
        # The sheet's owners are texts, and it hides the amounts of owners that are not in `asked`.
        return [replace(sheet, asked=sheet.asked.intersection(one.owners)) for one in some]
    columns = {sheet.owners[at : at + 20]: at // 20 for at in range(0, len(sheet.owners), 20)}
    return [_share(sheet, packed(one.owners), columns) for one in some]


def _share(sheet: BalanceSheet, owners: bytes, columns: dict[bytes, int]) -> BalanceSheet:
    if owners == sheet.owners:
        return sheet
    chosen = [columns[owners[at : at + 20]] for at in range(0, len(owners), 20)]
    cells = Cells(sheet.cells.contracts, len(chosen))
    cells.rows = [bytearray(row[column] for column in chosen) for row in sheet.cells.rows]
    if sheet.cells.large:
        places = {column: place for place, column in enumerate(chosen)}
        cells.large = {
            (contract, places[column]): amount
            for (contract, column), amount in sheet.cells.large.items()
            if column in places
        }
    return BalanceSheet(
        sheet.chain, sheet.block, sheet.block_time, sheet.endpoint, sheet.source, sheet.contracts, owners, cells
    )
