"""Token ids as people type them: what becomes an entry, what stays one, and what gets a message."""

import pytest

from services.errors import FieldRefused
from services.token_ids import MOST_ENTRIES, added, bounds, normal

MINT = "So11111111111111111111111111111111111111112"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("42", ("42",)),
        ("  7 ", ("7",)),
        ("100-200", ("100-200",)),
        ("100 - 200", ("100-200",)),
        ("1, 2,100-200 , 5", ("1", "2", "100-200", "5")),
        ("1,,2,", ("1", "2")),
        ("", ()),
        (" , ", ()),
        ("007", ("7",)),
        ("5-5", ("5",)),
        ("0-1000000", ("0-1000000",)),
        (str(2**256 - 1), (str(2**256 - 1),)),
    ],
)
def test_ids_ranges_and_lists_become_entries(text: str, entries: tuple[str, ...]) -> None:
    assert added((), text, "base") == entries


@pytest.mark.parametrize(
    ("before", "text", "message"),
    [
        ((), "200-100", "200-100 runs backwards. Write the smaller ID first: 100-200."),
        ((), "gold", "gold is not a token ID. Write a number like 42, a range like 100-200, or several with commas."),
        ((), "-5", "-5 is not a token ID."),
        ((), "1-2-3", "1-2-3 is not a token ID."),
        ((), "1.5", "1.5 is not a token ID."),
        ((), "٣", "٣ is not a token ID."),
        (("5",), "5", "5 is already in the list."),
        (("5",), "005", "5 is already in the list."),
        (("1-10",), "7", "7 is already in the list."),
        (("1-10",), "2-3", "2-3 is already in the list."),
        ((), "4,4", "4 is already in the list."),
        ((), str(2**256), "is larger than any token ID."),
    ],
)
def test_what_cannot_be_taken_says_why(before: tuple[str, ...], text: str, message: str) -> None:
    with pytest.raises(FieldRefused) as refused:
        added(before, text, "base")
    assert message in refused.value.message


def test_nothing_of_a_list_is_added_when_one_part_is_wrong() -> None:
    with pytest.raises(FieldRefused):
        added(("1",), "2,x", "base")
    assert added(("1",), "2,3", "base") == ("1", "2", "3")


def test_on_solana_tokens_are_mint_addresses_and_never_ranges() -> None:
    assert added((), MINT, "solana") == (MINT,)
    for text in ("5", "1-2", "0x" + "1" * 40):
        with pytest.raises(FieldRefused, match="is not a mint address"):
            added((), text, "solana")
    with pytest.raises(FieldRefused, match="already"):
        added((MINT,), MINT, "solana")


def test_a_list_has_an_end_but_a_range_may_be_as_long_as_it_likes() -> None:
    assert len(normal([str(2 * number) for number in range(MOST_ENTRIES)], "base")) == MOST_ENTRIES
    with pytest.raises(FieldRefused, match="at most"):
        normal([str(2 * number) for number in range(MOST_ENTRIES + 1)], "base")


def test_an_entry_has_bounds_unless_it_is_a_mint() -> None:
    assert bounds("5") == (5, 5)
    assert bounds("5-9") == (5, 9)
    assert bounds(MINT) is None
