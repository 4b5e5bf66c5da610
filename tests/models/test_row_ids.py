"""Ids that come from addresses, forms, buttons and calls."""

import pytest

from models.db.row_ids import LARGEST, fits, row_id


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0), ("7", 7), ("007", 7), ("2147483647", 2**31 - 1), ("2147483648", None), ("9" * 10, None),
        ("9" * 5000, None), ("", None), ("-1", None), ("+1", None), ("1.0", None), (" 1", None), ("1_0", None),
        ("²", None), ("٣", None), ("x", None),
    ],
)  # fmt: skip
def test_a_text_is_an_id_only_if_a_row_can_have_it(text: str, found: int | None) -> None:
    assert row_id(text) == found


@pytest.mark.parametrize(
    ("number", "does"), [(-1, False), (0, False), (1, True), (LARGEST, True), (LARGEST + 1, False), (10**30, False)]
)
def test_a_number_fits_only_if_a_row_can_have_it(number: int, does: bool) -> None:
    assert fits(number) is does
