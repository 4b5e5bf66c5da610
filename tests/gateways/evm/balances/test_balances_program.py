"""The loop program's call data and answer: every missing or wrong mark is detected."""

import pytest

from gateways.evm.balances.balances_program import HEADER, MAGIC, Entry, LoopAnswer, call_data, product
from gateways.evm.balances.balances_program import read_answer as read
from gateways.transport.errors import ProviderConfused

NONCE = bytes(range(27))
ENTRIES = product([b"\x11" * 20, b"\x22" * 20], 3)
DATA = call_data(NONCE, 1, ENTRIES, b"\x33" * 60)
WORD = int.from_bytes(DATA[:32], "big")


def read_answer(said: bytes) -> LoopAnswer:
    return read("node", said, DATA, ENTRIES, 1)


def record(missed: int, gas: int) -> bytes:
    return missed.to_bytes(2, "big") + gas.to_bytes(6, "big")


def answer(
    mark: int = WORD ^ MAGIC, chain: int = 1, gas: tuple[int, int] = (50, 40), rows: bytes | None = None
) -> bytes:
    right = bytes((1, 3, 0)) + record(1, 47) + bytes((2, 0, 255)) + record(0, 41)
    words = (mark, chain, 1_700_000_000, *gas)
    return b"".join(word.to_bytes(32, "big") for word in words) + (right if rows is None else rows)


def test_a_right_answer_gives_each_entrys_cells_how_far_it_got_and_its_gas() -> None:
    said = read_answer(answer())
    assert said.cells == [bytes((1, 3, 0)), bytes((2, 0, 255))]
    assert (said.reached, said.used) == ([2, 3], [3, 6])
    assert (said.gas, said.gas_used, said.timestamp) == (50, 10, 1_700_000_000)


def test_gas_without_a_limit_is_read_by_its_lower_bits() -> None:
    rows = bytes((1, 3, 1)) + record(0, 5) + bytes((2, 0, 255)) + record(0, 2**48 - 7)
    said = read_answer(answer(gas=(2**63 + 8, 2**63 - 10), rows=rows))
    assert (said.used, said.gas, said.gas_used) == ([3, 12], 2**63 + 8, 18)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        bytes(32),
        bytes(len(answer())),
        answer()[:-1],
        answer() + b"\0",
        answer(mark=MAGIC),
        answer(chain=10),
        answer(gas=(0, 0)),
        answer(gas=(50, 50)),
        answer(rows=bytes((1, 3, 9)) + record(1, 47) + bytes((2, 0, 5)) + record(0, 41)),
        answer(rows=bytes((1, 3, 0)) + record(4, 47) + bytes((2, 0, 5)) + record(0, 41)),
        answer(rows=bytes((1, 3, 0)) + record(1, 50) + bytes((2, 0, 5)) + record(0, 41)),
        answer(rows=bytes((1, 3, 0)) + record(1, 47) + bytes((2, 0, 5)) + record(0, 48)),
        answer(rows=bytes((1, 3, 0)) + record(1, 47) + bytes((2, 0, 5)) + record(0, 39)),
        answer(rows=(bytes(3) + bytes(8)) * 2),
    ],
)
def test_every_other_answer_is_confusion(wrong: bytes) -> None:
    with pytest.raises(ProviderConfused):
        read_answer(wrong)


def test_an_answer_to_other_call_data_is_confusion() -> None:
    other = call_data(bytes(27), 1, ENTRIES, b"\x33" * 60)
    with pytest.raises(ProviderConfused):
        read("node", answer(), other, ENTRIES, 1)


def test_a_call_that_reached_nobody_leaves_all_unknown() -> None:
    rows = bytes(3) + record(3, 47) + bytes(3) + record(3, 41)
    said = read_answer(answer(rows=rows))
    assert (said.reached, said.cells) == ([0, 0], [bytes(3), bytes(3)])
    assert HEADER + len(rows) == len(answer(rows=rows))


def test_call_data_names_entries_of_any_owners() -> None:
    entries = [Entry(b"\x11" * 20, 3, 1, 2), Entry(b"\x11" * 20, 0, 0, 1)]
    data = call_data(NONCE, 8, entries, b"\x33" * 60)
    assert data[:32] == NONCE + bytes((8, 0, 2, 0, 3))
    assert data[32:84] == b"\x11" * 20 + bytes((0, 3, 0, 1, 0, 2)) + b"\x11" * 20 + bytes((0, 0, 0, 0, 0, 1))
    assert data[84:] == b"\x33" * 60
