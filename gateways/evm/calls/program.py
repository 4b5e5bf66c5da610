"""The program that makes one view call for many wallets inside the EVM, and returns answers of any size.

It is put at a scratch address by `eth_call`'s state override, like the loop program. Call data: one word (18 bytes of
nonce, two bytes P, four bytes each of C, G and L), the contract as a word, P words with places in the template, the
template (L bytes), then the wallets (20 bytes each). For each wallet, it goes as a word to each of the places, and the
template is the call data of one call. Answer:

    word 0   MAGIC xor the call data's first word: only this program, run on this very call data, says that
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    word 5   where in the call data it stopped, for want of gas or room, or at the end
    word 6   the size of the contract's code
    then for each wallet how its call ended (1 byte), the size of the answer (4 bytes), and, if the call succeeded,
    the answer's first bytes, at most C

Each call has exactly G gas: an answer must not depend on how much is left. A call that used most of it may have been
cut short, perhaps in a call of the contract's own. It gets a status of its own, and its answer is not copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateways.evm.balances.program import assemble
from gateways.evm.tokens.program import Silence
from gateways.transport.errors import ProviderConfused

MAGIC = 0x686F6C64666173743A206F6E65207669657720666F722065766572792077616C
HEADER = 224
OUT = 0x2000
"""Where in memory the answer begins; the template, which has at most 4,096 bytes, is before it."""
ROOM = 400_000
"""Bytes of answers after which the program stops; JSON doubles them."""
MARGIN = 300_000
"""Gas for the program's own work on one wallet: mostly the memory that the answer takes."""
ENTRY = 5

# G, C, the contract, L and T (where the template begins in the call data) stay at the bottom of the stack; `q` walks
# over the wallets, `out` is where the next answer goes.
SOURCE = f"""
    GAS {OUT + 0x60} MSTORE
    CHAINID {OUT + 0x20} MSTORE
    TIMESTAMP {OUT + 0x40} MSTORE
    {MAGIC:#x} 0 CALLDATALOAD XOR {OUT} MSTORE
    32 CALLDATALOAD EXTCODESIZE {OUT + 0xC0} MSTORE
    0 CALLDATALOAD                          ; w
    DUP1 32 SHR 0xffffffff AND SWAP1        ; G w
    DUP1 64 SHR 0xffffffff AND SWAP1        ; G C w
    32 CALLDATALOAD SWAP1                   ; G C contract w
    DUP1 0xffffffff AND SWAP1               ; G C contract L w
    96 SHR 0xffff AND 32 MUL 64 ADD         ; G C contract L T
    DUP2 DUP2 0 CALLDATACOPY                ; the template at 0
    DUP2 DUP2 ADD {OUT + HEADER}            ; G C contract L T q out
next:
    CALLDATASIZE DUP3 LT ISZERO @done JUMPI ; until q reaches the end
    {OUT + ROOM} DUP2 GT @done JUMPI        ; or there is no more room
    DUP7 DUP1 5 SHR ADD {MARGIN} ADD        ; ... out gas-wanted (63/64 of it, EIP-150, still is G and more)
    GAS LT @done JUMPI                      ; ... out
    DUP2 CALLDATALOAD 96 SHR 64             ; ... out wallet p
place:
    DUP5 DUP2 LT ISZERO @placed JUMPI       ; until p reaches T
    DUP2 DUP2 CALLDATALOAD MSTORE           ; the wallet at that place
    32 ADD @place JUMP
placed:
    POP POP GAS                             ; ... out g
    0 0 DUP7 0 DUP10 DUP13 STATICCALL       ; ... out g success (nothing is copied yet)
    GAS DUP3 SUB 4 MUL                      ; ... out g success used*4
    DUP10 3 MUL LT                          ; ... out g success burnt (more than three quarters of G)
    DUP2 2 MUL 3 SUB                        ; ... out g success burnt 3-2*success
    DUP2 ISZERO MUL SWAP1 4 MUL ADD         ; ... out g success status
    DUP1 DUP5 MSTORE8                       ; ... out g success status
    1 EQ SWAP2 POP POP                      ; ... out answered
    RETURNDATASIZE 224 SHL DUP3 1 ADD MSTORE
    RETURNDATASIZE DUP8                     ; ... out answered size C
    DUP2 DUP2 XOR SWAP1 DUP3 GT MUL XOR MUL ; ... out n (of an answer, at most C)
    DUP1 0 DUP4 {ENTRY} ADD RETURNDATACOPY  ; ... out n
    ADD {ENTRY} ADD                         ; ... out'
    SWAP1 20 ADD SWAP1                      ; ... q' out'
    @next JUMP
done:
    SWAP1 {OUT + 0xA0} MSTORE               ; ... out
    GAS {OUT + 0x80} MSTORE
    {OUT} SWAP1 SUB {OUT} RETURN
"""
CODE = "0x" + assemble(SOURCE).hex()


@dataclass(frozen=True, slots=True)
class CopiedAnswer:
    """The first bytes of what a contract answered, and the size of all of it."""

    copied: bytes
    size: int


@dataclass(frozen=True, slots=True)
class ViewAnswers:
    """What one run of the program said: the answers for as many wallets as it got to."""

    said: tuple[CopiedAnswer | Silence, ...]
    code_size: int
    timestamp: int
    gas: int
    gas_used: int


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
    """The program's call data; `nonce` has 18 bytes, `contract` and each of the owners 20."""
    numbers = (most_bytes.to_bytes(4, "big"), gas.to_bytes(4, "big"), len(template).to_bytes(4, "big"))
    words = [place.to_bytes(32, "big") for place in places]
    head = (nonce, len(places).to_bytes(2, "big"), *numbers, bytes(12), contract, *words)
    return b"".join((*head, template, *owners))


def read_answer(provider: str, answer: bytes, data: bytes, count: int, chain_id: int) -> ViewAnswers:
    """The answers for the `count` wallets of this call data, or ProviderConfused when any mark is missing or wrong."""
    if len(answer) < HEADER:
        raise ProviderConfused(provider, f"{len(answer)} bytes where answers should be")
    words = [int.from_bytes(answer[at : at + 32], "big") for at in range(0, HEADER, 32)]
    if words[0] ^ MAGIC != int.from_bytes(data[:32], "big"):
        raise ProviderConfused(provider, "the answers lack their mark")
    if words[1] != chain_id:
        raise ProviderConfused(provider, f"the answers are of chain {words[1]}")
    if not 0 < words[4] < words[3]:
        raise ProviderConfused(provider, "the answers cost no gas")
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
    return ViewAnswers(tuple(said), words[6], words[2], words[3], words[3] - words[4])
