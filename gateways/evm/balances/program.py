"""The program that reads balances inside the EVM: one `eth_call` asks many contracts, each about owners of its own.

It is put at a scratch address by `eth_call`'s state override, so nothing is deployed. Call data:

    one word          27 bytes of nonce, the width W of a cell (1 byte), the number of entries and the sum of their
                      weights (2 bytes each)
    for each entry    a contract (20 bytes), its weight, the position of its first owner and how many owners (2 each)
    the owners        20 bytes each

Entries that follow each other may share owners, and several entries may name one contract: those come one after the
other, the first has the weight of all, the others have 0. Answer:

    word 0   MAGIC xor the call data's first word: only this program, run on this very call data, says that
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    then for each entry its owners' cells (W bytes each), how many owners at its end it did not get to (2 bytes) and
    the gas that was left (6 bytes, its lower bits)

A cell is the balance plus one, at most 2^(8W)-1, and 0 means *unknown*. So memory never written, an answer of zeros and
a failed call all read as unknown, never as "holds none". A call counts when it succeeds and returns exactly 32 bytes;
no more than those are copied. Each call has exactly CALL_GAS: a balance must not depend on how much gas is left. Each
contract may use a share of the gas that is left, in proportion to its weight, and at most one call more than that: a
contract that burns gas, reverts or returns nonsense spoils only its own cells.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateways.transport.errors import ProviderConfused

SCRATCH = "0x484f4c44464153540000000000000000000b00b5"
"""Where the program runs; nobody's address."""
CALL_GAS = 200_000
"""Gas for one balanceOf; it costs about 3,000 for a plain ERC-721 (docs/facts.md#cost-of-a-balance-check)."""
MARGIN = 215_000
"""A call starts only with this much gas left, so that 63/64 of it (EIP-150) still is CALL_GAS and more."""
WALK_GAS = 500
"""Gas for an entry whose owners are not asked about; it is kept for all entries, so that each one has its record."""
HEADER = 160
ENTRY, RECORD = 26, 8
_GAS = (1 << 48) - 1
"""The lower bits of the gas, which are what an entry's record holds."""
MAGIC = 0x686F6C64666173742062616C616E6365206C6F6F702C2072756E207468697321

_OPCODES = {
    name: code
    for line in (
        "00 STOP ADD MUL SUB DIV",
        "10 LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR",
        "31 BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY",
        "3b EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY",
        "42 TIMESTAMP",
        "46 CHAINID",
        "50 POP MLOAD MSTORE MSTORE8 SLOAD SSTORE",
        "56 JUMP JUMPI",
        "5a GAS JUMPDEST",
        "f3 RETURN",
        "fd REVERT INVALID",
        "fa STATICCALL",
        "80 " + " ".join(f"DUP{n}" for n in range(1, 17)),
        "90 " + " ".join(f"SWAP{n}" for n in range(1, 17)),
    )
    for code, name in enumerate(line.split()[1:], start=int(line.split()[0], 16))
}

# Comments after `;` give the stack after the line, its top at the right. W, shift (256-8W), cap (2^(8W)-2) and `owners`
# (where they begin in the call data) stay at the bottom. `floor` is the gas that is not the present contract's to use,
# `left` the weight of the contracts to come; `e` walks over entries, `o` over owners; the next cell goes to `out`.
SOURCE = f"""
    GAS 0xe0 MSTORE
    CHAINID 0xa0 MSTORE
    TIMESTAMP 0xc0 MSTORE
    {MAGIC:#x} 0 CALLDATALOAD XOR 0x80 MSTORE
    0x70a08231 224 SHL 0 MSTORE             ; balanceOf(address) at 0, its argument at 4 (docs/facts.md#token-standards)
    0 CALLDATALOAD 27 BYTE                  ; W
    DUP1 8 MUL 256 SUB                      ; W shift
    DUP2 8 MUL 1 SWAP1 SHL 2 SWAP1 SUB      ; W shift cap
    0 CALLDATALOAD 16 SHR 0xffff AND {ENTRY} MUL 32 ADD ; W shift cap owners
    0 0 CALLDATALOAD 0xffff AND             ; W shift cap owners floor left
    32 0x120                                ; W shift cap owners floor left e out
next_entry:
    DUP5 DUP3 LT ISZERO @done JUMPI         ; until e reaches owners
    DUP2 CALLDATALOAD 48 SHR                ; ... floor left e out entry
    DUP1 32 SHR 0xffff AND                  ; ... floor left e out entry weight
    DUP1 ISZERO @same_contract JUMPI
    DUP5 DUP2 GAS MUL DIV GAS SUB           ; ... floor left e out entry weight GAS-GAS*weight/left
    0 CALLDATALOAD 16 SHR 0xffff AND {WALK_GAS} MUL {MARGIN} ADD ; ... weight floor' least
    DUP2 DUP2 XOR SWAP1 DUP3 SLT MUL XOR    ; ... weight max(floor', least) (floor' may be below 0)
    SWAP6 POP                               ; ... floor' left e out entry weight
    DUP1 DUP6 SUB SWAP5 POP                 ; ... floor' left' e out entry weight
same_contract:
    POP DUP1 0xffff AND 20 MUL              ; ... e out entry size
    DUP2 16 SHR 0xffff AND 20 MUL DUP8 ADD  ; ... e out entry size o
    SWAP1 DUP2 ADD                          ; ... e out entry o end
    SWAP2 48 SHR SWAP1                      ; ... e out end contract o
next_owner:
    DUP3 DUP2 LT ISZERO @entry_done JUMPI   ; until o reaches end
    DUP7 GAS LT @entry_done JUMPI           ; or the gas falls below floor
    DUP1 CALLDATALOAD 96 SHR 4 MSTORE
    32 0x40 36 0 DUP6 {CALL_GAS} STATICCALL ; ... o success (32 bytes at most come to 0x40)
    RETURNDATASIZE 32 EQ AND ISZERO @skip JUMPI
    0x40 MLOAD DUP10                        ; ... o v cap
    DUP2 DUP2 XOR SWAP1 DUP3 GT MUL XOR     ; ... o min(v, cap)
    1 ADD DUP11 SHL DUP5 MSTORE             ; ... e out end contract o
skip:
    20 ADD DUP11 DUP5 ADD SWAP4 POP         ; ... e out+W end contract o+20
    @next_owner JUMP
entry_done:
    SWAP1 POP SWAP1 SUB 20 SWAP1 DIV        ; ... e out n (owners it did not get to)
    DUP1 DUP10 MUL DUP3 ADD                 ; ... e out n out' (past their cells)
    SWAP1 48 SHL GAS 0xffffffffffff AND ADD 192 SHL ; ... e out out' record
    DUP2 MSTORE {RECORD} ADD SWAP1 POP      ; ... e out'
    SWAP1 {ENTRY} ADD SWAP1                 ; ... e' out'
    @next_entry JUMP
done:
    GAS 0x100 MSTORE
    0x80 SWAP1 SUB 0x80 RETURN
"""


def assemble(source: str) -> bytes:
    """EVM code from opcodes, numbers (pushed in as few bytes as they need), `name:` labels and `@name` to push one."""
    words = [word for line in source.splitlines() for word in line.partition(";")[0].split()]
    code, labels, uses = bytearray(), dict[str, int](), dict[int, str]()
    for word in words:
        if word.endswith(":"):
            labels[word[:-1]] = len(code)
            code.append(_OPCODES["JUMPDEST"])
        elif word.startswith("@"):
            uses[len(code) + 1] = word[1:]
            code += b"\x61\x00\x00"
        elif word in _OPCODES:
            code.append(_OPCODES[word])
        else:
            value = int(word, 0)
            size = max(1, (value.bit_length() + 7) // 8)
            code += bytes([0x5F + size]) + value.to_bytes(size, "big")
    for place, label in uses.items():
        code[place : place + 2] = labels[label].to_bytes(2, "big")
    return bytes(code)


CODE = "0x" + assemble(SOURCE).hex()
NATIVE_SOURCE = """
    4 CALLDATALOAD BALANCE 0 MSTORE
    32 0 RETURN
"""
NATIVE_CODE = "0x" + assemble(NATIVE_SOURCE).hex()
"""What answers `balanceOf(address)` for the chain's own coin, put at NATIVE_ADDRESS as the program is at SCRATCH."""


class Entry(NamedTuple):
    """A contract (20 bytes), its weight for the gas, and its owners: the first one's position and how many."""

    contract: bytes
    weight: int
    first: int
    owners: int


@dataclass(frozen=True, slots=True)
class LoopAnswer:
    """What one run of the program said: for each entry its cells, how many owners it got to and the gas it used."""

    cells: list[bytes]
    reached: list[int]
    used: list[int]
    timestamp: int
    gas: int
    gas_used: int


_ENTRY = struct.Struct(">20sHHH")
_HEAD = struct.Struct(">27sBHH")


def product(contracts: Sequence[bytes], count: int) -> list[Entry]:
    """Entries that ask every contract about the same owners, `count` of them."""
    return [Entry(contract, count, 0, count) for contract in contracts]


def call_data(nonce: bytes, width: int, entries: Sequence[Entry], owners: bytes | memoryview) -> bytes:
    """The program's call data; `nonce` has 27 bytes, `owners` 20 each without gaps."""
    head = _HEAD.pack(nonce, width, len(entries), sum(entry.weight for entry in entries))
    return b"".join((head, *(_ENTRY.pack(*entry) for entry in entries), owners))


def read_answer(provider: str, answer: bytes, data: bytes, entries: Sequence[Entry], chain_id: int) -> LoopAnswer:
    """The answer to this call data of these entries, or ProviderConfused when any of its marks is missing or wrong."""
    width, counts = data[27], [entry.owners for entry in entries]
    if len(answer) != HEADER + sum(counts) * width + len(counts) * RECORD:
        raise ProviderConfused(provider, f"{len(answer)} bytes where balances should be")
    words = [int.from_bytes(answer[at : at + 32], "big") for at in range(0, HEADER, 32)]
    if words[0] ^ MAGIC != int.from_bytes(data[:32], "big"):
        raise ProviderConfused(provider, "the balances lack their mark")
    if words[1] != chain_id:
        raise ProviderConfused(provider, f"the balances are of chain {words[1]}")
    if not 0 < words[4] < words[3]:
        raise ProviderConfused(provider, "the balances cost no gas")
    cells, reached, used = list[bytes](), list[int](), list[int]()
    at, before = HEADER, words[3]
    for count in counts:
        end = at + count * width
        line, record = answer[at:end], int.from_bytes(answer[end : end + RECORD], "big")
        at, missed, gas = end + RECORD, record >> 48, record & _GAS
        # What was not got to must read as unknown.
        if missed > count or (missed and any(line[(count - missed) * width :])):
            raise ProviderConfused(provider, "the balances contradict their own count")
        cells.append(line)
        reached.append(count - missed)
        used.append((before - gas) & _GAS)
        before = gas
    gas_used = words[3] - words[4]
    if not all(used) or sum(used) > gas_used:
        raise ProviderConfused(provider, "the balances contradict their own gas")
    return LoopAnswer(cells, reached, used, words[2], words[3], gas_used)
