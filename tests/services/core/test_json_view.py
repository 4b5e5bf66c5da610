"""A view that the API answers with: one dataclass, camelCase on the wire, without internal fields."""

from dataclasses import replace

from pydantic import TypeAdapter

from services.core.json_view import Internal, json_view


@json_view
class Leaf:
    """A leaf."""

    leaf_name: str


@json_view
class Branch:
    """A branch; `leafCount` counts its leaves."""

    leaf_count: int
    known_leaves: tuple[Leaf, ...]
    kept_back: Internal[str]


BRANCH = Branch(1, (Leaf("oak"),), "secret")
ADAPTER = TypeAdapter(Branch)


def test_names_are_camel_case_in_the_order_of_the_fields_and_internal_ones_stay_out() -> None:
    written = ADAPTER.dump_json(replace(BRANCH, leaf_count=2), by_alias=True)
    assert written == b'{"leafCount":2,"knownLeaves":[{"leafName":"oak"}]}'


def test_its_description_says_the_same_as_the_class() -> None:
    described = ADAPTER.json_schema(mode="serialization")
    assert described["description"] == "A branch; `leafCount` counts its leaves."
    assert described["required"] == list(described["properties"]) == ["leafCount", "knownLeaves"]


def test_an_instance_is_written_as_it_is() -> None:
    assert ADAPTER.validate_python(BRANCH, from_attributes=True) is BRANCH
