"""Asks one node for a view function's values for many wallets at one block, in few calls whatever the contract does."""

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from gateways.chains.costly_contracts import USELESS, CostlyContracts
from gateways.chains.read_point import ReadPoint
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.balances.balances_program import SCRATCH
from gateways.evm.balances.program_reads import CLOCK_SLACK, NothingCame
from gateways.evm.calls import multicall, view_batches
from gateways.evm.calls.answer_path import FIRST_BYTES, LARGEST, NotAllThere, ViewValue, WrongAnswer
from gateways.evm.calls.compiled import CompiledView, compiled
from gateways.evm.calls.views_program import CODE, CopiedAnswer, call_data, read_answer
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import NodeTimedOut, RpcRefused, TooMuch
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.evm.tokens.one_word_calls import CALL_GAS, MORE_GAS
from gateways.evm.tokens.one_word_program import CallAnswer, Silence
from gateways.transport import question_time
from gateways.transport.errors import ProviderConfused, ProviderError
from gateways.transport.exchanges import together
from locales import N_

NEUTRAL = "0x484f4c44464153540000000000000000000b00b6"
"""The caller of every question: an address that belongs to nobody, so no contract treats it specially."""
FIRST_WALLETS, MOST_WALLETS, FEWEST_WALLETS = 1_000, 4_000, 8
BATCH = 100
SINGLE_CALLS = 64
"""The most calls that are made one by one if they are too much together: one may use up the gas of all."""
AT_ONCE = 4
STRIKES, STRIKES_AT_FIRST = 60, 8
"""Wallets for which a contract may use up all its gas: the limit, and the limit while it has answered for none."""
MOST_SILENCES = 2
"""Calls without an answer in time after which a node that has answered none is given up."""
REMEMBERED = 600.0
"""Seconds after which the program is tried again at a node that did not run it."""
MOST_REMEMBERED = 1_000
KEPT_FOR_THE_ANSWER = 0.5
OVERRIDE = {SCRATCH: {"code": CODE}}
NO_TIME = N_("there was no time to ask about it")
RESTS = N_("the contract used too much of the node lately, and is asked again later")
REASONS = {
    Silence.NONSENSE: N_("the node refused the call"),
    Silence.REVERTED: N_("the contract reverted"),
    Silence.RAN_OUT: N_("the contract used more gas than a question may"),
}


@dataclass(frozen=True, slots=True)
class _Piece:
    """Wallets to ask about in one call, with how much gas for each, and how many bytes of each answer to copy."""

    owners: Sequence[str]
    gas: int = CALL_GAS
    most_bytes: int = FIRST_BYTES


@dataclass(slots=True)
class ViewPace:
    """What a function needed lately: how many wallets fit into a call, and how much gas each takes at most."""

    wallets: int = FIRST_WALLETS
    gas: int = CALL_GAS


class ViewReader:
    """Reads view functions through one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.costly = CostlyContracts()
        self._batches_until = self._single_until = 0.0
        self._paces: dict[bytes, ViewPace] = {}

    async def read(self, question: ViewQuestion, owners: Sequence[str], at: ReadPoint, deadline: float) -> ViewSheet:
        """Return the values of all wallets (lower case) at the node's head, or at the block that it has settled.

        A contract's failures only make wallets unsure. Raises ProviderError when the node fails.
        """
        head = await (self.node.settled if at.settled else self.node.head)(at.not_before_block)
        view = compiled(question)
        read = ViewRead(self, view, head, self._pace(view.key), dict.fromkeys(owners, NO_TIME))
        if self.costly.rests(view.contract):
            read.unsure = dict.fromkeys(owners, RESTS)
        elif owners:
            try:
                async with question_time.timeout_at(deadline - KEPT_FOR_THE_ANSWER):
                    await read.run(owners)
            except TimeoutError:
                if read.is_silent:
                    raise
            read.note_costs()
        return ViewSheet(
            chain=self.node.chain.key, question=question, block=head.block, block_time=head.time,
            endpoint=self.node.index, source=self.node.source, values=read.values, unsure=read.unsure,
        )  # fmt: skip

    def _pace(self, key: bytes) -> ViewPace:
        if key not in self._paces and len(self._paces) >= MOST_REMEMBERED:
            self._paces.clear()
        return self._paces.setdefault(key, ViewPace())

    @property
    def in_batches(self) -> bool:
        """Whether the node is known not to run our program."""
        if not self._batches_until and node_limits.known(self.node.url).state_override is False:
            self._batches_until = monotonic() + REMEMBERED
        return monotonic() < self._batches_until

    def take_batches(self) -> None:
        """Do without the program at this node for a while."""
        self._batches_until = monotonic() + REMEMBERED

    @property
    def multicall(self) -> str | None:
        """The address of the chain's Multicall3; None without one, or while each call is made on its own."""
        return self.node.chain.multicall3 if monotonic() >= self._single_until else None

    def take_single_calls(self) -> None:
        """Make each call on its own for a while."""
        self._single_until = monotonic() + REMEMBERED


@dataclass(slots=True)
class ViewRead:
    """One read in progress: the wallets that are still to be asked about, and the values found."""

    reader: ViewReader
    view: CompiledView
    head: Head
    pace: ViewPace
    unsure: dict[str, str]
    values: dict[str, ViewValue] = field(default_factory=dict[str, ViewValue])
    todo: deque[_Piece] = field(default_factory=deque[_Piece])
    answered: int = 0
    """Wallets for which the contract gave an answer or reverted."""
    short: int = 0
    """Wallets for which it ran out of the gas that a question gets at first."""
    strikes: int = 0
    """Wallets for which it ran out of the most gas that a question may get, or broke the call in another way."""
    silences: int = 0

    @property
    def is_silent(self) -> bool:
        """Whether no call has been answered yet."""
        return not (self.answered or self.short or self.strikes)

    @property
    def struck_out(self) -> bool:
        """Whether the contract used up so much gas that it is not asked any more."""
        return self.strikes >= (STRIKES if self.answered else STRIKES_AT_FIRST)

    async def run(self, owners: Sequence[str]) -> None:
        """Ask about all wallets. Raises ProviderError."""
        if not self.reader.in_batches:
            try:
                self._begin(owners, self.pace.wallets, _Piece((), self.pace.gas))
                # The first call is made alone, to find out whether this node runs the program.
                await self._next()
                await self._all()
                return
            except (TooMuch, NodeTimedOut):
                raise
            except (NothingCame, RpcRefused):
                self.reader.take_batches()
        size = self.pace.wallets if self.reader.multicall else BATCH
        self._begin(owners, size, _Piece((), MORE_GAS, LARGEST))
        await self._all()

    def _begin(self, owners: Sequence[str], size: int, like: _Piece) -> None:
        self.todo.clear()
        self._add(owners, size, like)

    def _add(self, owners: Sequence[str], size: int, like: _Piece) -> None:
        for start in range(0, len(owners), size):
            self.todo.append(replace(like, owners=owners[start : start + size]))

    async def _all(self) -> None:
        async def worker() -> None:
            while self.todo:
                await self._next()

        # A piece may be queued again after the other workers have ended.
        while self.todo:
            await together(worker() for _ in range(min(AT_ONCE, len(self.todo))))

    async def _next(self) -> None:
        """Ask about one piece and store the answers."""
        piece = self.todo.popleft()
        piece = replace(piece, gas=max(piece.gas, self.pace.gas))
        if piece.gas >= MORE_GAS and self.struck_out:
            self.unsure |= dict.fromkeys(piece.owners, REASONS[Silence.RAN_OUT])
            return
        try:
            said = await self._ask(piece)
        except (TooMuch, NodeTimedOut) as fault:
            self._too_much(piece, fault)
            return
        again = dict[_Piece, list[str]]()
        for owner, one in zip(piece.owners, said, strict=False):
            if (like := self._note(piece, owner, one)) is not None:
                again.setdefault(like, []).append(owner)
        for like, some in again.items():
            self._add(some, self.pace.wallets, like)
        if left := piece.owners[len(said) :]:
            self.todo.appendleft(replace(piece, owners=left))
        if self.short >= STRIKES_AT_FIRST and not self.answered:
            self.pace.gas = MORE_GAS

    def _too_much(self, piece: _Piece, fault: ProviderError) -> None:
        """Ask about fewer wallets at a time; if even the fewest are too much, blame the contract.

        Raises the fault where the node may be the cause.
        """
        self.silences += isinstance(fault, NodeTimedOut)
        if self.is_silent and self.silences >= MOST_SILENCES:
            raise fault
        if len(piece.owners) > FEWEST_WALLETS:
            half = max(FEWEST_WALLETS, len(piece.owners) // 2)
            self.pace.wallets = min(self.pace.wallets, half)
            halves = [piece.owners[:half], piece.owners[half:]]
            self.todo.extendleft(replace(piece, owners=owners) for owners in halves if owners)
            return
        if self.is_silent:
            self.reader.costly.note(self.view.contract, USELESS)
            raise fault
        self.strikes += STRIKES_AT_FIRST
        self.unsure |= dict.fromkeys(piece.owners, REASONS[Silence.RAN_OUT])

    def _note(self, piece: _Piece, owner: str, said: CopiedAnswer | Silence) -> _Piece | None:
        """Store the answer for a wallet; return how to ask about it again, or None if that is not needed."""
        if said is Silence.RAN_OUT and piece.gas < MORE_GAS:
            self.short += 1
            self.unsure[owner] = REASONS[said]
            return _Piece((), MORE_GAS, piece.most_bytes)
        if isinstance(said, Silence):
            self.strikes += said is not Silence.REVERTED
            self.answered += said is Silence.REVERTED
            self.unsure[owner] = REASONS[said]
            return None
        self.answered += 1
        try:
            self.values[owner] = self.view.path.value(said.copied, said.size)
        except NotAllThere:
            return _Piece((), piece.gas, LARGEST)
        except WrongAnswer as wrong:
            self.unsure[owner] = str(wrong)
        else:
            self.unsure.pop(owner, None)
        return None

    def note_costs(self) -> None:
        """Remember a contract that only burns gas; clear the record of one that answers."""
        if self.values:
            self.reader.costly.answered(self.view.contract)
        elif self.struck_out:
            self.reader.costly.note(self.view.contract, USELESS)

    async def _ask(self, piece: _Piece) -> Sequence[CopiedAnswer | Silence]:
        """Return the contract's answers for as many of the piece's wallets as the call reached, at least one."""
        node, view = self.reader.node, self.view
        owners = [bytes.fromhex(owner[2:]) for owner in piece.owners]
        if self.reader.in_batches:
            return await self._without_override([view.data.of(owner) for owner in owners])
        data = call_data(
            secrets.token_bytes(18), view.contract, view.data.template, view.data.places, owners,
            gas=piece.gas, most_bytes=piece.most_bytes,
        )  # fmt: skip
        call = {"from": NEUTRAL, "to": SCRATCH, "data": "0x" + data.hex()}
        said = binary(node.name, await patiently(node, "eth_call", (call, hex(self.head.block), OVERRIDE)))
        if not said:
            raise NothingCame(node.name, "nothing where answers should be")
        found = read_answer(node.name, said, data, len(owners), node.chain.chain_id)
        if abs(found.timestamp - self.head.time.timestamp()) > CLOCK_SLACK:
            raise ProviderConfused(node.name, "the answers are of another block")
        if not found.said:
            raise TooMuch(node.name, "it gives too little gas for a single question", status=200)
        self._learn(piece, found)
        return found.said

    async def _without_override(self, calls: Sequence[bytes]) -> Sequence[CopiedAnswer | Silence]:
        """Ask through Multicall3; make a few calls one by one, because then each has gas of its own."""
        reader, contract = self.reader, self.view.contract
        if reader.multicall and len(calls) > FEWEST_WALLETS:
            try:
                return await multicall.ask(reader.node, self.head, NEUTRAL, reader.multicall, contract, calls)
            except TooMuch:
                if len(calls) > SINGLE_CALLS:
                    raise
            except (NothingCame, RpcRefused):
                reader.take_single_calls()
        return await view_batches.ask(reader.node, self.head, NEUTRAL, contract, calls)

    def _learn(self, piece: _Piece, found: CallAnswer[CopiedAnswer | Silence]) -> None:
        """Size the next calls to four fifths of the node's gas."""
        count = len(found.said)
        if count < len(piece.owners):
            self.pace.wallets = max(FEWEST_WALLETS, min(self.pace.wallets, count))
        elif count >= self.pace.wallets:
            room = max(0, found.gas - 2 * piece.gas) * 4 * count // (5 * found.gas_used)
            self.pace.wallets = max(FEWEST_WALLETS, min(MOST_WALLETS, room, count * 5 // 4 + 1))
