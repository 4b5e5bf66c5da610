"""How much memory the parsed expressions of rules take in a process that reconciles for weeks."""

import json
import tracemalloc

from services.engine.snapshot import ParsedExpressions
from services.rules.expression import Requirement


def expression(number: int) -> str:
    """Return the text of a distinct expression with many token ids."""
    ids = [str(number * 1_000 + one) for one in range(500)]
    return json.dumps({"type": "token_id", "chain": "base", "contract": "0x1", "minTokens": 1, "tokenIds": ids})


def test_memory_is_bounded_however_often_an_admin_saves_a_long_rule() -> None:
    most = 400_000
    parsed = ParsedExpressions(most)
    tracemalloc.start()
    try:
        for number in range(300):
            assert isinstance(parsed.of(expression(number)), Requirement)
            assert parsed.bytes <= most
        assert tracemalloc.get_traced_memory()[0] < 3 * most
    finally:
        tracemalloc.stop()


def test_equal_texts_are_parsed_once_and_the_least_recently_used_go_first() -> None:
    one, two, three = (expression(number) for number in (901, 902, 903))
    parsed = ParsedExpressions(5 * len(one + two + three))
    first, second = parsed.of(one), parsed.of(two)
    assert parsed.of(one) is first
    parsed.of(three)
    assert parsed.of(one) is first
    assert parsed.of(two) == second
    assert parsed.of(two) is not second
