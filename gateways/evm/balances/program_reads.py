"""Read many balances from one node by the program: the pairs of many segments in few calls, all at one block."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from secrets import randbelow, token_bytes
from time import monotonic

from gateways.chains.balance_sheet import LARGE, NATIVE_ADDRESS, Asked, Cells
from gateways.chains.costly_contracts import USELESS, CostlyContracts
from gateways.evm.balances.balances_program import (
    CALL_GAS,
    CODE,
    ENTRY,
    MARGIN,
    NATIVE_CODE,
    SCRATCH,
    Entry,
    LoopAnswer,
    call_data,
    read_answer,
)
from gateways.evm.rpc.errors import NodeTimedOut, TooMuch
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.transport.errors import ProviderConfused, ProviderError
from gateways.transport.exchanges import together

FIRST_CHECKS = 4_000
"""Checks in the first call to a node, before its gas limit is known; they fit into 30 M gas with room to spare."""
MOST_CHECKS = 16_000
FEWEST_CHECKS = 32
ENOUGH_TO_LEARN = 256
"""Checks that a call must have made for their cost to be learnt: a few of one contract say little about others."""
MOST_BYTES = 240_000
"""Call data of one call. JSON doubles it, and a web server before a node often takes a megabyte or less."""
FEWEST_BYTES = 2_000
REMEMBERED = 600.0
"""Seconds for which the size of a request that a node refused stays a limit."""
AT_ONCE = 4
COSTLY = 8
"""A contract is costly if it exceeds its share, and each of its answers uses the gas of this many ordinary ones."""
MOST_LEFT_OUT, MOST_LEFT_OUT_AT_FIRST = 8, 2
"""The most contracts that are left out for making calls fail: once the node has answered a call, and before."""
MOST_SILENCES = 2
"""Calls without an answer in time after which a node that has answered none is given up, not asked for less."""
WIDE = 16
"""Bytes of a cell where amounts are usually large. Amounts that do not fit are read again."""
WIDEST = 32
NATIVE = bytes.fromhex(NATIVE_ADDRESS[2:])
CLOCK_SLACK = 90
"""Seconds by which the TIMESTAMP inside a call may differ from its block's: some nodes run calls in the next block."""
BODY_TOO_LARGE = 413


class NothingCame(ProviderConfused):
    """The answer was `0x`, as from a node that ignores state overrides and so runs no code where none is deployed."""


@dataclass(slots=True)
class ReadPace:
    """How much one node takes in a call; learnt from its answers and kept between reads."""

    checks: int = FIRST_CHECKS
    ceiling: int = FIRST_CHECKS
    _bytes: int = MOST_BYTES
    _bytes_until: float = 0.0

    @property
    def bytes(self) -> int:
        """The most bytes of call data to send: a size that the node refused is a limit for a while."""
        return self._bytes if monotonic() < self._bytes_until else MOST_BYTES

    def learn(self, answer: LoopAnswer, of_use: Sequence[bool]) -> None:
        """Size the next calls to seven eighths of the node's gas.

        Only entries that were `of_use` count: the gas that one contract burns says nothing about other contracts.
        """
        done = sum(reached for reached, counts in zip(answer.reached, of_use, strict=True) if counts)
        used = sum(gas for gas, counts in zip(answer.used, of_use, strict=True) if counts)
        if done >= min(ENOUGH_TO_LEARN, self.checks // 2):
            room = max(0, answer.gas - MARGIN)
            self.ceiling = max(FEWEST_CHECKS, min(MOST_CHECKS, room * 7 * done // (8 * used)))
            # After a fault the size is halved at once and grows back in steps; the first call sets it freely.
            grown = self.ceiling if self.checks == FIRST_CHECKS else self.checks * 5 // 4 + 1
            self.checks = min(self.ceiling, grown)

    def halve(self, fault: ProviderError, sent: int) -> None:
        """Ask for less after a call that was too much; `sent` is the length of its call data."""
        if isinstance(fault, TooMuch) and fault.status == BODY_TOO_LARGE:
            self._bytes, self._bytes_until = max(FEWEST_BYTES, sent // 2), monotonic() + REMEMBERED
        else:
            self.checks = max(FEWEST_CHECKS, self.checks // 2)

    def weight(self, cost: int, gas: int) -> int:
        """Return how many ordinary checks use as much gas as one of this cost, plus a quarter for safety."""
        return max(1, -(-10 * cost * self.checks // (7 * max(1, gas))))


@dataclass(slots=True)
class Piece:
    """Some contracts of a segment, each still to be asked about a range of the segment's owners.

    A check is given the gas of `weight` ordinary ones. The answer has cells of `width` bytes.
    """

    segment: int
    contracts: Sequence[int]
    start: int
    stop: int
    weight: int = 1
    width: int = 1

    @property
    def owners(self) -> int:
        """How many owners it asks about."""
        return self.stop - self.start


@dataclass(slots=True)
class Run:
    """One entry of a call: a contract of a piece, asked about the piece's owners, who begin at position `first`."""

    address: bytes
    contract: int
    piece: Piece
    first: int


@dataclass(slots=True)
class LoopRead:
    """One bulk read, which fills the cells of the segments in `asked`."""

    node: Node
    pace: ReadPace
    head: Head
    asked: Sequence[Asked]
    costly: CostlyContracts = field(default_factory=CostlyContracts)
    """The costly contracts that earlier reads found; those that must not be asked yet stay unknown."""
    tried: bool = False
    """Whether the node is known to run the program."""
    todo: deque[Piece] = field(default_factory=deque[Piece])
    later: deque[Piece] = field(default_factory=deque[Piece])
    useless: Counter[bytes] = field(default_factory=Counter[bytes])
    silences: int | None = 0
    """Calls that were not answered in time; None once a call has been answered."""
    fault: ProviderError | None = None
    """Why a contract was left out."""
    left_out: set[bytes] = field(default_factory=set[bytes])
    """Contracts for which a call of a single check was too much."""

    async def run(self) -> None:
        """Fill the cells. Raises a ProviderError when the node fails; a contract's own failure leaves it unknown.

        Contracts that use up their share of the gas are asked again after all others, and are remembered as costly.
        """
        try:
            await self._fill()
        finally:
            for address, answers in self.useless.items():
                # If even the smallest call fails, the node may be at its limit and the contract may be sound.
                self.costly.note(address, 0 if address in self.left_out else answers)

    async def _fill(self) -> None:
        for number, one in enumerate(self.asked):
            places = [at for at in range(one.cells.contracts) if not self.costly.rests(one.contract(at))]
            for width, contracts in (
                (1, [at for at in places if one.contract(at) not in one.coins]),
                (WIDE, [at for at in places if one.contract(at) in one.coins]),
            ):
                if contracts and one.cells.owners:
                    self.todo.append(Piece(number, contracts, 0, one.cells.owners, width=width))
        # Begin at a random piece: where the time ends too early, it is not always the same amounts that stay unknown.
        self.todo.rotate(randbelow(max(1, len(self.todo))))
        while not self.tried and self.silences is not None and self.todo:
            # One call at a time, until one has shown that this node runs the program.
            await self._next()
        await self._all()
        if self.fault is not None and self.silences is not None:
            raise self.fault  # there was no answer at all
        await self._exactly()
        try:
            while self.later:
                self.todo, self.later = self.later, deque()
                await self._all()
                await self._exactly()
        except ProviderError:
            for one in self.asked:
                one.forget_inexact()

    async def _all(self) -> None:
        async def worker() -> None:
            while self.todo:
                await self._next()

        await together(worker() for _ in range(min(AT_ONCE, len(self.todo) * 4)))

    async def _next(self) -> None:
        """Make one call about as many pieces as fit into it, and store the cells of its answer."""
        pieces = self._take()
        if not pieces:
            return
        runs, owners = self._runs(pieces)
        entries = _entries([(run.address, run.piece.weight, run.first, run.piece.owners) for run in runs])
        try:
            answer = await self._ask(pieces[0].width, entries, owners)
        except (TooMuch, NodeTimedOut) as fault:
            if self._is_silent(fault):
                raise
            if sum(piece.owners * len(piece.contracts) for piece in pieces) <= FEWEST_CHECKS:
                self._single_out(pieces, runs, fault)
                return
            self.pace.halve(fault, len(entries) * ENTRY + len(owners))
            self.todo.extendleft(reversed(pieces))
            return
        self.silences = None
        for run, line in zip(runs, answer.cells, strict=True):
            cells = self.asked[run.piece.segment].cells
            if run.piece.width == 1:
                cells.rows[run.contract][run.piece.start : run.piece.stop] = line
            else:
                _note_wide(cells, run.contract, run.piece.start, run.piece.width, line)
        whole = [reached == entry.owners for reached, entry in zip(answer.reached, entries, strict=True)]
        self._note_use(runs, answer, whole)
        if not all(whole):
            self._left_over(runs, answer, whole)
        if all(piece.weight == 1 for piece in pieces):
            self.pace.learn(
                answer, [all_of_it and any(line) for all_of_it, line in zip(whole, answer.cells, strict=True)]
            )

    def _note_use(self, runs: Sequence[Run], answer: LoopAnswer, whole: Sequence[bool]) -> None:
        """Count the answers of contracts that burn their gas for nothing; reset the count of contracts that answer."""
        for number, run in enumerate(runs):
            if any(answer.cells[number]):
                self.costly.answered(run.address)
            elif whole[number] and answer.used[number] > answer.reached[number] * CALL_GAS // 2:
                self.useless[run.address] += answer.reached[number]

    def _is_silent(self, fault: ProviderError) -> bool:
        """Count a call that ran out of time; return whether MOST_SILENCES calls did before any answer."""
        if self.silences is not None and isinstance(fault, NodeTimedOut):
            self.silences += 1
        return (self.silences or 0) >= MOST_SILENCES

    def _single_out(self, pieces: Sequence[Piece], runs: Sequence[Run], fault: ProviderError) -> None:
        """Leave out the contract if even its smallest call is too much; otherwise queue smaller calls to find it.

        Raises the fault once too many contracts are left out, because then the node is the cause.
        """
        if len(self.left_out) >= (MOST_LEFT_OUT if self.silences is None else MOST_LEFT_OUT_AT_FIRST):
            raise fault
        if len(runs) > 1 or pieces[0].owners > 1:
            # With the most weight each cell has a call of its own.
            self.todo.extendleft(replace(piece, weight=MOST_CHECKS) for piece in reversed(pieces))
        else:
            self.left_out.add(runs[0].address)
            self.useless[runs[0].address] += USELESS
            self.fault = fault

    def _take(self) -> list[Piece]:
        """Return as many pieces as fit into a call, all with cells of one width; the last one is cut to fit."""
        taken, checks, size = list[Piece](), self.pace.checks, self.pace.bytes
        while self.todo:
            piece = self._worth_asking(self.todo.popleft())
            count = len(piece.contracts)
            if not count:
                continue
            if taken and piece.width != taken[0].width:
                self.todo.appendleft(piece)
                break
            fits = min(checks // (count * piece.weight), (size - count * ENTRY) // 20)
            if fits < 1 and taken:
                self.todo.appendleft(piece)
                break
            if fits < 1:
                # With so many contracts, even one owner is too much for a call.
                parts = (piece.contracts[: count // 2], piece.contracts[count // 2 :])
                self.todo.extendleft(replace(piece, contracts=part) for part in parts)
                continue
            if fits < piece.owners:
                self.todo.appendleft(replace(piece, start=piece.start + fits))
                piece = replace(piece, stop=piece.start + fits)
            taken.append(piece)
            checks -= count * piece.owners * piece.weight
            size -= count * ENTRY + piece.owners * 20
        return taken

    def _worth_asking(self, piece: Piece) -> Piece:
        """Return the piece without contracts whose answers were useless, its weight limited to a whole call."""
        weight, contracts = min(piece.weight, self.pace.checks), piece.contracts
        if self.useless:
            asked = self.asked[piece.segment]
            contracts = [one for one in contracts if self.useless[asked.contract(one)] < USELESS]
        return replace(piece, contracts=contracts, weight=weight)

    def _runs(self, pieces: Sequence[Piece]) -> tuple[list[Run], bytes]:
        """Return the runs of a call, those of one contract together, and the call's owners (20 bytes each)."""
        runs, owners, places = list[Run](), list[bytes](), dict[tuple[int, int, int], int]()
        count = 0
        for piece in pieces:
            asked, place = self.asked[piece.segment], (piece.segment, piece.start, piece.stop)
            if place not in places:
                places[place] = count
                owners.append(asked.owners[piece.start * 20 : piece.stop * 20])
                count += piece.owners
            first = places[place]
            runs += [Run(asked.contract(one), one, piece, first) for one in piece.contracts]
        if len(pieces) > 1:
            runs.sort(key=lambda run: run.address)
        return runs, b"".join(owners)

    def _left_over(self, runs: Sequence[Run], answer: LoopAnswer, whole: Sequence[bool]) -> None:
        """Queue the pairs that were not reached, with weights that fit what their contracts have cost so far.

        Contracts with too many useless answers are left out. If nothing was reached at all, nothing is queued.
        """
        if not any(answer.reached):
            return
        by_contract = dict[bytes, list[int]]()
        for number, run in enumerate(runs):
            by_contract.setdefault(run.address, []).append(number)
        for address in {run.address for run, all_of_it in zip(runs, whole, strict=True) if not all_of_it}:
            mine = by_contract[address]
            reached = sum(answer.reached[number] for number in mine)
            weight = 1
            if any(any(answer.cells[number]) for number in mine):
                weight = self.pace.weight(sum(answer.used[number] for number in mine) // reached, answer.gas)
                if weight >= COSTLY:
                    self.costly.note(address)
            elif reached:
                self.useless[address] += reached
                weight = self.pace.weight(CALL_GAS, answer.gas)
            for number in mine:
                run, start = runs[number], runs[number].piece.start + answer.reached[number]
                if not whole[number]:
                    most = max(weight, run.piece.weight)
                    self.later.append(replace(run.piece, contracts=(run.contract,), start=start, weight=most))

    async def _exactly(self) -> None:
        """Read the amounts that did not fit into their cells again, with cells as wide as amounts can be."""
        large = [
            (asked.contract(contract), asked, contract, at)
            for asked in self.asked
            for contract in range(asked.cells.contracts)
            for at in asked.inexact(contract)
        ]
        large.sort(key=lambda one: one[0])
        while large:
            some = large[: max(1, min(self.pace.checks // 2, self.pace.bytes // (20 + ENTRY)))]
            owners = b"".join(asked.owners[at * 20 : at * 20 + 20] for _, asked, _, at in some)
            entries = _entries([(address, 1, index, 1) for index, (address, _, _, _) in enumerate(some)])
            try:
                answer = await self._ask(WIDEST, entries, owners)
            except (TooMuch, NodeTimedOut) as fault:
                if len(some) <= FEWEST_CHECKS:
                    # The node has answered calls before this one, so the contracts are to blame.
                    for _, asked, contract, at in some:
                        asked.cells.put(contract, at, None)
                    del large[: len(some)]
                    continue
                self.pace.halve(fault, len(entries) * ENTRY + len(owners))
                continue
            line = b"".join(answer.cells)
            for index, (_, asked, contract, at) in enumerate(some):
                cell = int.from_bytes(line[index * WIDEST : (index + 1) * WIDEST], "big")
                asked.cells.put(contract, at, cell - 1 if cell else None)
            del large[: len(some)]

    async def _ask(self, width: int, entries: Sequence[Entry], owners: bytes) -> LoopAnswer:
        data = call_data(token_bytes(27), width, entries, owners)
        codes = {SCRATCH: {"code": CODE}}
        if any(entry.contract == NATIVE for entry in entries):
            codes[NATIVE_ADDRESS] = {"code": NATIVE_CODE}
        params = ({"to": SCRATCH, "data": "0x" + data.hex()}, hex(self.head.block), codes)
        said = binary(self.node.name, await patiently(self.node, "eth_call", params))
        if not said:
            raise NothingCame(self.node.name, "nothing where balances should be")
        answer = read_answer(self.node.name, said, data, entries, self.node.chain.chain_id)
        if abs(answer.timestamp - self.head.time.timestamp()) > CLOCK_SLACK:
            raise ProviderConfused(self.node.name, "the balances are of another block")
        return answer


def _note_wide(cells: Cells, contract: int, start: int, width: int, line: bytes) -> None:
    """Store amounts from wide cells; an amount that fills its cell is large and not known exactly yet."""
    full = (1 << 8 * width) - 1
    row, large = cells.rows[contract], cells.large
    for place in range(len(line) // width):
        cell = int.from_bytes(line[place * width : (place + 1) * width], "big")
        if cell < LARGE:
            row[start + place] = cell
        else:
            row[start + place] = LARGE
            if cell < full:
                large[contract, start + place] = cell - 1


def _entries(rows: Sequence[tuple[bytes, int, int, int]]) -> list[Entry]:
    """Return a call's entries from rows of contract, weight of one owner, position of the first owner, and owners.

    The rows of one contract must follow one another; the first entry of each contract gets the weight of all.
    """
    weights = Counter[bytes]()
    for address, weight, _, count in rows:
        weights[address] += weight * count
    return [Entry(address, weights.pop(address, 0), first, count) for address, _, first, count in rows]
