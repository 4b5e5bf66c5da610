"""The program that asks contracts any questions with one-word (32-byte) answers inside the EVM.

It is `gateways/evm/programs/questions.yul`, put at a scratch address by `eth_call`'s state override like the program
for balances. Call data: one word (26 bytes of nonce, four bytes G, two bytes L), then for each question the contract
(20 bytes) and its call data (L bytes). Answer:

    word 0   MAGIC xor the call data's first word: only this program returns it, run on exactly this call data
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    word 5   where in the call data it stopped, for want of gas or at the end
    then for each question one byte, the result of the call (0: it was not reached), and the word that came back

It keeps a "no" apart from a failure: each call has exactly G gas. A contract that reverts has answered. One that used
up most of its gas may have been cut short, perhaps inside a call that it made, so this has a result of its own.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from gateways.evm.programs import code, header
from gateways.transport.errors import ProviderConfused

Result = TypeVar("Result")

MAGIC = 0x686F6C64666173743A206F6E6520776F7264207065722063616C6C2C20747275
HEADER = 192
FIRST_WORD = 32


class Silence(Enum):
    """Why a question was not answered with one word."""

    NONSENSE = 2
    """The call succeeded without returning exactly one word, as it does where there is no contract."""
    REVERTED = 3
    RAN_OUT = 4
    """It needed more gas than it was given."""


Said = int | Silence
"""A contract's answer: a word, or why there is none."""

CODE = code("questions")


@dataclass(frozen=True, slots=True)
class CallAnswer(Generic[Result]):
    """The answer of one run of a program: the results of as many questions as it reached."""

    said: tuple[Result, ...]
    timestamp: int
    gas: int
    gas_used: int


def call_data(nonce: bytes, gas: int, questions: list[tuple[bytes, bytes]]) -> bytes:
    """Return the program's call data; `nonce` has 26 bytes, all questions' call data have one length, of at most 96."""
    length = len(questions[0][1])
    body = b"".join(contract + data for contract, data in questions)
    return nonce + gas.to_bytes(4, "big") + length.to_bytes(2, "big") + body


def read_answer(provider: str, answer: bytes, data: bytes, chain_id: int) -> CallAnswer[Said]:
    """Return the answer to this call data. Raises ProviderConfused when any of its marks is missing or wrong."""
    step = int.from_bytes(data[30:32], "big") + 20
    count = (len(data) - FIRST_WORD) // step
    if len(answer) != HEADER + 33 * count:
        raise ProviderConfused(provider, f"{len(answer)} bytes where answers should be")
    words = header(provider, answer, HEADER, data=data, magic=MAGIC, chain_id=chain_id)
    reached, rest = divmod(words[5] - FIRST_WORD, step)
    if rest or not 0 <= reached <= count:
        raise ProviderConfused(provider, "the answers contradict their own count")
    said = list[Said]()
    for number in range(count):
        at = HEADER + 33 * number
        status = answer[at]
        if (1 <= status <= 4) != (number < reached):
            raise ProviderConfused(provider, "the answers contradict their own count")
        if number < reached:
            said.append(int.from_bytes(answer[at + 1 : at + 33], "big") if status == 1 else Silence(status))
    return CallAnswer(tuple(said), words[2], words[3], words[3] - words[4])
