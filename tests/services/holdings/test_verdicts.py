"""Whole rules: the tree's answer, and NO for members without a proved wallet that the rule could ask about."""

from hypothesis import given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.holdings.evaluate import verdict
from services.rules.expression import AtLeast, Expression, Not, Requirement, evaluate

CATS, DOGS = Requirement("basic", "base", "0xca"), Requirement("basic", "solana", "Dogs")
EVM, SOLANA = ("evm", "0x1"), ("solana", "S1")


def trees() -> st.SearchStrategy[Expression]:
    def nodes(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        some = st.lists(inner, min_size=1, max_size=3).map(tuple)
        groups = some.flatmap(lambda of: st.integers(1, len(of)).map(lambda n: AtLeast(n, of)))
        return st.one_of(groups, inner.map(Not))

    return st.recursive(st.sampled_from([CATS, DOGS]), nodes, max_leaves=5)


@given(trees(), st.sampled_from(Answer))
def test_without_a_wallet_every_rule_says_no(tree: Expression, every: Answer) -> None:
    assert verdict(tree, [], lambda _: every) is Answer.NO


@given(trees(), st.sampled_from(Answer), st.sampled_from(Answer))
def test_with_wallets_of_every_kind_it_is_the_answer_of_the_tree(tree: Expression, cats: Answer, dogs: Answer) -> None:
    def answer(leaf: Requirement) -> Answer:
        return cats if leaf is CATS else dogs

    assert verdict(tree, [EVM, SOLANA], answer) is evaluate(tree, answer)


def test_a_wallet_of_one_kind_proves_no_absence_on_another() -> None:
    assert verdict(Not(CATS), [SOLANA], lambda _: Answer.NO) is Answer.NO
    assert verdict(Not(CATS), [EVM], lambda _: Answer.NO) is Answer.YES
    both = AtLeast(2, (DOGS, Not(CATS)))
    assert verdict(both, [SOLANA], lambda leaf: Answer.YES if leaf is DOGS else Answer.NO) is Answer.YES
