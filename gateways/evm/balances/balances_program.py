"""The program that reads balances inside the EVM: one `eth_call` asks many contracts, each about owners of its own.

It is `gateways/evm/programs/balances.yul`, put at a scratch address by `eth_call`'s state override, so nothing is
deployed. Call data:

    one word          27 bytes of nonce, the width W of a cell (1 byte), the number of entries and the sum of their
                      weights (2 bytes each)
    for each entry    a contract (20 bytes), its weight, the position of its first owner and how many owners (2 each)
    the owners        20 bytes each

Entries that follow each other may share owners. Several entries may name one contract: these follow one another, the
first has the weight of all of them, and the others have 0. Answer:

    word 0   MAGIC xor the call data's first word: only this program returns it, run on exactly this call data
    word 1   CHAINID       word 2   TIMESTAMP      word 3   gas at the start      word 4   gas at the end
    then for each entry its owners' cells (W bytes each), how many owners at its end were not reached (2 bytes) and
    the gas that was left (its lower bits, 6 bytes)

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

from gateways.evm.programs import code, header
from gateways.transport.errors import ProviderConfused

SCRATCH = "0x484f4c44464153540000000000000000000b00b5"
"""The address at which the program runs; it belongs to nobody."""
CALL_GAS = 200_000
"""Gas for one balanceOf; it costs about 3,000 for a plain ERC-721 (docs/facts.md#cost-of-a-balance-check)."""
MARGIN = 215_000
"""The gas that must be left before a call starts, so that 63/64 of it (EIP-150) is more than CALL_GAS."""
HEADER = 160
ENTRY, RECORD = 26, 8
_GAS = (1 << 48) - 1
"""A mask for the lower bits of the gas, which an entry's record holds."""
MAGIC = 0x686F6C64666173742062616C616E6365206C6F6F702C2072756E207468697321

CODE = code("balances")
NATIVE_CODE = code("native")
"""The code that answers `balanceOf(address)` for the chain's own coin; the override puts it at NATIVE_ADDRESS."""


class Entry(NamedTuple):
    """A contract (20 bytes), its weight for the gas, and its owners: the position of the first one, and how many."""

    contract: bytes
    weight: int
    first: int
    owners: int


@dataclass(frozen=True, slots=True)
class LoopAnswer:
    """The answer of one run of the program: for each entry its cells, the owners reached and the gas used."""

    cells: list[bytes]
    reached: list[int]
    used: list[int]
    timestamp: int
    gas: int
    gas_used: int


_ENTRY = struct.Struct(">20sHHH")
_HEAD = struct.Struct(">27sBHH")


def product(contracts: Sequence[bytes], count: int) -> list[Entry]:
    """Return entries that ask every contract about the same owners, `count` of them."""
    return [Entry(contract, count, 0, count) for contract in contracts]


def call_data(nonce: bytes, width: int, entries: Sequence[Entry], owners: bytes | memoryview) -> bytes:
    """Return the program's call data; `nonce` has 27 bytes, `owners` 20 each without gaps."""
    head = _HEAD.pack(nonce, width, len(entries), sum(entry.weight for entry in entries))
    return b"".join((head, *(_ENTRY.pack(*entry) for entry in entries), owners))


def read_answer(provider: str, answer: bytes, data: bytes, entries: Sequence[Entry], chain_id: int) -> LoopAnswer:
    """Return the answer to this call data, which was made of these entries.

    Raises ProviderConfused when any of its marks is missing or wrong.
    """
    width, counts = data[27], [entry.owners for entry in entries]
    if len(answer) != HEADER + sum(counts) * width + len(counts) * RECORD:
        raise ProviderConfused(provider, f"{len(answer)} bytes where balances should be")
    words = header(provider, answer, HEADER, data=data, magic=MAGIC, chain_id=chain_id, what="balances")
    cells, reached, used = list[bytes](), list[int](), list[int]()
    at, before = HEADER, words[3]
    for count in counts:
        end = at + count * width
        line, record = answer[at:end], int.from_bytes(answer[end : end + RECORD], "big")
        at, missed, gas = end + RECORD, record >> 48, record & _GAS
        # Owners that were not reached must read as unknown.
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
