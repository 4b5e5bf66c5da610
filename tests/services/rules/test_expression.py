"""Trees of conditions: how they are read, refused and written back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.rules.expression import (
    UNREADABLE,
    AtLeast,
    ExpressionRefused,
    Not,
    Requirement,
    evaluate,
    parse,
    parse_stored,
    requirements,
    to_document,
    with_sense,
)

LEAF = {"type": "basic", "chain": "base", "contract": "0xaa", "minTokens": 2}


@pytest.mark.parametrize(
    "document",
    [
        LEAF,
        {"not": LEAF},
        {"all": [LEAF, {**LEAF, "chain": "polygon"}]},
        {"any": [LEAF, {"not": LEAF}]},
        {"atLeast": {"n": 2, "of": [LEAF, LEAF, LEAF]}},
        {**LEAF, "type": "trait", "trait": {"type": "Fur", "value": "Gold"}},
        {**LEAF, "type": "trait", "traits": [{"type": "Fur", "value": "Gold"}, {"type": "Level", "value": "5..10"}]},
        {**LEAF, "type": "token_id", "tokenIds": ["1", "100-200"]},
        {**LEAF, "maxTokens": 2},
        {**LEAF, "minTokens": 0, "maxTokens": 0},
    ],
)
def test_a_tree_reads_back_as_itself(document: dict[str, Any]) -> None:
    assert to_document(parse(document)) == document


def test_a_type_of_a_newer_version_is_read_and_answers_nothing() -> None:
    leaf = parse({**LEAF, "type": "held_since", "days": 30})
    assert isinstance(leaf, Requirement)
    assert (leaf.type, leaf.kind.source) == ("held_since", "nothing")


CALL = {
    "type": "call", "chain": "base", "contract": "0x" + "aa" * 20, "args": ["{wallet}"], "compare": "<=", "value": "5",
    "function": "stakedOf(address) view returns (uint256)",
}  # fmt: skip
MINT = "So11111111111111111111111111111111111111112"
TOKENS = {"type": "token_id", "chain": "base", "contract": "0x" + "aa" * 20, "tokenIds": ["2", "100-200"]}
COIN = {"type": "token", "chain": "base", "contract": "0x" + "aa" * 20, "min": "0.5", "decimals": 18}


@pytest.mark.parametrize(
    ("stored", "newer"),
    [
        (CALL, {"compare": "!="}),
        (CALL, {"value": "a fifth"}),
        (CALL, {"function": "staked of the wallet"}),
        (CALL, {"args": ["{member}"]}),
        (CALL, {"path": "the last"}),
        (COIN, {"min": "1e3"}),
        (COIN, {"max": "all"}),
        (TOKENS, {"tokenIds": ["1-10 but 5"]}),
        (TOKENS, {"tokenIds": ["2", "the last"]}),
        ({**TOKENS, "chain": "solana", "tokenIds": [MINT]}, {"tokenIds": [MINT, "2"]}),
    ],
)
def test_a_value_that_only_a_newer_version_knows_answers_nothing(stored: dict[str, Any], newer: dict[str, Any]) -> None:
    """An unknown comparison would otherwise be taken for another one, and cost members their roles."""
    assert parse_stored({"not": stored}) == parse({"not": stored})
    leaf = parse_stored({"not": {**stored, **newer}})
    assert isinstance(leaf, Requirement)
    assert (leaf.type, leaf.kind.source) == (UNREADABLE, "nothing")


def test_a_type_that_only_a_newer_version_has_leaves_the_conditions_beside_it_readable() -> None:
    tree = parse_stored({"all": [LEAF, {"type": "newer", "points": 3}, {"type": "any_wallet"}]})
    assert [leaf.type for leaf in requirements(tree)] == [LEAF["type"], "newer", "any_wallet"]
    answers = {"newer": Answer.UNKNOWN, "any_wallet": Answer.YES}
    for said, expected in ((Answer.NO, Answer.NO), (Answer.YES, Answer.UNKNOWN)):
        assert evaluate(tree, lambda leaf, said=said: answers.get(leaf.type, said)) is expected


def test_any_nft_names_no_contract() -> None:
    assert parse({"type": "any_nft", "chain": "base"}) == parse({"type": "any_nft", "chain": "base", "contract": "any"})


def nested(levels: int) -> dict[str, Any]:
    return LEAF if levels == 1 else {"not": nested(levels - 1)}


@pytest.mark.parametrize(
    "document",
    [
        None, [], "x", {}, {"all": []}, {"any": "x"}, {"atLeast": {"n": 3, "of": [LEAF]}}, {"atLeast": [LEAF]},
        {"atLeast": {"n": True, "of": [LEAF]}}, {**LEAF, "minTokens": 0}, {**LEAF, "minTokens": "2"},
        {**LEAF, "contract": ""}, {**LEAF, "trait": "Gold"}, {**LEAF, "tokenIds": [1]}, nested(5),
        {"any": [LEAF] * 41}, {"all": [LEAF], "any": [LEAF]}, {"not": LEAF, **LEAF}, {"any": [LEAF], "chain": "base"},
        {**LEAF, "minToken": 5}, {"atLeast": {"n": 1, "of": [LEAF], "all": [LEAF]}},
        {**LEAF, "trait": {"type": "Fur", "value": "Gold", "values": ["Silver"]}},
        {**LEAF, "maxTokens": 1}, {**LEAF, "maxTokens": True}, {**LEAF, "maxTokens": "9"}, {**LEAF, "traits": []},
        {**LEAF, "traits": [{"type": "Fur", "value": "Gold"}], "trait": {"type": "Fur", "value": "Gold"}},
        {**LEAF, "traits": [{"type": "Fur", "value": "Gold"}] * 11},
    ],
)  # fmt: skip
def test_what_is_no_tree_of_ours_is_refused(document: object) -> None:
    with pytest.raises(ExpressionRefused):
        parse(document)


def test_four_levels_and_forty_leaves_are_taken() -> None:
    assert len(list(requirements(parse({"any": [LEAF] * 40})))) == 40
    assert evaluate(parse(nested(4)), lambda _: Answer.YES) is Answer.NO


@pytest.mark.parametrize(
    ("first", "second", "both", "either"),
    [
        ("yes", "yes", "yes", "yes"), ("yes", "no", "no", "yes"), ("yes", "unknown", "unknown", "yes"),
        ("no", "no", "no", "no"), ("no", "unknown", "no", "unknown"), ("unknown", "unknown", "unknown", "unknown"),
    ],
)  # fmt: skip
def test_all_and_any_follow_kleene(first: str, second: str, both: str, either: str) -> None:
    answers = {"0x1": Answer(first), "0x2": Answer(second)}
    of = [{**LEAF, "contract": "0x1"}, {**LEAF, "contract": "0x2"}]
    for branches in (of, of[::-1]):
        assert evaluate(parse({"all": branches}), lambda leaf: answers[leaf.contract]).value == both
        assert evaluate(parse({"any": branches}), lambda leaf: answers[leaf.contract]).value == either


def test_each_leaf_has_the_sense_of_its_place() -> None:
    mine, other, both = (Requirement("basic", "base", "0x" + digit * 40) for digit in "abc")
    tree = AtLeast(2, (mine, Not(AtLeast(1, (other, Not(both)))), Not(both)))
    assert with_sense(tree) == ((mine, True), (other, False), (both, True), (both, False))
    assert with_sense(Not(Not(other))) == ((other, True),)


@pytest.mark.parametrize(
    ("least", "most", "amount", "rounded"),
    [
        (1, None, 0, 0), (1, None, 99, 99), (1, None, 999, 999), (1, None, 1_234_567, 1_230_000),
        (1_255, None, 1_257, 1_260), (1_255, None, 1_254, 1_250), (1_555, 1_558, 1_556, 1_555),
        (1, 1_005, 1_007, 1_010), (1, None, int("5a" * 20, 16), 515 * 10**45),
    ],
)  # fmt: skip
def test_a_large_amount_keeps_three_digits_and_its_side_of_the_bounds(
    least: int, most: int | None, amount: int, rounded: int
) -> None:
    assert Requirement("basic", "base", "0xaa", min_tokens=least, max_tokens=most).rounded(amount) == rounded


@given(st.integers(0, 10**6), st.none() | st.integers(0, 10**6), st.integers(0, 10**7))
def test_a_rounded_amount_says_as_much_about_the_bounds(least: int, span: int | None, amount: int) -> None:
    leaf = Requirement("basic", "base", "0xaa", min_tokens=least, max_tokens=None if span is None else least + span)

    def answer(held: int) -> bool:
        return held >= least and (leaf.most is None or held <= leaf.most)

    assert answer(leaf.rounded(amount)) is answer(amount)
    assert abs(leaf.rounded(amount) - amount) <= amount / 100


def test_an_amount_that_no_json_number_holds_exactly_is_a_text() -> None:
    leaf = parse(LEAF)
    assert isinstance(leaf, Requirement)
    largest = 2**53 - 1
    assert [leaf.in_json(one) for one in (0, 7, largest)] == [0, 7, largest]
    assert [leaf.in_json(one) for one in (largest + 1, 10**30)] == [str(largest + 1), "1" + "0" * 30]
