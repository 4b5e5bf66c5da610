"""The loop program's call data and answer: every mark that is missing or wrong is seen."""

import pytest

from gateways.errors import ProviderConfused
from gateways.evm_loop import HEADER, MAGIC, assemble, call_data, read_answer

NONCE = bytes(range(28))
DATA = call_data(NONCE, 1, [b"\x11" * 20, b"\x22" * 20], b"\x33" * 60)
WORD = int.from_bytes(DATA[:32], "big")


def answer(
    mark: int = WORD ^ MAGIC, chain: int = 1, gas: tuple[int, int] = (50, 40), rows: bytes | None = None
) -> bytes:
    right = bytes((1, 3, 0)) + (40).to_bytes(4, "big") + bytes((2, 0, 255)) + (60).to_bytes(4, "big")
    words = (mark, chain, 1_700_000_000, *gas)
    return b"".join(word.to_bytes(32, "big") for word in words) + (right if rows is None else rows)


def test_a_right_answer_gives_each_contracts_cells_and_how_far_it_got() -> None:
    said = read_answer("node", answer(), DATA, 1)
    assert said.cells == (bytes((1, 3, 0)), bytes((2, 0, 255)))
    assert said.reached == (2, 3)
    assert (said.gas, said.gas_used, said.timestamp) == (50, 10, 1_700_000_000)


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
        answer(rows=bytes((1, 3, 9)) + (40).to_bytes(4, "big") + bytes((2, 0, 5)) + (60).to_bytes(4, "big")),
        answer(rows=bytes((1, 3, 0)) + (41).to_bytes(4, "big") + bytes((2, 0, 5)) + (60).to_bytes(4, "big")),
        answer(rows=bytes((1, 3, 0)) + (80).to_bytes(4, "big") + bytes((2, 0, 5)) + (60).to_bytes(4, "big")),
    ],
)
def test_every_other_answer_is_confusion(wrong: bytes) -> None:
    with pytest.raises(ProviderConfused):
        read_answer("node", wrong, DATA, 1)


def test_an_answer_to_other_call_data_is_confusion() -> None:
    other = call_data(bytes(28), 1, [b"\x11" * 20, b"\x22" * 20], b"\x33" * 60)
    with pytest.raises(ProviderConfused):
        read_answer("node", answer(), other, 1)


def test_rows_of_zeros_are_unknown_to_the_last_cell() -> None:
    rows = (bytes(3) + bytes(4)) * 2
    assert read_answer("node", answer(rows=rows), DATA, 1).reached == (0, 0)
    assert HEADER + len(rows) == len(answer(rows=rows))


def test_the_assembler_pushes_numbers_small_and_resolves_labels() -> None:
    assert assemble("1 0x1234 ADD ; a comment\nthere: @there JUMP").hex() == "60016112340" + "15b61000656"
