"""The program that reads balances inside the EVM: one `eth_call` asks every collection about every owner.

It is put at a scratch address by `eth_call`'s state override, so nothing is deployed. Call data: one word (28 bytes of
nonce, the width W of a cell, a zero byte, two bytes K), then K contracts and the owners, 20 bytes each. Answer:

    word 0   MAGIC xor the call data's first word: only this program, run on this very call data, says that
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    then for each contract its owners' cells (W bytes each) and 4 bytes: how many bytes of owners it got to

A cell is the balance plus one, at most 2^(8W)-1, and 0 means *unknown*. So memory never written, an answer of zeros and
a failed call all read as unknown, never as "holds none". A call counts when it succeeds and returns exactly 32 bytes;
no more than those are copied. Each contract may use an equal share of the gas that is left, and each call has exactly
CALL_GAS: a contract that burns gas, reverts or returns nonsense spoils only its own cells.
"""

from dataclasses import dataclass

from gateways.errors import ProviderConfused

SCRATCH = "0x484f4c44464153540000000000000000000b00b5"
"""Where the program runs; nobody's address."""
CALL_GAS = 200_000
"""Gas for one balanceOf; it costs about 3,000 for a plain ERC-721 (performance §1)."""
MARGIN = 215_000
"""A call starts only with this much of the share left, so that 63/64 of it (EIP-150) still is CALL_GAS and more."""
HEADER = 160
MAGIC = 0x686F6C64666173742062616C616E6365206C6F6F702C2072756E207468697321

_OPCODES = {
    name: code
    for line in (
        "00 STOP ADD MUL SUB DIV",
        "10 LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR",
        "34 CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY",
        "3d RETURNDATASIZE",
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

# Comments after `;` give the stack after the line, its top at the right. W, shift (256-8W) and cap (2^(8W)-2) stay at
# the bottom; `owners` is where the owners begin in the call data, `k` and `o` walk over contracts and owners, `out` is
# where the next cell goes.
SOURCE = f"""
    GAS 0xe0 MSTORE
    CHAINID 0xa0 MSTORE
    TIMESTAMP 0xc0 MSTORE
    {MAGIC:#x} 0 CALLDATALOAD XOR 0x80 MSTORE
    0x70a08231 224 SHL 0 MSTORE             ; balanceOf(address) at 0, its argument at 4 (external-apis §4.5)
    0 CALLDATALOAD 28 BYTE                  ; W
    DUP1 8 MUL 256 SUB                      ; W shift
    DUP2 8 MUL 1 SWAP1 SHL 2 SWAP1 SUB      ; W shift cap
    0 CALLDATALOAD 0xffff AND 20 MUL 32 ADD ; W shift cap owners
    32 0x120                                ; W shift cap owners k out
next_contract:
    DUP3 DUP3 LT ISZERO @done JUMPI         ; until k reaches owners
    DUP2 DUP4 SUB 20 SWAP1 DIV              ; ... k out contracts-left
    GAS DIV GAS SUB                         ; ... k out floor (gas that is the later contracts')
    SWAP1                                   ; ... k floor out
    DUP3 CALLDATALOAD 96 SHR SWAP1          ; ... k floor contract out
    DUP5                                    ; ... k floor contract out o
next_owner:
    CALLDATASIZE DUP2 LT ISZERO @contract_done JUMPI
    DUP4 {MARGIN} ADD GAS LT @contract_done JUMPI
    DUP1 CALLDATALOAD 96 SHR 4 MSTORE
    32 0x40 36 0 DUP7 {CALL_GAS} STATICCALL ; ... o success (32 bytes at most come to 0x40)
    RETURNDATASIZE 32 EQ AND ISZERO @skip JUMPI
    0x40 MLOAD DUP8                         ; ... o v cap
    DUP2 DUP2 XOR SWAP1 DUP3 GT MUL XOR     ; ... o min(v, cap)
    1 ADD DUP9 SHL DUP3 MSTORE              ; ... o
skip:
    20 ADD SWAP1 DUP9 ADD SWAP1             ; ... out+W o+20
    @next_owner JUMP
contract_done:
    DUP6 DUP2 SUB SWAP1                     ; ... k floor contract out read o
    CALLDATASIZE SUB 20 SWAP1 DIV DUP10 MUL ; ... k floor contract out read skipped (cells never reached)
    SWAP1 224 SHL SWAP2 ADD                 ; ... k floor contract count out
    SWAP1 DUP2 MSTORE 4 ADD                 ; ... k floor contract out
    SWAP2 POP POP                           ; ... k out
    SWAP1 20 ADD SWAP1                      ; ... k+20 out
    @next_contract JUMP
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


@dataclass(frozen=True, slots=True)
class LoopAnswer:
    """What one run of the program said: per contract its cells, and how many owners it got to."""

    cells: tuple[bytes, ...]
    reached: tuple[int, ...]
    timestamp: int
    gas: int
    gas_used: int


def call_data(nonce: bytes, width: int, contracts: list[bytes], owners: bytes | memoryview) -> bytes:
    """The program's call data; `nonce` has 28 bytes, `owners` 20 each without gaps."""
    return b"".join((nonce, bytes((width, 0)), len(contracts).to_bytes(2, "big"), *contracts, owners))


def read_answer(provider: str, answer: bytes, data: bytes, chain_id: int) -> LoopAnswer:
    """The answer to this call data, or ProviderConfused when any of its marks is missing or wrong."""
    width, contracts = data[28], int.from_bytes(data[30:32], "big")
    owners = (len(data) - 32) // 20 - contracts
    row = owners * width + 4
    if len(answer) != HEADER + contracts * row:
        raise ProviderConfused(provider, f"{len(answer)} bytes where balances should be")
    words = [int.from_bytes(answer[at : at + 32], "big") for at in range(0, HEADER, 32)]
    if words[0] ^ MAGIC != int.from_bytes(data[:32], "big"):
        raise ProviderConfused(provider, "the balances lack their mark")
    if words[1] != chain_id:
        raise ProviderConfused(provider, f"the balances are of chain {words[1]}")
    if not 0 < words[4] < words[3]:
        raise ProviderConfused(provider, "the balances cost no gas")
    cells, reached = list[bytes](), list[int]()
    for start in range(HEADER, len(answer), row):
        line, count = answer[start : start + row - 4], int.from_bytes(answer[start + row - 4 : start + row], "big")
        got = count // 20
        if count % 20 or got > owners or any(line[got * width :]):
            raise ProviderConfused(provider, "the balances contradict their own count")
        cells.append(line)
        reached.append(got)
    return LoopAnswer(tuple(cells), tuple(reached), words[2], words[3], words[3] - words[4])
