"""Traits in the many forms that authors use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains import metadata_traits
from gateways.chains.metadata_traits import LONGEST_LIST, MOST_TRAITS, NoMetadata, Trait, TraitList, of_metadata, read
from gateways.transport.plain_text import plain

BASIC = {"name": "Cat #1", "image": "ipfs://x"}


GOLD = {"trait_type": "Fur", "value": "Gold"}


def listed(*found: tuple[str, Any], whole: bool = True) -> TraitList:
    return TraitList(tuple(Trait(kind, value) for kind, value in found), whole)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([GOLD], listed(("Fur", "Gold"))),
        ([{"trait_type": "Hat", "value": one} for one in "AB"], listed(("Hat", "A"), ("Hat", "B"))),
        ([{"trait_type": "Hat", "value": ["A", "B"]}], listed(("Hat", "A"), ("Hat", "B"))),
        ([{"trait_type": "Level", "value": 7, "display_type": "number"}], listed(("Level", 7))),
        ([{"trait_type": "Level", "value": "7", "display_type": "number"}], listed(("Level", 7))),
        ([{"trait_type": "Level", "value": "7.5", "display_type": "boost_percentage"}], listed(("Level", 7.5))),
        ([{"trait_type": "Born", "value": 1700000000, "display_type": "date"}], listed(("Born", 1700000000))),
        ([{"trait_type": "Level", "value": "high", "display_type": "number"}], listed(("Level", "high"))),
        ([{"trait_type": "Level", "value": "7"}], listed(("Level", "7"))),
        ([{"trait_type": "Alive", "value": True}], listed(("Alive", "true"))),
        ([{"value": "Big"}], listed(("", "Big"))),
        ([{"trait_type": "Hat", "value": None}], listed()),
        ([], listed()),
        ({"Fur": "Gold", "Level": 7}, listed(("Fur", "Gold"), ("Level", 7))),
        ({"Fur": {"name": "Fur", "value": "Gold"}}, listed(("Fur", "Gold"))),
        ([GOLD, {"trait_type": "X", "value": {"a": 1}}], listed(("Fur", "Gold"), whole=False)),
        ([GOLD, "odd"], listed(("Fur", "Gold"), whole=False)),
        ([GOLD, {"trait_type": 1, "value": "x"}], listed(("Fur", "Gold"), whole=False)),
        ([{"trait_type": "Fur", "value": "Go\u202eld\x00 \n x"}], listed(("Fur", "Gold x"))),
        ([GOLD, {"value": "nan", "display_type": "number"}], listed(("Fur", "Gold"), whole=False)),
    ],
)  # fmt: skip
def test_traits_are_read_from_every_form(given_: Any, expected: TraitList) -> None:
    assert read(given_) == expected
    assert of_metadata({"attributes": given_}) == expected


@pytest.mark.parametrize("given_", ["Gold", 7, True, ["odd"], [{"trait_type": "X", "value": {"a": 1}}]])
def test_what_cannot_be_read_is_no_empty_list(given_: Any) -> None:
    with pytest.raises(NoMetadata):
        read(given_)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (BASIC, listed(whole=False)),
        (BASIC | {"attributes": None}, listed(whole=False)),
        (BASIC | {"attributes": []}, listed()),
        (BASIC | {"traits": [GOLD]}, listed(("Fur", "Gold"))),
        (BASIC | {"properties": {"Fur": {"name": "Fur", "value": "Gold"}}}, listed(("Fur", "Gold"), whole=False)),
        (BASIC | {"properties": {"files": [{"uri": "x"}], "creators": [{}]}}, listed(whole=False)),
    ],
)
def test_a_document_without_a_list_of_attributes_is_not_known_to_have_none(document: Any, expected: TraitList) -> None:
    assert of_metadata(document) == expected


@pytest.mark.parametrize("document", [{}, {"error": "not found"}, {"message": "slow down"}, [], "x", None, 7])
def test_what_describes_no_token_is_no_metadata(document: Any) -> None:
    with pytest.raises(NoMetadata):
        of_metadata(document)


def test_a_list_without_end_is_cut_and_then_not_whole() -> None:
    found = read([{"trait_type": str(number), "value": 1} for number in range(MOST_TRAITS + 1)])
    assert (len(found.found), found.whole) == (MOST_TRAITS, False)


def test_a_long_list_of_long_texts_is_cut_and_then_not_whole() -> None:
    found = read([{"trait_type": f"{number} {'x' * 190}", "value": "y" * 490} for number in range(MOST_TRAITS)])
    assert sum(len(trait.kind) + len(str(trait.value)) for trait in found.found) <= LONGEST_LIST
    assert (bool(found.found), found.whole) == (True, False)


def test_a_document_costs_no_more_than_its_size_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    def counted(text: str, longest: int) -> str:
        nonlocal looked_at
        looked_at += len(text)
        return plain(text, longest)

    monkeypatch.setattr(metadata_traits, "plain", counted)
    found = read([{"trait_type": "Hat" * 10_000, "value": list(range(10_000))}])
    assert (bool(found.found), found.whole) == (True, False)
    assert looked_at < 1_000_000, "the whole kind is not read again for each of its values"


@pytest.mark.parametrize("form", [[], {}, 7, True])
def test_a_display_type_that_is_no_text_is_none(form: Any) -> None:
    assert read([GOLD | {"display_type": form}]) == listed(("Fur", "Gold"))


KEYS = ["trait_type", "value", "display_type", "attributes", "name", "x"]
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_whatever_a_stranger_writes_is_traits_or_no_metadata(document: Any) -> None:
    try:
        found = of_metadata(document)
    except NoMetadata:
        return
    assert all(isinstance(trait.value, str | int | float) for trait in found.found)
    assert not any("\0" in f"{trait.kind}{trait.value}" for trait in found.found)
