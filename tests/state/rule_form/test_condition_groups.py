"""The form's conditions and groups compared with the stored trees: nothing is lost in either direction."""

from hypothesis import given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.rules.expression import AtLeast, Expression, Not, Requirement, evaluate, parse, to_document
from state.rule_form.condition_groups import ALL, ANY, MODES, NONE, SOME, Condition, Group, from_tree, to_tree

A, B, C = (Requirement("basic", "base", f"0x{number:040x}") for number in (1, 2, 3))

conditions = st.builds(Condition, st.sampled_from([A, B, C]), st.booleans())
inner = st.builds(
    Group, st.sampled_from(MODES), st.lists(conditions, min_size=1, max_size=3).map(tuple), st.integers(1, 3)
)
groups = st.builds(
    Group,
    st.sampled_from(MODES),
    st.lists(st.one_of(conditions, inner), min_size=1, max_size=4).map(tuple),
    st.integers(1, 4),
)
answers = st.lists(st.sampled_from(list(Answer)), min_size=3, max_size=3)


def answer(tree: Expression, known: list[Answer]) -> Answer:
    return evaluate(tree, lambda leaf: known[int(leaf.contract, 16) - 1])


def counted(group: Group, known: list[Answer]) -> Answer:
    """Return the meaning of the form's words, implemented a second time."""
    found: list[Answer] = []
    for part in group.parts:
        if isinstance(part, Group):
            found.append(counted(part, known))
        else:
            found.append(answer(Not(part.leaf) if part.negated else part.leaf, known))
    yes, no = found.count(Answer.YES), found.count(Answer.NO)
    least = {ALL: len(found), ANY: 1, SOME: min(group.least, len(found)), NONE: 1}[group.mode]
    told = Answer.YES if yes >= least else Answer.NO if len(found) - no < least else Answer.UNKNOWN
    turned = {Answer.YES: Answer.NO, Answer.NO: Answer.YES, Answer.UNKNOWN: Answer.UNKNOWN}
    return turned[told] if group.mode == NONE else told


@given(groups, answers)
def test_a_group_means_what_it_says_and_fits_the_stored_form(group: Group, known: list[Answer]) -> None:
    tree = to_tree(group)
    assert answer(tree, known) is counted(group, known)
    assert answer(parse(to_document(tree)), known) is counted(group, known)


@given(groups, answers)
def test_what_the_form_made_it_can_show_again(group: Group, known: list[Answer]) -> None:
    shown = from_tree(to_tree(group))
    assert shown is not None
    assert answer(to_tree(shown), known) is counted(group, known)


def test_groups_are_shown_as_they_were_chosen() -> None:
    one, two, three = Condition(A), Condition(B), Condition(C, negated=True)
    for group in (
        Group(ALL, (one,)),
        Group(ALL, (one, two, three)),
        Group(ANY, (one, Group(ALL, (two, three)))),
        Group(SOME, (one, two, three), 2),
        Group(NONE, (one, two)),
        Group(ALL, (one, Group(NONE, (two, Condition(C))))),
    ):
        assert from_tree(to_tree(group)) == group


def test_a_rule_deeper_than_the_form_is_not_shown() -> None:
    deep = AtLeast(2, (A, AtLeast(1, (B, AtLeast(2, (A, C))))))
    assert from_tree(deep) is None
    assert from_tree(Not(deep)) is None
    assert from_tree(AtLeast(1, (AtLeast(1, (deep.of[0],)),))) == Group(ALL, (Condition(A),))
