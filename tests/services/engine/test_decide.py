"""The decision table, row by row, and the properties that every possible decision must have."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.engine.decide import NEW_ROLE_PAUSE, Action, Decision, GrantFacts, decide
from services.rules.expression import AtLeast, Expression, Not, Requirement, evaluate
from services.rules.rule_terms import RuleTerms

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LEAF = Requirement("basic", "base", "0x" + "1" * 40)
YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
HELD = GrantFacts("role", "held", (1,))


def rule(number: int = 1, state: str = "active", *, hours: int = 0, deleted: bool = False) -> RuleTerms:
    return RuleTerms(number, "role", LEAF, state, hours, deleted)


def only(decisions: list[Decision]) -> Decision:
    assert len(decisions) == 1
    return decisions[0]


@pytest.mark.parametrize(
    ("answer", "grant", "has_role", "action"),
    [
        (YES, None, False, Action.GIVE),
        (YES, None, True, Action.NONE),
        (YES, HELD, True, Action.KEEP),
        (YES, HELD, False, Action.LOST),
        (YES, GrantFacts("role", "giving", (1,)), False, Action.NONE),
        (YES, GrantFacts("role", "giving", (1,), no_since=NOW), True, Action.KEEP),
        (YES, GrantFacts("role", "taking", (1,)), True, Action.RETURN),
        (YES, GrantFacts("role", "lost", (1,)), False, Action.NONE),
        (YES, GrantFacts("role", "lost", (1,)), True, Action.FORGET),
        (NO, None, True, Action.NONE),
        (NO, None, False, Action.NONE),
        (NO, HELD, True, Action.TAKE),
        (NO, HELD, False, Action.FORGET),
        (YES, GrantFacts("role", "held", (1,), never_given=True), False, Action.RETURN),
        (NO, GrantFacts("role", "held", (1,), never_given=True), False, Action.TAKE),
        (NO, GrantFacts("role", "giving", (1,)), True, Action.TAKE),
        (NO, GrantFacts("role", "taking", (1,)), True, Action.NONE),
        (NO, GrantFacts("role", "lost", (1,)), False, Action.FORGET),
        (NO, GrantFacts("role", "held", (1,), protected=True), True, Action.NONE),
        (NO, GrantFacts("role", "held", (1,), protected=True), False, Action.FORGET),
        (NO, GrantFacts("role", "taking", (1,), protected=True), True, Action.RETURN),
        (NO, GrantFacts("role", "giving", (1,), protected=True), False, Action.TAKE),
        (NO, GrantFacts("role", "lost", (1,), protected=True), True, Action.FORGET),
        (YES, GrantFacts("role", "held", (1,), protected=True), True, Action.KEEP),
        (UNKNOWN, None, False, Action.NONE),
        (UNKNOWN, HELD, True, Action.NONE),
        (UNKNOWN, HELD, False, Action.NONE),
        (UNKNOWN, GrantFacts("role", "taking", (1,)), True, Action.CALL_OFF),
        (UNKNOWN, GrantFacts("role", "taking", (1,)), False, Action.NONE),
        (UNKNOWN, GrantFacts("role", "taking", (1,), never_given=True), False, Action.CALL_OFF),
    ],
)
def test_one_rule_decides(answer: Answer, grant: GrantFacts | None, has_role: bool, action: Action) -> None:
    live = frozenset({"role"}) if has_role else frozenset[str]()
    assert only(decide([rule()], {1: answer}, [grant] if grant else [], live, NOW)).action is action


def test_any_yes_gives_and_only_all_no_takes() -> None:
    rules, live = [rule(1), rule(2)], frozenset({"role"})
    assert only(decide(rules, {1: NO, 2: YES}, [HELD], live, NOW)).action is Action.KEEP
    assert only(decide(rules, {1: NO, 2: UNKNOWN}, [HELD], live, NOW)).action is Action.NONE
    assert only(decide(rules, {1: NO, 2: NO}, [HELD], live, NOW)).action is Action.TAKE


@pytest.mark.parametrize("state", ["paused", "shadow"])
def test_a_resting_rule_neither_gives_nor_takes_and_what_it_gave_stays(state: str) -> None:
    assert only(decide([rule(state=state)], {}, [], frozenset(), NOW)).action is Action.NONE
    assert only(decide([rule(state=state)], {}, [HELD], frozenset({"role"}), NOW)).action is Action.NONE
    beside = [rule(1, state), rule(2)]
    assert only(decide(beside, {2: NO}, [HELD], frozenset({"role"}), NOW)).action is Action.NONE


@pytest.mark.parametrize("state", ["paused", "shadow"])
def test_a_rule_that_rests_is_not_forgotten_while_another_says_yes(state: str) -> None:
    beside, live = [rule(1, state), rule(2)], frozenset({"role"})
    both = GrantFacts("role", "held", (1, 2))
    kept = only(decide(beside, {2: YES}, [both], live, NOW))
    assert (kept.action, kept.rule_ids) == (Action.KEEP, (1, 2))
    after = GrantFacts("role", "held", kept.rule_ids)
    assert only(decide(beside, {2: NO}, [after], live, NOW)).action is Action.NONE
    newcomer = only(decide(beside, {2: YES}, [], frozenset(), NOW))
    assert newcomer.rule_ids == (2,), "what rests has given nothing"


def test_a_rule_that_cannot_be_answered_keeps_its_part_in_the_role() -> None:
    rules, both = [rule(1), rule(2)], GrantFacts("role", "held", (1, 2))
    assert only(decide(rules, {1: UNKNOWN, 2: YES}, [both], frozenset({"role"}), NOW)).rule_ids == (1, 2)
    assert only(decide(rules, {1: NO, 2: YES}, [both], frozenset({"role"}), NOW)).rule_ids == (2,)
    assert only(decide(rules, {1: UNKNOWN, 2: YES}, [], frozenset(), NOW)).rule_ids == (2,)


def test_a_role_that_somebody_took_comes_back_only_by_a_rule_made_after_that() -> None:
    lost = GrantFacts("role", "lost", (1,), lost_at=NOW)
    hour = timedelta(hours=1)
    before, after = replace(rule(1), created_at=NOW - hour), replace(rule(2), created_at=NOW + hour)
    assert only(decide([before], {1: YES}, [lost], frozenset(), NOW)).action is Action.NONE
    assert only(decide([before, after], {1: YES, 2: NO}, [lost], frozenset(), NOW)).action is Action.NONE
    again = only(decide([before, after], {1: YES, 2: YES}, [lost], frozenset(), NOW))
    assert (again.action, again.rule_ids) == (Action.RETURN, (1, 2))
    assert only(decide([after], {2: YES}, [lost], frozenset({"role"}), NOW)).action is Action.FORGET
    assert only(decide([after], {2: YES}, [replace(lost, lost_at=None)], frozenset(), NOW)).action is Action.NONE
    assert only(decide([rule(2)], {2: YES}, [lost], frozenset(), NOW)).action is Action.NONE


@pytest.mark.parametrize(
    ("answer", "state", "has_role", "action"),
    [
        (NO, "held", True, Action.NONE),
        (NO, "giving", False, Action.NONE),
        (NO, "held", False, Action.FORGET),
        (UNKNOWN, "held", True, Action.NONE),
        (YES, "held", True, Action.KEEP),
        (YES, "giving", False, Action.KEEP),
    ],
)
def test_a_gift_of_an_admins_is_not_taken(answer: Answer, state: str, has_role: bool, action: Action) -> None:
    gift = GrantFacts("role", state, gift=True)
    live = frozenset({"role"}) if has_role else frozenset[str]()
    assert only(decide([rule()], {1: answer}, [gift], live, NOW)).action is action
    assert only(decide([], {}, [gift], frozenset({"role"}), NOW)).action is Action.NONE


def test_a_deleted_rule_lets_go_of_what_it_gave() -> None:
    assert only(decide([rule(deleted=True)], {}, [HELD], frozenset({"role"}), NOW)).action is Action.TAKE
    paused = rule(state="paused", deleted=True)
    assert only(decide([paused], {}, [HELD], frozenset({"role"}), NOW)).action is Action.TAKE


def test_a_grace_time_runs_from_the_first_no() -> None:
    live, patient = frozenset({"role"}), [rule(hours=24)]
    first = only(decide(patient, {1: NO}, [HELD], live, NOW))
    assert (first.action, first.no_since, first.due_at) == (Action.WAIT, NOW, NOW + timedelta(hours=24))
    waiting = GrantFacts("role", "held", (1,), no_since=NOW)
    assert only(decide(patient, {1: NO}, [waiting], live, NOW + timedelta(hours=23))).action is Action.WAIT
    assert only(decide(patient, {1: NO}, [waiting], live, NOW + timedelta(hours=24))).action is Action.TAKE
    assert only(decide(patient, {1: YES}, [waiting], live, NOW + timedelta(hours=24))).action is Action.KEEP


@pytest.mark.parametrize(("gave", "hours"), [((1,), 0), ((2,), 24), ((1, 2), 24), ((), 24)])
def test_the_longest_grace_time_of_the_rules_that_gave_the_role_counts(gave: tuple[int, ...], hours: int) -> None:
    rules, grant = [rule(1), rule(2, hours=24), rule(3, "paused", hours=72)], GrantFacts("role", "held", gave)
    decided = only(decide(rules, {1: NO, 2: NO}, [grant], frozenset({"role"}), NOW))
    assert decided.due_at == (NOW + timedelta(hours=hours) if hours else None)


def test_a_role_that_is_being_given_has_a_grace_time_only_if_it_is_there() -> None:
    patient, new = [rule(hours=24)], GrantFacts("role", "giving", (1,))
    assert only(decide(patient, {1: NO}, [new], frozenset(), NOW)).action is Action.TAKE
    assert only(decide(patient, {1: NO}, [new], frozenset({"role"}), NOW)).action is Action.WAIT


def test_a_role_that_its_rule_no_longer_gives_goes_after_that_rules_grace_time() -> None:
    live, moved = frozenset({"role"}), RuleTerms(1, "another role", LEAF, "active", 24)

    def old(*rules: RuleTerms, **answers: Answer) -> Decision:
        said = {int(name[1:]): answer for name, answer in answers.items()}
        return next(one for one in decide(rules, said, [HELD], live, NOW) if one.role_id == "role")

    for answer in Answer:
        waiting = old(moved, n1=answer)
        assert (waiting.action, waiting.due_at) == (Action.WAIT, NOW + timedelta(hours=24)), answer
    assert old(moved, rule(2), n1=YES, n2=YES).action is Action.KEEP
    assert old(moved, rule(2), n1=YES, n2=UNKNOWN).action is Action.NONE
    assert old(moved, rule(2), n1=YES, n2=NO).action is Action.WAIT
    assert old(RuleTerms(1, "another role", LEAF, "active"), n1=NO).action is Action.TAKE


@pytest.mark.parametrize(
    ("answer", "there", "grant", "action"),
    [
        (YES, False, None, Action.WAIT),
        (YES, False, "giving", Action.WAIT),
        (UNKNOWN, False, None, Action.WAIT),
        (YES, True, "held", Action.TAKE),
        (YES, True, None, Action.TAKE),
        (NO, False, None, Action.TAKE),
        (YES, False, "lost", Action.TAKE),
    ],
    ids=["to be given", "on its way", "unknown", "there", "by others", "not earned", "taken by others"],
)
def test_a_role_waits_for_the_one_that_its_rule_gives_now(
    answer: Answer, there: bool, grant: str | None, action: Action
) -> None:
    rules = [RuleTerms(1, "new role", LEAF, "active")]
    grants = [HELD, *([GrantFacts("new role", grant, (1,))] if grant else [])]
    live = frozenset({"role", "new role"} if there else {"role"})
    decided = next(one for one in decide(rules, {1: answer}, grants, live, NOW) if one.role_id == "role")
    assert (decided.action, decided.replaced) == (action, action is Action.WAIT)
    assert decided.due_at == (NOW + NEW_ROLE_PAUSE if decided.replaced else None)
    taking = [replace(HELD, state="taking"), *grants[1:]]
    decided = next(one for one in decide(rules, {1: answer}, taking, live, NOW) if one.role_id == "role")
    assert decided.action is Action.NONE, "what is on its way is not decided again"


def test_a_removal_that_is_turned_round_keeps_the_rules_that_gave_the_role() -> None:
    taking = replace(HELD, state="taking", protected=True)
    (decided,) = decide([rule(1)], {1: NO}, [taking], frozenset({"role"}), NOW)
    assert (decided.action, decided.rule_ids) == (Action.RETURN, HELD.rule_ids)


def test_a_role_waits_for_no_new_one_that_is_left_alone() -> None:
    rules, live = [RuleTerms(1, "new role", LEAF, "active")], frozenset({"role"})
    decided = decide(rules, {1: YES}, [HELD], live, NOW, {"new role": NOW + timedelta(hours=1)})
    assert {one.role_id: one.action for one in decided} == {"new role": Action.NONE, "role": Action.TAKE}


@pytest.mark.parametrize("state", ["paused", "shadow"])
def test_a_role_that_its_rule_no_longer_gives_stays_while_that_rule_rests(state: str) -> None:
    moved = RuleTerms(1, "another role", LEAF, state, 24)
    assert [one.action for one in decide([moved], {}, [HELD], frozenset({"role"}), NOW)] == [Action.NONE, Action.NONE]
    deleted = RuleTerms(1, "another role", LEAF, state, 24, deleted=True)
    waiting = decide([deleted], {}, [HELD], frozenset({"role"}), NOW)[-1]
    assert (waiting.role_id, waiting.action) == ("role", Action.WAIT)
    at_once = decide([replace(deleted, grace_hours=0)], {}, [HELD], frozenset({"role"}), NOW)[-1]
    assert at_once.action is Action.TAKE, "nobody waits for a role that a deleted rule would give"


def handed_over(number: int = 1, *, hours: int = 0, state: str = "active") -> RuleTerms:
    return RuleTerms(number, "role", LEAF, state, hours, takes_over=True)


def test_a_role_handed_over_becomes_ours_where_the_rule_says_yes() -> None:
    adopted = only(decide([handed_over()], {1: YES}, [], frozenset({"role"}), NOW))
    assert (adopted.action, adopted.rule_ids, adopted.no_since) == (Action.ADOPT, (1,), None)
    assert only(decide([handed_over()], {1: YES}, [], frozenset(), NOW)).action is Action.GIVE
    assert only(decide([handed_over()], {1: NO}, [], frozenset(), NOW)).action is Action.NONE
    assert only(decide([handed_over()], {1: YES}, [HELD], frozenset({"role"}), NOW)).action is Action.KEEP


def test_a_role_handed_over_that_nobody_earned_is_ours_first_and_then_goes_as_any_other() -> None:
    live = frozenset({"role"})
    adopted = only(decide([handed_over(hours=24)], {1: NO}, [], live, NOW))
    assert (adopted.action, adopted.no_since, adopted.due_at) == (Action.ADOPT, NOW, NOW + timedelta(hours=24))
    ours = GrantFacts("role", "held", adopted.rule_ids, no_since=adopted.no_since)
    assert only(decide([handed_over(hours=24)], {1: NO}, [ours], live, NOW)).action is Action.WAIT
    assert only(decide([handed_over(hours=24)], {1: NO}, [ours], live, NOW + timedelta(hours=24))).action is Action.TAKE
    assert only(decide([handed_over(hours=24)], {1: UNKNOWN}, [ours], live, NOW)).action is Action.NONE


def test_what_is_unknown_or_does_not_decide_takes_nothing_over() -> None:
    live = frozenset({"role"})
    assert only(decide([handed_over()], {1: UNKNOWN}, [], live, NOW)).action is Action.NONE
    assert only(decide([handed_over(1), rule(2)], {1: NO, 2: UNKNOWN}, [], live, NOW)).action is Action.NONE
    assert only(decide([handed_over(1), rule(2)], {1: NO, 2: YES}, [], live, NOW)).action is Action.ADOPT
    for state in ("paused", "shadow"):
        assert only(decide([handed_over(1, state=state), rule(2)], {2: NO}, [], live, NOW)).action is Action.NONE
        beside = [handed_over(1), rule(2, state, hours=72), rule(3, hours=24)]
        adopted = only(decide(beside, {1: NO, 3: NO}, [], live, NOW))
        assert (adopted.rule_ids, adopted.due_at) == ((1, 3), NOW + timedelta(hours=24))


answers = st.sampled_from(list(Answer))
states = st.sampled_from(["active", "paused", "shadow"])
grants = st.none() | st.builds(
    GrantFacts,
    st.just("role"),
    st.sampled_from(["giving", "held", "taking", "lost"]),
    st.lists(st.integers(1, 4), max_size=3).map(tuple),
    never_given=st.booleans(),
)
rule_lists = st.lists(st.tuples(states, st.booleans(), answers), min_size=1, max_size=4)


@given(rule_lists, grants, st.booleans(), st.booleans())
def test_unknown_changes_nothing(
    rows: list[tuple[str, bool, Answer]], grant: GrantFacts | None, has_role: bool, takes_over: bool
) -> None:
    rules = [
        RuleTerms(number, "role", LEAF, state, deleted=deleted, takes_over=takes_over)
        for number, (state, deleted, _) in enumerate(rows, 1)
    ]
    given_answers = {number: answer for number, (_, _, answer) in enumerate(rows, 1)}
    live = frozenset({"role"}) if has_role else frozenset[str]()
    ledger = [grant] if grant else []
    decision = only(decide(rules, given_answers, ledger, live, NOW))
    if any(item.decides and given_answers[item.id] is not NO for item in rules):
        assert decision.action not in {Action.TAKE, Action.WAIT}
        assert decision.no_since is None
    deciding = {given_answers[item.id] for item in rules if item.decides}
    being_taken = grant is not None and grant.state == "taking" and (has_role or grant.never_given)
    if UNKNOWN in deciding and YES not in deciding:
        assert decision.action is (Action.CALL_OFF if being_taken else Action.NONE)
    assert only(decide(rules[::-1], given_answers, ledger, live, NOW)).action is decision.action


@given(rule_lists, grants, st.booleans(), st.integers(1, 4))
def test_more_holdings_never_take_a_role(
    rows: list[tuple[str, bool, Answer]], grant: GrantFacts | None, has_role: bool, better: int
) -> None:
    rules = [rule(number, state, deleted=deleted) for number, (state, deleted, _) in enumerate(rows, 1)]
    before = {number: answer for number, (_, _, answer) in enumerate(rows, 1)}
    after = {**before, better: YES}
    live = frozenset({"role"}) if has_role else frozenset[str]()
    ledger = [grant] if grant else []
    if only(decide(rules, before, ledger, live, NOW)).action is not Action.TAKE:
        assert only(decide(rules, after, ledger, live, NOW)).action is not Action.TAKE


def leaf(number: int) -> Requirement:
    return Requirement("basic", "base", f"0x{number:040x}")


trees = st.recursive(
    st.integers(0, 5).map(leaf),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).flatmap(
            lambda of: st.integers(1, len(of)).map(lambda n: AtLeast(n, tuple(of)))
        ),
    ),
    max_leaves=8,
)


@given(trees, st.lists(answers, min_size=6, max_size=6))
def test_a_tree_answers_unknown_only_when_the_unknown_parts_could_tip_it(tree: Expression, known: list[Answer]) -> None:
    def with_unknown_as(replacement: Answer) -> Answer:
        return evaluate(tree, lambda item: _known(item, known) if _known(item, known) is not UNKNOWN else replacement)

    answer = evaluate(tree, lambda item: _known(item, known))
    if answer is not UNKNOWN:
        assert with_unknown_as(YES) is answer
        assert with_unknown_as(NO) is answer


def _known(item: Requirement, known: list[Answer]) -> Answer:
    return known[int(item.contract, 16)]


RANK = {NO: 0, UNKNOWN: 1, YES: 2}
rising = st.recursive(
    st.integers(0, 5).map(leaf),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda of: st.integers(1, len(of)).map(lambda n: AtLeast(n, tuple(of)))
    ),
    max_leaves=8,
)
six = st.lists(answers, min_size=6, max_size=6)


@given(st.lists(rising, min_size=1, max_size=3), six, six, grants, st.booleans())
def test_a_member_who_holds_more_loses_no_role_of_a_rule_without_not(
    expressions: list[Expression], before: list[Answer], more: list[Answer], grant: GrantFacts | None, has_role: bool
) -> None:
    after = [max(pair, key=lambda answer: RANK[answer]) for pair in zip(before, more, strict=True)]
    rules = [RuleTerms(number, "role", tree, "active") for number, tree in enumerate(expressions, 1)]
    live, ledger = frozenset({"role"}) if has_role else frozenset[str](), [grant] if grant else []

    def decided(known: list[Answer]) -> tuple[dict[int, Answer], Decision]:
        said = {item.id: evaluate(item.expression, lambda one: _known(one, known)) for item in rules}
        return said, only(decide(rules, said, ledger, live, NOW))

    (first, poor), (second, rich) = decided(before), decided(after)
    assert all(RANK[second[number]] >= RANK[answer] for number, answer in first.items())
    losing = {Action.TAKE, Action.WAIT}
    assert rich.action not in losing or poor.action in losing


@given(trees, six, st.randoms())
def test_the_order_of_conditions_is_nothing(tree: Expression, known: list[Answer], order: Random) -> None:
    def shuffled(part: Expression) -> Expression:
        if isinstance(part, Not):
            return Not(shuffled(part.branch))
        if isinstance(part, AtLeast):
            branches = [shuffled(branch) for branch in part.of]
            order.shuffle(branches)
            return AtLeast(part.n, tuple(branches))
        return part

    def answer(one: Requirement) -> Answer:
        return _known(one, known)

    assert evaluate(shuffled(tree), answer) is evaluate(tree, answer)


@pytest.mark.parametrize(
    ("answer", "grant", "has_role", "action"),
    [
        (YES, None, False, Action.NONE),
        (YES, HELD, True, Action.KEEP),
        (YES, HELD, False, Action.LOST),
        (YES, GrantFacts("role", "taking", (1,)), True, Action.RETURN),
        (NO, HELD, True, Action.NONE),
        (NO, HELD, False, Action.FORGET),
    ],
)
def test_a_role_that_is_left_alone_is_neither_given_nor_taken(
    answer: Answer, grant: GrantFacts | None, has_role: bool, action: Action
) -> None:
    live, until = frozenset({"role"} if has_role else ()), NOW + timedelta(hours=3)
    decided = only(decide([rule()], {1: answer}, [grant] if grant else [], live, NOW, {"role": until}))
    assert decided.action is action
    elsewhere = only(decide([rule()], {1: answer}, [grant] if grant else [], live, NOW, {"another": until}))
    assert elsewhere == only(decide([rule()], {1: answer}, [grant] if grant else [], live, NOW))


@pytest.mark.parametrize(("hours", "again_in"), [(3, 180), (0, 1)], ids=["when it is over", "not at once when it is"])
def test_when_a_role_that_is_left_alone_is_decided_again(hours: int, again_in: int) -> None:
    waiting = only(decide([rule()], {1: YES}, [], frozenset(), NOW, {"role": NOW + timedelta(hours=hours)}))
    assert (waiting.action, waiting.due_at) == (Action.NONE, NOW + timedelta(minutes=again_in))
