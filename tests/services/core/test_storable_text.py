"""Which texts the database can store."""

import pytest

from services.core.storable_text import can_be_kept, has_utf_8


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
