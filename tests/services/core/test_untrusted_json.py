"""JSON that anybody may send: which texts the database can store, and what is inside a value."""

import pytest

from services.core.untrusted_json import can_be_kept, has_utf_8, is_deeper, levels


@pytest.mark.parametrize("text", ["", "Ada", "\x01", "ä" * 9, "\U0001f600", "\ufffe", "\ue000"])
def test_any_character_can_be_kept(text: str) -> None:
    assert can_be_kept(text)
    assert has_utf_8(text)


@pytest.mark.parametrize("half", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_half_a_character_cannot_be_kept(half: int) -> None:
    assert not can_be_kept(f"a{chr(half)}")
    assert not has_utf_8(f"a{chr(half)}")


def test_a_nul_cannot_be_kept() -> None:
    assert not can_be_kept("a\x00")
    assert has_utf_8("a\x00")


def test_what_is_inside_comes_level_by_level() -> None:
    value = {"a": [1, {"b": None}], "c": "d"}
    assert list(levels(value)) == [[value], ["a", "c", [1, {"b": None}], "d"], [1, {"b": None}], ["b", None]]
    assert list(levels("a")) == [["a"]]
    assert list(levels([])) == [[[]]]


def test_depth_counts_lists_and_objects_and_needs_no_stack() -> None:
    nested: object = 1
    for _level in range(5_000):
        nested = [nested]
    assert is_deeper(nested, 5_000)
    assert not is_deeper(nested, 5_001)
    assert not is_deeper(1, 1)
