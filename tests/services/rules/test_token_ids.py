"""Token ids as people type them: what becomes one entry, and what is refused with a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import FieldRefused
from services.rules.types import token_ids
from services.rules.types.token_ids import MOST_ENTRIES, added, bounds, normal

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


def test_a_list_of_thousands_is_refused_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(token_ids, "_entry", lambda part: read.append(part) or part)
    for refuse in (
        lambda: added((), ",".join(map(str, range(12_000))), "base"),
        lambda: normal([",".join(map(str, range(12_000)))], "base"),
        lambda: normal([str(number) for number in range(12_000)], "base"),
        lambda: added((), "9" * 200_000, "base"),
        lambda: added((), "," * 60_000, "base"),
    ):
        with pytest.raises(FieldRefused, match="at most 500"):
            refuse()
    assert read == []
    with pytest.raises(FieldRefused, match="at most 500"):
        added((), ",".join(map(str, range(700))), "base")
    assert len(read) == MOST_ENTRIES, "the entry after the last one that fits is not parsed"


def test_each_entry_is_parsed_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parsed = token_ids.bounds
    monkeypatch.setattr(token_ids, "bounds", lambda entry: read.append(entry) or parsed(entry))
    entries = normal([str(2 * number) for number in range(MOST_ENTRIES - 1)], "base")
    assert read == list(entries)
    read.clear()
    added(entries, "5-7", "base")
    assert read == [*entries, "5-7"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
def test_an_entry_is_covered_just_where_one_before_it_contains_it(ranges: list[tuple[int, int]]) -> None:
    kept: tuple[str, ...] = ()
    before: list[tuple[int, int]] = []
    for first, last in (sorted(pair) for pair in ranges):
        covered = any(one <= first and last <= other for one, other in before)
        try:
            kept = added(kept, f"{first}-{last}", "base")
        except FieldRefused:
            assert covered
        else:
            assert not covered
            before.append((first, last))
    assert list(map(bounds, kept)) == before
