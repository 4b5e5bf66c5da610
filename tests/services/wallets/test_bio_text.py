"""What a bio proves, and what it does not."""

import tracemalloc

import pytest

from services.wallets.bio_proof import Marker, handle_marker, judge, new_code, prefix
from settings import settings

CODE = "holdfast-abcdefgh23"


@pytest.mark.parametrize(
    ("bio", "marker"),
    [
        (CODE, Marker.CODE),
        (f"gm! {CODE.upper()}, thanks", Marker.CODE),
        (f"x{CODE}", Marker.NOTHING),
        (f"{CODE}x", Marker.BARE_PRODUCT),
        (f"{CODE}-more", Marker.BARE_PRODUCT),
        ("holdfast:dave", Marker.HANDLE),
        ("HoldFast:Dave | gm", Marker.HANDLE),
        ("(holdfast:dave)", Marker.HANDLE),
        ("🔥holdfast:dave🔥", Marker.HANDLE),
        ("holdfast:dave, gm", Marker.HANDLE),
        ("holdfast:dave\ngm", Marker.HANDLE),
        ("holdfast:davenport holdfast:dave", Marker.HANDLE),
        ("holdfast: dave", Marker.SPACED_HANDLE),
        ("I love Holdfast:\n\n\nDave is a great movie", Marker.SPACED_HANDLE),
        ("holdfast: daverson", Marker.BARE_PRODUCT),
        ("notholdfast: dave", Marker.BARE_HANDLE),
        ("holdfast:dave's enemy", Marker.BARE_PRODUCT),
        ("holdfast:dave’s enemy", Marker.BARE_PRODUCT),
        ("http://holdfast:dave@x", Marker.BARE_PRODUCT),
        ("http://holdfast:dave", Marker.BARE_PRODUCT),
        ("holdfast:dave\u200b2", Marker.BARE_PRODUCT),
        ("holdfast:dave\u0301", Marker.BARE_PRODUCT),
        ("holdfa\u017ft:dave", Marker.BARE_HANDLE),
        ("holdfast:daverson", Marker.BARE_PRODUCT),
        ("holdfast:dave.b", Marker.BARE_PRODUCT),
        ("holdfast:dave_b", Marker.BARE_PRODUCT),
        ("notholdfast:dave", Marker.BARE_HANDLE),
        ("Holdfast", Marker.BARE_PRODUCT),
        ("I am dave", Marker.BARE_HANDLE),
        ("holdfast-zzzzzzzz99", Marker.OTHER_CODE),
        ("", Marker.NOTHING),
        ("davenport", Marker.NOTHING),
    ],
)
def test_only_the_own_code_or_the_full_marker_prove(bio: str, marker: Marker) -> None:
    assert judge(bio, CODE, "dave") is marker


def test_an_old_name_counts_without_its_number() -> None:
    assert judge("holdfast:dave", CODE, "dave#1234") is Marker.HANDLE


def test_codes_are_unambiguous_and_never_twice_the_same() -> None:
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    for code in codes:
        name, _, letters = code.partition("-")
        assert name == "holdfast"
        assert len(letters) == 10
        assert not set(letters) & set("ilo01")


@pytest.mark.parametrize(("name", "bio"), [("Замок", "gm 🎮:dave"), ("Замок DC", "dc:dave"), ("X", "x:dave")])
def test_a_products_name_with_hardly_a_latin_letter_makes_no_strangers_bio_a_proof(
    monkeypatch: pytest.MonkeyPatch, name: str, bio: str
) -> None:
    monkeypatch.setenv("PRODUCT_NAME", name)
    settings.cache_clear()
    try:
        assert judge(bio, new_code(), "dave") is Marker.BARE_HANDLE
        assert judge(f"gm {handle_marker('dave')}", new_code(), "dave") is Marker.HANDLE
        code = new_code()
        assert judge(f"gm {code}", code, "dave") is Marker.CODE
    finally:
        settings.cache_clear()


def test_a_bio_full_of_almost_right_markers_is_not_copied_for_each() -> None:
    """Nothing limits a bio's length here, and copies of a megabyte for each marker would block the process."""
    bio = f"{prefix()}:ada_ " * 50_000
    tracemalloc.start()
    try:
        found = judge(bio, "holdfast-abcdefghjk", "ada")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is Marker.BARE_PRODUCT
    assert peak < 1.5 * len(bio)
