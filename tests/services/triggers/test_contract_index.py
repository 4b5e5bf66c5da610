"""What is kept in memory of rules' expressions, and how much memory that takes."""

import json
import tracemalloc

from services.triggers.contract_index import NamedContract, PlacesByExpression


def expression(number: int, conditions: int = 40) -> str:
    """Return the expression of a distinct rule, with a long list of token ids beside its conditions."""
    leaves = [{"type": "basic", "chain": "base", "contract": f"0x{number:020x}{one:020x}"} for one in range(conditions)]
    ids = {"type": "token_id", "chain": "polygon", "contract": "0x1", "tokenIds": ["7" * 70] * 100}
    return json.dumps({"any": [*leaves[:-1], ids]})


def test_places_are_those_of_the_conditions() -> None:
    places = PlacesByExpression()
    for _ in range(2):
        assert places.of(expression(1, 2)) == {
            NamedContract("base", f"0x{1:020x}{0:020x}"),
            NamedContract("polygon", "0x1"),
        }


def test_memory_is_bounded_however_many_and_long_the_expressions_are() -> None:
    most = 400_000
    places = PlacesByExpression(most)
    tracemalloc.start()
    try:
        for number in range(300):
            assert len(places.of(expression(number))) == 40
            assert places.bytes <= most
        assert tracemalloc.get_traced_memory()[0] < 3 * most
    finally:
        tracemalloc.stop()
