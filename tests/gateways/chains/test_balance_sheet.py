"""Balance sheets: an amount that was not read is unknown, however its address is spelled."""

from datetime import UTC, datetime

import pytest

from gateways.chains import balance_sheet
from gateways.chains.balance_sheet import MOST, BalanceSheet, Cells, packed

OWNERS = [f"0x{n:040x}" for n in range(300, 0, -1)]
CONTRACT = "0x" + "Ab" * 20


def sheet() -> BalanceSheet:
    cells = Cells(1, len(OWNERS))
    for place, amount in {0: 0, 1: 1, 2: 253, 3: 254, 4: 2**256 - 1, 5: None}.items():
        cells.put(0, place, amount)
    return BalanceSheet("base", 7, datetime.now(UTC), 0, "Base node 1", packed([CONTRACT]), packed(OWNERS), cells)


@pytest.mark.parametrize("most_indexed", [50_000, 10], ids=["by dictionary", "by bisection"])
def test_amounts_come_back_as_put_and_the_rest_is_unknown(monkeypatch: pytest.MonkeyPatch, most_indexed: int) -> None:
    monkeypatch.setattr(balance_sheet, "MOST_INDEXED", most_indexed)
    one = sheet()
    amounts = [one.amount(CONTRACT.lower(), f"0x{n:040X}".replace("0X", "0x")) for n in range(1, 8)]
    assert amounts == [0, 1, 253, 254, MOST, None, None]
    assert one.amount(CONTRACT, f"0x{301:040x}") is None
    assert one.amount(CONTRACT, "0x12") is None
    assert one.amount(CONTRACT, "nobody") is None
    assert one.amount("0x" + "cd" * 20, OWNERS[0]) is None
    assert one.unknown(CONTRACT) == 295
    assert list(one.holders(CONTRACT)) == [(f"0x{n + 1:040x}", [0, 1, 253, 254, MOST][n]) for n in range(1, 5)]


def test_a_fresh_sheet_knows_nothing() -> None:
    cells = Cells(2, 3)
    assert [cells.get(c, o) for c in range(2) for o in range(3)] == [None] * 6


def test_packing_sorts_and_drops_repetitions_and_refuses_what_is_no_address() -> None:
    assert packed([OWNERS[0], OWNERS[-1], OWNERS[0].upper().replace("0X", "0x")]) == bytes(19) + b"\1" + bytes(18) + (
        300
    ).to_bytes(2, "big")
    for wrong in ("", "0x", OWNERS[0][:-1], OWNERS[0] + "00", "11" * 20):
        with pytest.raises(ValueError):
            packed([wrong])
