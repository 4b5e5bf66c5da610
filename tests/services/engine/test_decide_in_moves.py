"""What an open move keeps and hands over, whatever the rules say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from services.engine.decide import Action, GrantFacts, MoveTerms, decide
from services.rules.rule_terms import RuleTerms
from tests.services.engine.test_decide import HELD, LEAF, NO, NOW, UNKNOWN, YES, only, rule

MOVING = MoveTerms(frozenset({"role"}), begun=True)
ADOPTED = GrantFacts("role", "held", (1,), had_before=True)


@pytest.mark.parametrize(
    ("grant", "has_wallet", "kept"),
    [
        (ADOPTED, True, True),
        (ADOPTED, False, True),
        (HELD, False, True),
        (HELD, True, False),
        (replace(HELD, state="giving"), False, False),
        (replace(ADOPTED, forgotten=True), False, False),
        (replace(ADOPTED, role_id="another"), False, False),
    ],
    ids=["others gave it", "theirs, no wallet", "no wallet", "ours", "on its way", "forgotten", "not moving"],
)
def test_an_open_move_keeps_what_others_gave_and_what_only_a_wallet_lacks_for(
    grant: GrantFacts, has_wallet: bool, kept: bool
) -> None:
    live, rules = frozenset({grant.role_id}), [RuleTerms(1, grant.role_id, LEAF, "active")]
    moving = replace(MOVING, has_wallet=has_wallet)
    first = only(decide(rules, {1: NO}, [grant], live, NOW, moving=moving))
    assert (first.action, first.due_at) == ((Action.WAIT, None) if kept else (Action.TAKE, None))
    noted = replace(grant, no_since=NOW)
    later = NOW + timedelta(days=400)
    assert only(decide(rules, {1: NO}, [noted], live, later, moving=moving)).action is (
        Action.NONE if kept else Action.TAKE
    )
    assert only(decide([], {}, [noted], live, later, moving=moving)).action is (Action.NONE if kept else Action.TAKE)
    assert only(decide(rules, {1: NO}, [noted], live, later, moving=replace(moving, ended=True))).action is Action.TAKE
    assert only(decide(rules, {1: YES}, [noted], live, later, moving=moving)).action is Action.KEEP


def test_a_removal_on_its_way_is_cancelled_when_a_move_begins() -> None:
    taking = replace(ADOPTED, state="taking")
    assert only(decide([rule()], {1: NO}, [taking], frozenset({"role"}), NOW, moving=MOVING)).action is Action.RETURN
    assert only(decide([rule()], {1: NO}, [taking], frozenset(), NOW, moving=MOVING)).action is Action.NONE


def test_a_move_hands_its_roles_over_from_its_begin_on() -> None:
    live = frozenset({"role"})
    for answer, since in ((YES, None), (NO, NOW)):
        begun = only(decide([rule(hours=24)], {1: answer}, [], live, NOW, moving=MOVING))
        assert (begun.action, begun.no_since, begun.due_at) == (Action.ADOPT, since, None)
        planned = replace(MOVING, begun=False)
        assert only(decide([rule()], {1: answer}, [], live, NOW, moving=planned)).action is Action.NONE
    ended = replace(MOVING, ended=True)
    assert only(decide([rule(hours=24)], {1: NO}, [], live, NOW, moving=ended)).due_at == NOW + timedelta(hours=24)
    assert only(decide([rule()], {1: UNKNOWN}, [], live, NOW, moving=MOVING)).action is Action.NONE
    other = replace(MOVING, roles=frozenset({"another"}))
    assert only(decide([rule()], {1: NO}, [], live, NOW, moving=other)).action is Action.NONE
