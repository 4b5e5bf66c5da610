"""Reads many balances from one node by the loop program: in chunks, a few at once, all at one block."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateways.balance_sheet import LARGE, UNKNOWN, Cells
from gateways.errors import ProviderConfused, ProviderError
from gateways.evm import Head, Node, binary, patiently
from gateways.evm_errors import TookTooLong, TooMuch, Unsupported
from gateways.evm_loop import CODE, MARGIN, SCRATCH, LoopAnswer, call_data, read_answer

FIRST_CHECKS = 4_000
"""Checks in the first call to a node, before its gas is known: it fits into 30 M gas with room."""
MOST_CHECKS = 16_000
FEWEST_CHECKS = 32
CONTRACTS_A_CALL = 32
AT_ONCE = 4
CLOCK_SLACK = 90
"""Seconds by which the TIMESTAMP inside a call may differ from its block's: some nodes run calls in the next block."""


class NothingCame(ProviderConfused):
    """`0x`: what a node without state override answers, which runs no code where none is deployed."""


@dataclass(slots=True)
class Pace:
    """How much one node takes in a call; learnt from its answers and kept between reads."""

    checks: int = FIRST_CHECKS
    ceiling: int = FIRST_CHECKS

    def learn(self, answer: LoopAnswer) -> None:
        """Size the next calls to seven eighths of the node's gas, a contract's last margin taken off."""
        done = sum(answer.reached)
        if done:
            room = answer.gas - len(answer.reached) * MARGIN
            self.ceiling = max(FEWEST_CHECKS, min(MOST_CHECKS, room * 7 * done // (8 * answer.gas_used)))
            # After a fault the size is halved at once and grows back by and by; the first call sets it freely.
            grown = self.ceiling if self.checks == FIRST_CHECKS else self.checks * 5 // 4 + 1
            self.checks = min(self.ceiling, grown)

    def halve(self) -> None:
        """After a call that was too much."""
        self.checks = max(FEWEST_CHECKS, self.checks // 2)


@dataclass(slots=True)
class Piece:
    """Some contracts times a range of owners, still to be asked; `most` bounds the owners of one call."""

    contracts: tuple[int, ...]
    start: int
    stop: int
    most: int | None = None


@dataclass(slots=True)
class LoopRead:
    """One bulk read. `contracts` and `owners` are packed addresses (20 bytes each)."""

    node: Node
    pace: Pace
    head: Head
    contracts: bytes
    owners: bytes
    cells: Cells
    todo: deque[Piece] = field(default_factory=deque[Piece])
    later: deque[Piece] = field(default_factory=deque[Piece])

    async def run(self, seconds_for_the_rest: Callable[[], float]) -> None:
        """Fill the cells. Raises a ProviderError when the node fails; a contract's own failure leaves it unknown.

        Contracts that use up their share of the gas are asked again, alone, for at most `seconds_for_the_rest()`.
        """
        count = self.cells.contracts
        for first in range(0, count, CONTRACTS_A_CALL):
            group = tuple(range(first, min(first + CONTRACTS_A_CALL, count)))
            self.todo.append(Piece(group, 0, self.cells.owners))
        # The first call alone finds out whether and how this node can do it.
        await self._next()
        await self._all()
        await self._exactly()
        if self.later:
            self.todo, self.later = self.later, deque()
            try:
                async with asyncio.timeout(max(0.0, seconds_for_the_rest())):
                    while self.todo:
                        await self._next()
                        self.todo += self.later
                        self.later.clear()
                    await self._exactly()
            except (TimeoutError, ProviderError):
                self._forget_inexact()

    async def _all(self) -> None:
        async def worker() -> None:
            while self.todo:
                await self._next()

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(self.todo) * 4)):
                    group.create_task(worker())
        except* ProviderError as faults:
            raise first_of(faults) from None

    async def _next(self) -> None:
        """Take a call's worth of the next piece, ask, and note the cells."""
        if not self.todo:
            return
        piece = self.todo.popleft()
        size = max(1, self.pace.checks // len(piece.contracts))
        stop = min(piece.stop, piece.start + (size if piece.most is None else min(size, piece.most)))
        if stop < piece.stop:
            self.todo.appendleft(Piece(piece.contracts, stop, piece.stop, piece.most))
        owners = memoryview(self.owners)[piece.start * 20 : stop * 20]
        try:
            answer = await self._ask(1, piece.contracts, owners)
        except (TooMuch, TookTooLong):
            if (stop - piece.start) * len(piece.contracts) <= FEWEST_CHECKS:
                raise
            self.pace.halve()
            self.todo.appendleft(Piece(piece.contracts, piece.start, stop, piece.most))
            return
        for contract, line, reached in zip(piece.contracts, answer.cells, answer.reached, strict=True):
            self.cells.rows[contract][piece.start : stop] = line
            if piece.start + reached < stop:
                self._left_over(piece, contract, line, reached, stop)
        if piece.most is None:
            self.pace.learn(answer)

    def _left_over(self, piece: Piece, contract: int, line: bytes, reached: int, stop: int) -> None:
        """A contract used up its share of the gas. If nothing it said was of use, it is let be; else asked alone."""
        alone = len(piece.contracts) == 1
        if any(line) or (reached == 0 and not alone):
            most = max(1, reached * len(piece.contracts) * 4 // 5) if reached else FEWEST_CHECKS
            self.later.append(Piece((contract,), piece.start + reached, stop, most))

    async def _exactly(self) -> None:
        """Read amounts that did not fit into a byte once more, eight bytes wide."""
        for contract, row in enumerate(self.cells.rows):
            large = [at for at in _places(row, LARGE) if (contract, at) not in self.cells.large]
            size = max(1, self.pace.checks // 2)
            for first in range(0, len(large), size):
                places = large[first : first + size]
                owners = b"".join(self.owners[at * 20 : at * 20 + 20] for at in places)
                answer = await self._ask(8, (contract,), owners)
                line = answer.cells[0]
                for index, at in enumerate(places):
                    cell = int.from_bytes(line[index * 8 : index * 8 + 8], "big")
                    self.cells.put(contract, at, cell - 1 if cell else None)

    def _forget_inexact(self) -> None:
        """Cells that say "more than a byte" and were never read exactly are unknown."""
        for contract, row in enumerate(self.cells.rows):
            for at in _places(row, LARGE):
                if (contract, at) not in self.cells.large:
                    row[at] = UNKNOWN

    async def _ask(self, width: int, contracts: tuple[int, ...], owners: bytes | memoryview) -> LoopAnswer:
        chosen = [self.contracts[at * 20 : at * 20 + 20] for at in contracts]
        data = call_data(secrets.token_bytes(28), width, chosen, owners)
        params = ({"to": SCRATCH, "data": "0x" + data.hex()}, hex(self.head.block), {SCRATCH: {"code": CODE}})
        said = binary(self.node.name, await patiently(self.node, "eth_call", params))
        if not said:
            raise NothingCame(self.node.name, "nothing where balances should be")
        answer = read_answer(self.node.name, said, data, self.node.chain.chain_id)
        if abs(answer.timestamp - self.head.time.timestamp()) > CLOCK_SLACK:
            raise ProviderConfused(self.node.name, "the balances are of another block")
        return answer


CANNOT = (NothingCame, Unsupported)
"""How a node looks that knows no state override."""


def _places(row: bytearray, value: int) -> list[int]:
    found, at = list[int](), row.find(value)
    while at >= 0:
        found.append(at)
        at = row.find(value, at + 1)
    return found


def first_of(faults: BaseExceptionGroup[ProviderError]) -> ProviderError:
    """Any one of the provider's errors in a group."""
    for fault in faults.exceptions:
        return fault if isinstance(fault, ProviderError) else first_of(fault)
    raise AssertionError("a group holds at least one error")
