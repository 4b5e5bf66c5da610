"""Reads balances from nodes that know no state override: by Multicall3's aggregate3, or by JSON-RPC batches."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gateways.balance_sheet import MOST, Cells
from gateways.errors import ProviderConfused, ProviderError
from gateways.evm import Head, Node, binary, patiently
from gateways.evm_bulk import AT_ONCE, NothingCame, first_of
from gateways.evm_errors import Reverted, RpcRefused, TookTooLong, TooMuch

AGGREGATE_CHECKS = 1_000
BATCH_CHECKS = 100
GIVE_UP_BELOW = 16
STRIKES = 3
"""So many calls of the smallest size may fail before a contract is let be."""

BALANCE_OF = bytes.fromhex("70a08231") + bytes(12)
# Selectors: external-apis §4.5 and fixtures/evm_constants; getChainId() is Multicall3's own.
AGGREGATE3 = bytes.fromhex("82ad56cb")
GET_CHAIN_ID = bytes.fromhex("3408e470")
GET_BLOCK_NUMBER = bytes.fromhex("42cbb15c")
IS_ERC165 = bytes.fromhex("01ffc9a7") + bytes.fromhex("01ffc9a7") + bytes(28)
ONE = (1).to_bytes(32, "big")

A_NUMBER = ONE + (64).to_bytes(32, "big") + (32).to_bytes(32, "big")
"""How a result that is one number begins, as compilers lay it out: success, where its data are, and their length."""

Ask = Callable[[int, int, int], Awaitable[None]]
"""Ask one contract about a range of owners and note the cells."""


@dataclass(slots=True)
class FallbackRead:
    """What both ways share: a contract at a time, ranges of owners, halved when they are too much."""

    node: Node
    head: Head
    contracts: bytes
    owners: bytes
    cells: Cells

    async def by_multicall(self, multicall: str) -> None:
        """aggregate3 with a canary before and after: the chain's id and the block's number must be right."""

        async def ask(contract: int, start: int, stop: int) -> None:
            answer = await self._aggregate(multicall, contract, start, stop)
            for owner, amount in zip(range(start, stop), answer, strict=True):
                self.cells.put(contract, owner, amount)

        await self._each(ask, AGGREGATE_CHECKS)

    async def by_batches(self) -> None:
        """JSON-RPC batches, each led by a question whose answer is known: the contract does support ERC-165.

        A contract that does not say so is unknown; when none does, the node itself is not believed.
        """
        believed = set[int]()

        async def ask(contract: int, start: int, stop: int) -> None:
            if await self._batch(contract, start, stop):
                believed.add(contract)

        await self._each(ask, BATCH_CHECKS)
        if not believed:
            raise ProviderConfused(self.node.name, "no contract answers what is known about it")

    async def _each(self, ask: Ask, size: int) -> None:
        ranges = iter(
            [
                (contract, start, min(start + size, self.cells.owners))
                for contract in range(self.cells.contracts)
                for start in range(0, self.cells.owners, size)
            ]
        )
        strikes = [0] * self.cells.contracts

        async def worker() -> None:
            for contract, start, stop in ranges:
                await self._halving(ask, contract, start, stop, strikes)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(worker())
        except* ProviderError as faults:
            raise first_of(faults) from None

    async def _halving(self, ask: Ask, contract: int, start: int, stop: int, strikes: list[int]) -> None:
        """Ask; when it is too much, ask both halves; what fails at the smallest size stays unknown."""
        if strikes[contract] >= STRIKES:
            return
        try:
            await ask(contract, start, stop)
        except (TooMuch, TookTooLong, Reverted):
            if stop - start <= GIVE_UP_BELOW:
                strikes[contract] += 1
                return
            middle = (start + stop) // 2
            await self._halving(ask, contract, start, middle, strikes)
            await self._halving(ask, contract, middle, stop, strikes)

    def _address(self, contract: int) -> bytes:
        return self.contracts[contract * 20 : contract * 20 + 20]

    def _questions(self, start: int, stop: int) -> Iterator[bytes]:
        for at in range(start, stop):
            yield BALANCE_OF + self.owners[at * 20 : at * 20 + 20]

    async def _aggregate(self, multicall: str, contract: int, start: int, stop: int) -> list[int | None]:
        name, target = self.node.name, self._address(contract)
        itself = bytes.fromhex(multicall[2:])
        calls = [(itself, GET_CHAIN_ID), *((target, data) for data in self._questions(start, stop))]
        calls.append((itself, GET_BLOCK_NUMBER))
        params = ({"to": multicall, "data": "0x" + pack_aggregate3(calls).hex()}, hex(self.head.block))
        said = binary(name, await patiently(self.node, "eth_call", params))
        if not said:
            raise NothingCame(name, "nothing where an aggregate should be")
        results = read_aggregate3(name, said, len(calls))
        chain, block = results[0], results[-1]
        if chain != self.node.chain.chain_id or not block:
            raise ProviderConfused(name, "the aggregate lacks its mark")
        if block != self.head.block and not self.node.chain.l1_block_number:
            raise ProviderConfused(name, "the aggregate is of another block")
        return results[1:-1]

    async def _batch(self, contract: int, start: int, stop: int) -> bool:
        """Ask and note one range; whether the contract said what is known about it."""
        target, block = "0x" + self._address(contract).hex(), hex(self.head.block)
        questions = (IS_ERC165, *self._questions(start, stop))
        results = await self.node.batch(
            [("eth_call", ({"to": target, "data": "0x" + data.hex()}, block)) for data in questions]
        )
        canary = results[0]
        if isinstance(canary, ProviderError) and not isinstance(canary, RpcRefused):
            raise canary
        if _word(canary) != 1:
            return False
        for owner, result in zip(range(start, stop), results[1:], strict=True):
            self.cells.put(contract, owner, _word(result))
        return True


def _word(result: object) -> int | None:
    """A result of exactly 32 bytes as a number; None for everything else."""
    if not isinstance(result, str) or len(result) != 66 or not result.startswith("0x"):
        return None
    try:
        return int.from_bytes(bytes.fromhex(result[2:]), "big")
    except ValueError:
        return None


def _uint(value: int) -> bytes:
    return value.to_bytes(32, "big")


def pack_aggregate3(calls: list[tuple[bytes, bytes]]) -> bytes:
    """Call data of aggregate3((address target, bool allowFailure, bytes callData)[]), failures allowed."""
    offsets, bodies, place = list[bytes](), list[bytes](), 32 * len(calls)
    for target, data in calls:
        body = _before(target, len(data)) + data + bytes(-len(data) % 32)
        offsets.append(_uint(place))
        bodies.append(body)
        place += len(body)
    return b"".join((AGGREGATE3, _uint(32), _uint(len(calls)), *offsets, *bodies))


@lru_cache(maxsize=8)
def _before(target: bytes, size: int) -> bytes:
    """What stands before the call data of a call; thousands in a row have the same."""
    return b"".join((bytes(12), target, ONE, _uint(96), _uint(size)))


def read_aggregate3(provider: str, answer: bytes, count: int) -> list[int | None]:
    """The results (bool success, bytes returnData)[] as numbers; None where a call failed or was not 32 bytes.

    ProviderConfused when the answer is not such a list of `count` results.
    """

    def number(at: int) -> int:
        if at < 0 or at + 32 > len(answer):
            raise ProviderConfused(provider, "the aggregate ends too early")
        return int.from_bytes(answer[at : at + 32], "big")

    base = number(0) + 32
    if number(base - 32) != count:
        raise ProviderConfused(provider, "the aggregate has another number of results")
    if base + 32 * count > len(answer):
        raise ProviderConfused(provider, "the aggregate ends too early")
    results: list[int | None] = []
    for place in range(base, base + 32 * count, 32):
        at = base + int.from_bytes(answer[place : place + 32], "big")
        if answer[at : at + 96] != A_NUMBER:
            data = at + number(at + 32)
            if number(at) != 1 or number(data) != 32:
                results.append(None)
                continue
            at = data - 64
        results.append(min(number(at + 96), MOST))
    return results
