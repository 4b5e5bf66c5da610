"""A rule after its collection moved to another contract: exact for the sum over both contracts, or no rule at all."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from services.core.answer import Answer
from services.holdings.evaluate import verdict
from services.holdings.fetch_plan import addresses_on
from services.rules.expression import AtLeast, Expression, Not, Requirement, evaluate, parse, to_document
from services.rules.replacements import new_contract
from services.rules.replacements.new_contract import NotCarried, carried
from services.rules.types.coin import CoinAmount
from services.rules.types.view_call import ViewCall

OLD, NEW, OTHER = "0x" + "1" * 40, "0x" + "2" * 40, "0x" + "3" * 40
MOST_HELD = 8


def leaf(least: int, most: int | None = None, contract: str = OLD) -> Requirement:
    return Requirement("basic", "base", contract, least, max_tokens=most)


def on_new(old: Requirement) -> Requirement:
    return replace(old, contract=NEW)


def answered(counts: dict[str, int]) -> Callable[[Requirement], Answer]:
    def answer(one: Requirement) -> Answer:
        held = counts.get(one.contract, 0)
        return Answer.YES if held >= one.least and (one.most is None or held <= one.most) else Answer.NO

    return answer


WRAPPED: tuple[tuple[str, Callable[[Expression], Expression]], ...] = (
    ("alone", lambda tree: tree),
    ("not", Not),
    ("in any", lambda tree: AtLeast(1, (tree, leaf(1, contract=OTHER)))),
    ("in all", lambda tree: AtLeast(2, (tree, leaf(1, contract=OTHER)))),
    ("two of three", lambda tree: AtLeast(2, (tree, leaf(1, contract=OTHER), leaf(2, contract=OTHER)))),
)


@pytest.mark.parametrize("wrap", [one for _, one in WRAPPED], ids=[name for name, _ in WRAPPED])
def test_with_both_contracts_a_rule_holds_exactly_if_it_holds_of_the_sum(wrap: Callable[[Any], Expression]) -> None:
    compared = 0
    for least, most in [(1, None), (2, None), (5, None), (0, 0), (0, 3), (1, 1), (2, 4), (5, 7)]:
        old = leaf(least, most)
        try:
            tree = carried(wrap(old), {old: on_new(old)}, both=True)
        except NotCarried:
            continue
        assert parse(to_document(tree)) == tree
        for of_old, of_new, of_other in product(range(MOST_HELD), range(MOST_HELD), range(3)):
            together = evaluate(wrap(old), answered({OLD: of_old + of_new, OTHER: of_other}))
            apart = evaluate(tree, answered({OLD: of_old, NEW: of_new, OTHER: of_other}))
            assert apart is together, (least, most, of_old, of_new, of_other)
            compared += 1
    assert compared >= 4 * MOST_HELD * MOST_HELD * 3


EVM, SOLANA, BOUND = ("evm", "0xa"), ("solana", "S1"), ("evm:base", "0xb")


@pytest.mark.parametrize("kind", ["basic", "trait", "token_id"])
@pytest.mark.parametrize(
    ("chain", "wallets"),
    [
        *(("solana", wallets) for wallets in ([SOLANA], [EVM], [EVM, SOLANA])),
        *(("base", wallets) for wallets in ([BOUND], [EVM], [EVM, BOUND])),
    ],
)
def test_across_chains_a_member_without_a_wallet_on_one_of_them_has_nothing_there(
    kind: str, chain: str, wallets: list[tuple[str, str]]
) -> None:
    bounds = [(0, 0), (0, 3), (1, None), (1, 1), (1, 4), (2, 4)]
    for least, most in [one for one in bounds if kind != "token_id" or one[0] < 2]:
        old = Requirement(kind, chain, OLD, least, max_tokens=most, token_ids=("1",) if kind == "token_id" else ())
        new = replace(old, chain="ethereum", contract=NEW)
        tree = carried(old, {old: new}, both=True)
        for of_old, of_new in product(range(MOST_HELD), repeat=2):
            there = {one: bool(addresses_on(one.chain, wallets)) for one in (old, new)}
            counts = {OLD: of_old * there[old], NEW: of_new * there[new]}

            def read(one: Requirement, counts: dict[str, int] = counts) -> Answer:
                # As `evaluate.read` does: without a wallet on the chain every condition says no.
                return answered(counts)(one) if addresses_on(one.chain, wallets) else Answer.NO

            together = answered({OLD: sum(counts.values())})(old)
            assert verdict(tree, wallets, read) is together, (least, most, counts)


def test_only_the_new_one_replaces_each_condition_and_leaves_the_others() -> None:
    old, other = leaf(3), leaf(1, contract=OTHER)
    tree = AtLeast(2, (Not(old), other, leaf(5)))
    successors = {one: on_new(one) for one in new_contract.naming(tree, ("base", OLD))}
    assert list(successors) == [old, leaf(5)]
    assert carried(tree, successors, both=False) == AtLeast(2, (Not(on_new(old)), other, on_new(leaf(5))))
    assert new_contract.naming(tree, ("ethereum", OLD)) == []


def test_a_number_too_large_to_be_added_up_is_not_carried_over_but_can_be_replaced() -> None:
    old = leaf(new_contract.MOST_ADDED + 1)
    with pytest.raises(NotCarried, match="More than 20 tokens"):
        carried(old, {old: on_new(old)}, both=True)
    assert carried(old, {old: on_new(old)}, both=False) == on_new(old)
    with pytest.raises(NotCarried, match="too large"):
        carried(leaf(20, 20), {leaf(20, 20): on_new(leaf(20, 20))}, both=True)


def coin(least: str | None, most: str | None) -> Requirement:
    return Requirement("token", "base", OLD, details=CoinAmount(least, most, 18))


def call(compare: str, value: str) -> Requirement:
    details = ViewCall("staked(address) view returns (uint256)", compare=compare, value=value)
    return Requirement("call", "base", OLD, details=details)


@pytest.mark.parametrize(
    ("old", "n", "note"),
    [
        (coin("100", None), 1, "Amounts on the two contracts do not add up"),
        (coin(None, "0"), 2, ""),
        (call(">=", "1"), 1, ""),
        (call(">=", "5"), 1, "Amounts on the two contracts do not add up"),
        (call("=", "7"), 1, ""),
        (call("<=", "0"), 2, ""),
    ],
    ids=["coin", "no coin", "call", "larger call", "exact call", "call of nothing"],
)
def test_amounts_that_are_not_counted_in_tokens_say_what_both_means(old: Requirement, n: int, note: str) -> None:
    tree = carried(old, {old: on_new(old)}, both=True)
    assert tree == AtLeast(n, (on_new(old), old))
    said = " ".join(new_contract.notes({old: on_new(old)}))
    assert said.startswith(note) if note else said == ""


@pytest.mark.parametrize("old", [coin("1", "5"), call("<=", "5")], ids=["coin", "call"])
def test_a_maximum_that_cannot_be_added_up_is_not_carried_over(old: Requirement) -> None:
    with pytest.raises(NotCarried, match="cannot be counted over two contracts"):
        carried(old, {old: on_new(old)}, both=True)
    assert carried(old, {old: on_new(old)}, both=False) == on_new(old)


@pytest.mark.parametrize("old", [coin(None, "0"), call("<=", "0")], ids=["coin", "call"])
def test_an_absence_of_what_is_not_counted_in_tokens_is_not_carried_over_to_another_chain(old: Requirement) -> None:
    with pytest.raises(NotCarried, match="cannot be counted over two contracts"):
        carried(old, {old: replace(on_new(old), chain="ethereum")}, both=True)


def test_the_old_address_as_an_argument_of_another_contract_is_noticed() -> None:
    details = ViewCall("staked(address,address) view returns (uint256)", args=("{wallet}", OLD.upper()))
    tree = Requirement("call", "base", OTHER, details=details)
    assert new_contract.passes_on(tree, ("base", OLD))
    assert not new_contract.passes_on(tree, ("ethereum", OLD))
    assert not new_contract.passes_on(leaf(1), ("base", OLD))
