"""The program that makes one view call for many wallets inside the EVM, and returns answers of any size.

It is `gateways/evm/programs/views.yul`, put at a scratch address by `eth_call`'s state override like the program for
balances. Call data: one word (18 bytes of nonce, two bytes P, four bytes each of C, G and L), the contract as a word, P
words with places in the template, the template (L bytes), then the wallets (20 bytes each). Each wallet is put as a
word at each of the places, and the template is then the call data of one call. Answer:

    word 0   MAGIC xor the call data's first word: only this program returns it, run on exactly this call data
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    word 5   where in the call data it stopped, for want of gas or room, or at the end
    then for each wallet how its call ended (1 byte), the size of the answer (4 bytes), and, if the call succeeded,
    the answer's first bytes, at most C

Each call has exactly G gas: an answer must not depend on how much is left. A call that used most of it may have been
cut short, perhaps inside a call that the contract made. It gets a status of its own, and its answer is not copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateways.evm.programs import code, header
from gateways.evm.tokens.one_word_program import CallAnswer, Silence
from gateways.transport.errors import ProviderConfused

MAGIC = 0x686F6C64666173743A206F6E65207669657720666F722065766572792077616C
HEADER = 192
ENTRY = 5

CODE = code("views")


@dataclass(frozen=True, slots=True)
class CopiedAnswer:
    """The first bytes of a contract's answer, and the size of the whole answer."""

    copied: bytes
    size: int


def call_data(
    nonce: bytes,
    contract: bytes,
    template: bytes,
    places: Sequence[int],
    owners: Sequence[bytes],
    *,
    gas: int,
    most_bytes: int,
) -> bytes:
    """Return the program's call data; `nonce` has 18 bytes, `contract` and each of the owners 20."""
    numbers = (most_bytes.to_bytes(4, "big"), gas.to_bytes(4, "big"), len(template).to_bytes(4, "big"))
    words = [place.to_bytes(32, "big") for place in places]
    head = (nonce, len(places).to_bytes(2, "big"), *numbers, bytes(12), contract, *words)
    return b"".join((*head, template, *owners))


def read_answer(
    provider: str, answer: bytes, data: bytes, count: int, chain_id: int
) -> CallAnswer[CopiedAnswer | Silence]:
    """Return the answers for the `count` wallets of this call data, or for as many as the program reached.

    Raises ProviderConfused when any mark is missing or wrong.
    """
    if len(answer) < HEADER:
        raise ProviderConfused(provider, f"{len(answer)} bytes where answers should be")
    words = header(provider, answer, HEADER, data=data, magic=MAGIC, chain_id=chain_id)
    reached, rest = divmod(words[5] - (len(data) - 20 * count), 20)
    if rest or not 0 <= reached <= count:
        raise ProviderConfused(provider, "the answers contradict their own count")
    most, at, said = int.from_bytes(data[20:24], "big"), HEADER, list[CopiedAnswer | Silence]()
    for _ in range(reached):
        if at + ENTRY > len(answer):
            raise ProviderConfused(provider, "the answers end too early")
        status, size = answer[at], int.from_bytes(answer[at + 1 : at + ENTRY], "big")
        at += ENTRY
        if status == 1:
            end = at + min(size, most)
            said.append(CopiedAnswer(answer[at:end], size))
            at = end
        elif status in {Silence.REVERTED.value, Silence.RAN_OUT.value}:
            said.append(Silence(status))
        else:
            raise ProviderConfused(provider, "the answers contradict their own count")
    if at != len(answer):
        raise ProviderConfused(provider, "the answers are not as long as they say")
    return CallAnswer(tuple(said), words[2], words[3], words[3] - words[4])
