"""Reads balances from nodes without state override: by Multicall3's aggregate3, or by JSON-RPC batches."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from secrets import randbelow

from gateways.chains.balance_sheet import NATIVE_ADDRESS, Asked
from gateways.chains.costly_contracts import CostlyContracts
from gateways.evm.balances import aggregate3
from gateways.evm.balances.aggregate3 import GET_BLOCK_NUMBER, GET_CHAIN_ID
from gateways.evm.balances.program_reads import AT_ONCE, NothingCame
from gateways.evm.rpc.errors import NodeTimedOut, Reverted, RpcRefused, TooMuch
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.transport.errors import ProviderConfused, ProviderError
from gateways.transport.exchanges import together

AGGREGATE_CHECKS = 1_000
BATCH_CHECKS = 100
GIVE_UP_BELOW = 16
STRIKES = 3
"""Calls of the smallest size that fail before a contract is left out."""

BALANCE_OF = bytes.fromhex("70a08231") + bytes(12)
# Selectors: docs/facts.md#token-standards, docs/facts.md#multicall3.
GET_ETH_BALANCE = bytes.fromhex("4d2301cc") + bytes(12)
IS_ERC165 = bytes.fromhex("01ffc9a7") + bytes.fromhex("01ffc9a7") + bytes(28)
TOTAL_SUPPLY = bytes.fromhex("18160ddd")
NATIVE = bytes.fromhex(NATIVE_ADDRESS[2:])
NEVER_EMPTY = ("0x" + 20 * "00", "0x" + 18 * "00" + "dead", "0x" + 19 * "00" + "01")
"""Addresses to which lost or burnt coins were sent on every chain; a node that finds none there is not believed."""


@dataclass(frozen=True, slots=True)
class Range:
    """A contract of a segment and some of the segment's owners."""

    asked: Asked
    contract: int
    start: int
    stop: int

    @property
    def address(self) -> bytes:
        """The contract's address."""
        return self.asked.contract(self.contract)

    @property
    def size(self) -> int:
        """How many owners."""
        return self.stop - self.start

    def owners(self) -> Iterator[bytes]:
        """Yield the owners, 20 bytes each."""
        for at in range(self.start, self.stop):
            yield self.asked.owners[at * 20 : at * 20 + 20]

    def note(self, amounts: Iterable[int | None]) -> None:
        """Store the owners' amounts."""
        for owner, amount in zip(range(self.start, self.stop), amounts, strict=True):
            self.asked.cells.put(self.contract, owner, amount)


Ask = Callable[[Sequence[Range]], Awaitable[None]]
"""Asks about all pairs of some ranges in one request, and stores the amounts."""


@dataclass(slots=True)
class FallbackRead:
    """A read of all segments in requests of one size, halved when they are too much: the part that both ways share.

    Balances of the chain's own coin come from Multicall3 itself, or from `eth_getBalance`.
    """

    node: Node
    head: Head
    asked: Sequence[Asked]
    costly: CostlyContracts = field(default_factory=CostlyContracts)
    """Records the contracts for which even the smallest request fails."""
    strikes: Counter[bytes] = field(default_factory=Counter[bytes])

    async def by_multicall(self, multicall: str) -> None:
        """Read by aggregate3; two canaries, the chain's id first and the block's number last, must be right."""

        async def ask(ranges: Sequence[Range]) -> None:
            amounts = iter(await self._aggregate(multicall, ranges))
            for one in ranges:
                one.note(islice(amounts, one.size))

        await self._each(ask, AGGREGATE_CHECKS, 0)

    async def by_batches(self) -> None:
        """Read by JSON-RPC batches, with a question to each contract whose answer is known: that it supports ERC-165.

        A coin must state a supply instead, and the addresses of NEVER_EMPTY must have some of the chain's own coin. The
        amounts of a contract that answers otherwise stay unknown. Raises ProviderConfused when all contracts do.
        """
        believed = set[bytes]()

        async def ask(ranges: Sequence[Range]) -> None:
            believed.update(await self._batch(ranges))

        await self._each(ask, BATCH_CHECKS + 1, 1)
        if not believed:
            raise ProviderConfused(self.node.name, "no contract answers what is known about it")

    async def _each(self, ask: Ask, size: int, for_each_contract: int) -> None:
        """Ask about everything, in requests of `size` questions that include `for_each_contract` for each contract."""
        everything = list(self._requests(size, for_each_contract))
        # Begin at a random request: where the time ends too early, it is not always the same amounts that stay unknown.
        first = randbelow(max(1, len(everything)))
        requests = iter([*everything[first:], *everything[:first]])

        async def worker() -> None:
            for ranges in requests:
                await self._halving(ask, ranges)

        await together(worker() for _ in range(AT_ONCE))

    def _requests(self, size: int, for_each_contract: int) -> Iterator[list[Range]]:
        """Yield requests that cover all pairs; the ranges of one contract follow one another."""
        everything = [
            Range(asked, contract, 0, asked.cells.owners)
            for asked in self.asked
            for contract in range(asked.cells.contracts)
        ]
        everything.sort(key=lambda one: one.address)
        ranges, room, last = list[Range](), size, b""
        for one in everything:
            start = one.start
            while start < one.stop:
                lead = for_each_contract if one.address != last else 0
                if room <= lead:
                    yield ranges
                    ranges, room, last = [], size, b""
                    continue
                stop = min(one.stop, start + room - lead)
                ranges.append(replace(one, start=start, stop=stop))
                room, last, start = room - lead - (stop - start), one.address, stop
        if ranges:
            yield ranges

    async def _halving(self, ask: Ask, ranges: Sequence[Range]) -> None:
        """Ask about the ranges, in halves if they are too much; amounts stay unknown if the smallest request fails."""
        ranges = [one for one in ranges if self.strikes[one.address] < STRIKES]
        if not ranges:
            return
        try:
            await ask(ranges)
        except (TooMuch, NodeTimedOut, Reverted):
            contracts = {one.address for one in ranges}
            if len(contracts) == 1 and sum(one.size for one in ranges) <= GIVE_UP_BELOW:
                self.strikes.update(contracts)
                for address in contracts:
                    if self.strikes[address] == STRIKES:
                        self.costly.note(address)
                return
            for half in _halves(ranges):
                await self._halving(ask, half)

    async def _aggregate(self, multicall: str, ranges: Sequence[Range]) -> list[int | None]:
        name, itself = self.node.name, bytes.fromhex(multicall[2:])
        calls = [(itself, GET_CHAIN_ID)]
        for one in ranges:
            place, question = (itself, GET_ETH_BALANCE) if one.address == NATIVE else (one.address, BALANCE_OF)
            calls += [(place, question + owner) for owner in one.owners()]
        calls.append((itself, GET_BLOCK_NUMBER))
        params = ({"to": multicall, "data": "0x" + aggregate3.pack(calls).hex()}, hex(self.head.block))
        said = binary(name, await patiently(self.node, "eth_call", params))
        if not said:
            raise NothingCame(name, "nothing where an aggregate should be")
        chain, *amounts, block = aggregate3.read_numbers(name, said, len(calls))
        aggregate3.check(self.node, self.head, chain, block)
        return amounts

    async def _batch(self, ranges: Sequence[Range]) -> set[bytes]:
        """Ask about some ranges and store the amounts; return the contracts that gave the answer known about them."""
        block = hex(self.head.block)
        known = {one.address: _known_of(one) for one in ranges}
        questions = [(address, question) for address, some in known.items() for question in some]
        owners = [(one.address, owner) for one in ranges for owner in one.owners()]
        asked = [*questions, *((to, owner if to == NATIVE else BALANCE_OF + owner) for to, owner in owners)]
        results = await self.node.batch([_question(to, data, block) for to, data in asked])
        believed = set[bytes]()
        for (address, question), canary in zip(questions, results, strict=False):
            if isinstance(canary, ProviderError) and not isinstance(canary, RpcRefused):
                raise canary
            if (said := _number(address, canary)) == 1 or (said and question != IS_ERC165):
                believed.add(address)
        words = (_number(address, said) for (address, _), said in zip(owners, results[len(questions) :], strict=True))
        for one in ranges:
            amounts = list(islice(words, one.size))
            if one.address == NATIVE and any(amounts):
                believed.add(NATIVE)
            if one.address in believed:
                one.note(amounts)
        return believed


def _halves(ranges: Sequence[Range]) -> tuple[list[Range], list[Range]]:
    """Return the ranges in two parts with about as many pairs each."""
    if len(ranges) > 1:
        middle = len(ranges) // 2
        return [*ranges[:middle]], [*ranges[middle:]]
    (one,) = ranges
    middle = (one.start + one.stop) // 2
    return [replace(one, stop=middle)], [replace(one, start=middle)]


def _known_of(one: Range) -> list[bytes]:
    """Return the questions whose answers are known: call data, or for the chain's own coin addresses that have some."""
    if one.address == NATIVE:
        return [bytes.fromhex(address[2:]) for address in NEVER_EMPTY]
    return [TOTAL_SUPPLY if one.address in one.asked.coins else IS_ERC165]


def _question(address: bytes, data: bytes, block: str) -> tuple[str, tuple[object, ...]]:
    """Return a call as method and parameters; for the chain's own coin, `data` is the address to get the balance of."""
    if address == NATIVE:
        return "eth_getBalance", ("0x" + data.hex(), block)
    return "eth_call", ({"to": "0x" + address.hex(), "data": "0x" + data.hex()}, block)


def _number(address: bytes, result: object) -> int | None:
    return _quantity(result) if address == NATIVE else _word(result)


def _quantity(result: object) -> int | None:
    """Return a quantity without leading zeros (0x0 for zero) as a number; None for anything else."""
    if not isinstance(result, str) or not re.fullmatch(r"0x(0|[1-9a-f][0-9a-f]{0,63})", result):
        return None
    return int(result, 16)


def _word(result: object) -> int | None:
    """Return a result of exactly 32 bytes as a number; None for anything else."""
    if not isinstance(result, str) or len(result) != 66 or not result.startswith("0x"):
        return None
    try:
        return int.from_bytes(bytes.fromhex(result[2:]), "big")
    except ValueError:
        return None
