"""Asks contracts many questions with one-word (32-byte) answers, all at one block: by the program, or in batches."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from gateways.evm.balances.balances_program import SCRATCH
from gateways.evm.balances.program_reads import CLOCK_SLACK, NothingCame
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import Halted, NodeTimedOut, Reverted, RpcRefused, TooMuch
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.evm.tokens.one_word_program import CODE, CallAnswer, Said, Silence, call_data, read_answer
from gateways.transport.errors import ProviderConfused, ProviderError

Question = tuple[bytes, bytes]
"""A contract's address (20 bytes) and the call data."""
Way = Callable[[Head, list[Question], int], Awaitable[list[Said]]]
"""A way to ask questions at a block, with the gas for each question."""

CALL_GAS = 200_000
MORE_GAS = 3_000_000
"""For the few questions that need more than CALL_GAS: some collections search backwards for an owner."""
MOST_AGAIN = 60
STRIKES = 60
"""Questions that may run out of gas before their contract is no longer asked."""
STRIKES_ALONE = 3
"""The same for questions that were too much for the node although each was asked alone."""
FIRST_QUESTIONS = 1_000
MOST_QUESTIONS = 4_000
FEWEST_QUESTIONS = 8
BATCH, DEAR_BATCH = 100, 4
CALL_ITSELF = 800_000
"""The gas of a transaction before its call, which nodes count for `eth_call` too; zkSync's nodes count far more."""
REMEMBERED = 600.0
"""Seconds after which the program is tried again at a node that did not run it."""
IS_ERC165 = bytes.fromhex("01ffc9a7") + bytes.fromhex("01ffc9a7") + bytes(28)


class Asker:
    """Asks one node, and learns how much it takes in a call."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._size = FIRST_QUESTIONS
        self._batches_until = 0.0

    async def ask(self, head: Head, questions: Sequence[Question]) -> list[Said]:
        """Return the contracts' answers at the head's block, in the order of the questions.

        A contract can spoil only its own answers. Raises ProviderError when the node fails.
        """
        found: list[Said] = [Silence.NONSENSE] * len(questions)
        lengths = {len(data) for _, data in questions}
        for length in sorted(lengths):
            places = [place for place, (_, data) in enumerate(questions) if len(data) == length]
            said = await self._alike(head, [questions[place] for place in places])
            for place, one in zip(places, said, strict=True):
                found[place] = one
        return found

    async def _alike(self, head: Head, questions: list[Question]) -> list[Said]:
        """Return the answers to questions whose call data has one length."""
        if not self._batches_until and node_limits.known(self.node.url).state_override is False:
            self._batches_until = monotonic() + REMEMBERED
        if monotonic() >= self._batches_until:
            try:
                return await self._patiently(self._by_program, head, questions)
            except (TooMuch, NodeTimedOut):
                raise
            except (NothingCame, RpcRefused):
                self._batches_until = monotonic() + REMEMBERED
        return await self._patiently(self._by_batches, head, questions)

    @staticmethod
    async def _patiently(way: Way, head: Head, questions: list[Question]) -> list[Said]:
        """Ask with little gas for each question; if that was too little for a few, ask these again with a lot."""
        said = await way(head, questions, CALL_GAS)
        short = [place for place, one in enumerate(said) if one is Silence.RAN_OUT]
        if 0 < len(short) <= MOST_AGAIN:
            again = await way(head, [questions[place] for place in short], MORE_GAS)
            for place, one in zip(short, again, strict=True):
                said[place] = one
        return said

    async def _by_program(self, head: Head, questions: list[Question], gas: int) -> list[Said]:
        said, strikes = list[Said](), dict[bytes, int]()
        while len(said) < len(questions):
            contract = questions[len(said)][0]
            if strikes.get(contract, 0) >= STRIKES:
                said.append(Silence.RAN_OUT)
                continue
            piece = questions[len(said) : len(said) + self._size]
            try:
                answer = await self._run(head, piece, gas)
            except (TooMuch, NodeTimedOut):
                if len(piece) <= FEWEST_QUESTIONS:
                    raise
                self._size = max(FEWEST_QUESTIONS, self._size // 2)
                continue
            if not answer.said:
                raise ProviderConfused(self.node.name, "it gives no gas for a single question")
            for (asked, _), one in zip(piece, answer.said, strict=False):
                if one is Silence.RAN_OUT:
                    strikes[asked] = strikes.get(asked, 0) + 1
            said += answer.said
            if gas == CALL_GAS and not strikes and len(answer.said) == len(piece) == self._size:
                self._size = min(MOST_QUESTIONS, self._room(answer), self._size * 5 // 4 + 1)
        return said

    @staticmethod
    def _room(answer: CallAnswer[Said]) -> int:
        """Return how many such questions fit into four fifths of the node's gas."""
        return max(FEWEST_QUESTIONS, (answer.gas - 2 * CALL_GAS) * 4 * len(answer.said) // (5 * answer.gas_used))

    async def _run(self, head: Head, questions: list[Question], gas: int) -> CallAnswer[Said]:
        data = call_data(secrets.token_bytes(26), gas, questions)
        params = ({"to": SCRATCH, "data": "0x" + data.hex()}, hex(head.block), {SCRATCH: {"code": CODE}})
        said = binary(self.node.name, await patiently(self.node, "eth_call", params))
        if not said:
            raise NothingCame(self.node.name, "nothing where answers should be")
        answer = read_answer(self.node.name, said, data, self.node.chain.chain_id)
        if abs(answer.timestamp - head.time.timestamp()) > CLOCK_SLACK:
            raise ProviderConfused(self.node.name, "the answers are of another block")
        return answer

    async def _by_batches(self, head: Head, questions: list[Question], gas: int) -> list[Said]:
        """Ask by batches. Raises ProviderConfused when no contract of any batch answers what is known about it.

        One batch may consist of hostile contracts alone: that says nothing about the node.
        """
        size = BATCH if gas == CALL_GAS else DEAR_BATCH
        said, strikes = list[Said](), dict[bytes, int]()
        answered, is_believed = False, False
        while len(said) < len(questions):
            contract = questions[len(said)][0]
            if strikes.get(contract, 0) >= STRIKES_ALONE:
                said.append(Silence.RAN_OUT)
                continue
            try:
                some, believed = await self._batch(head, questions[len(said) : len(said) + size], gas)
                said += some
                answered, is_believed = True, is_believed or bool(believed)
            except (TooMuch, NodeTimedOut):
                if size > 1:
                    size = max(1, size // 4)
                    continue
                # The question is too much for the node even alone: its contract may return megabytes.
                strikes[contract] = strikes.get(contract, 0) + 1
                said.append(Silence.RAN_OUT)
        if answered and not is_believed:
            raise ProviderConfused(self.node.name, "no contract answers what is known about it")
        return said

    async def _batch(self, head: Head, questions: list[Question], gas: int) -> tuple[list[Said], set[bytes]]:
        """Return the answers to a batch, and the contracts that say, as each is asked first, that they support ERC-165.

        Answers of a contract that does not say so are ignored.
        """
        contracts = sorted({contract for contract, _ in questions})
        asked = [*((contract, IS_ERC165) for contract in contracts), *questions]
        block, most = hex(head.block), hex(gas + CALL_ITSELF)
        results = await self.node.batch(
            [
                ("eth_call", ({"to": "0x" + to.hex(), "data": "0x" + data.hex(), "gas": most}, block))
                for to, data in asked
            ]
        )
        answers = [self._heard(result) for result in results]
        believed = {contract for contract, one in zip(contracts, answers, strict=False) if one == 1}
        said = [
            one if contract in believed else Silence.NONSENSE
            for (contract, _), one in zip(questions, answers[len(contracts) :], strict=True)
        ]
        return said, believed

    def _heard(self, result: object) -> Said:
        if (silence := silence_in(result)) is not None:
            return silence
        said = binary(self.node.name, result)
        return int.from_bytes(said, "big") if len(said) == 32 else Silence.NONSENSE


def silence_in(result: object) -> Silence | None:
    """Return why a call in a batch has no answer, None where it has one. Raises the ProviderError of a node that fails.

    A contract that halts burns all its gas, like one that runs out of gas, so neither counts as a "no".
    """
    if isinstance(result, Halted | TooMuch):
        return Silence.RAN_OUT
    if isinstance(result, Reverted):
        return Silence.REVERTED
    if isinstance(result, RpcRefused):
        return Silence.NONSENSE
    if isinstance(result, ProviderError):
        raise result
    return None
