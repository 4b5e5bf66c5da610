"""What a stored rule's form sends: what was changed in it, and nothing else."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from models import Rule
from services.core.errors import FieldRefused
from services.rules import rule_rows
from services.rules.draft import expression_of
from services.rules.expression import AtLeast, Expression, Requirement, to_document
from services.rules.types.coin import CoinAmount
from services.rules.views import RemovalPolicy
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, FOXES, NAMES, OWLS, fill, leaf
from tests.state.rule_form.filling import form as form


def row(tree: Expression) -> Rule:
    """Return a stored rule with these conditions."""
    made = Rule(
        id=1, server_id=1, name="x", role_id="1", role_name="", expression={}, verification_type="basic",
        contract_address="", blockchain="", created_by="0",
    )  # fmt: skip
    rule_rows.set_expression(made, tree)
    return made


def show(form: RuleFormState, tree: Expression) -> None:
    """Show a stored rule with these conditions."""
    view: Any = SimpleNamespace(
        server_id=1,
        expression=to_document(tree),
        rule_name="Cats",
        role_id="77",
        role_name="Cat",
        role_color="#123456",
        removal=RemovalPolicy("now", 0),
        takes_over=False,
        state="active",
        delegated=False,
    )
    form.rule_id = 1
    form._show_rule(view, tree, NAMES, 1)
    form._changed()


async def test_a_cleared_maximum_of_a_coin_is_cleared(form: RuleFormState) -> None:
    tree = leaf(CATS, type="token", details=CoinAmount("100", "1000", 18))
    show(form, tree)
    await form.enter_detail(form.open, "max", "")
    stored = row(tree)
    saved = expression_of(rule_rows._changed(rule_rows._draft_of(stored), form._changes(form._draft(1))))
    assert isinstance(saved, Requirement)
    assert cast(CoinAmount, saved.details).most is None


async def test_unchanged_conditions_stay_as_they_are(form: RuleFormState) -> None:
    tree = AtLeast(2, (AtLeast(1, (leaf(CATS), leaf(OWLS))), leaf(FOXES, "polygon")))
    show(form, tree)
    stored = row(tree)
    saved = expression_of(rule_rows._changed(rule_rows._draft_of(stored), form._changes(form._draft(1))))
    assert saved == tree


async def test_what_another_admin_changed_meanwhile_stays(form: RuleFormState) -> None:
    tree = leaf(CATS)
    show(form, tree)
    stored = row(AtLeast(1, (leaf(CATS), leaf(OWLS))))  # another admin's change
    stored.role_id, stored.takes_over, stored.role_color = "77", True, "#123456"
    await form.choose_removal("grace")
    draft = rule_rows._changed(rule_rows._draft_of(stored), form._changes(form._draft(1)))
    assert draft.removal_mode == "grace"
    assert draft.takes_over is True
    assert expression_of(draft) == AtLeast(1, (leaf(CATS), leaf(OWLS)))


async def test_the_preview_of_tiers_that_take_over_is_about_every_tier(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.enter_max_tokens(form.open, 4)
    await form.add_tier()
    await form.enter_tier(form.tiers[0].number, "role", "78")
    await form.switch_takes_over(True)
    assert form._first_fault().text == ""
    proposal = await form._proposal()
    assert "78" in repr(proposal)


async def test_a_combined_rule_of_which_one_condition_is_left_becomes_that_condition(form: RuleFormState) -> None:
    tree = AtLeast(2, (leaf(CATS), leaf(OWLS)))
    show(form, tree)
    await form.remove_condition(form._slots[1].number)
    assert form._first_fault().text == ""
    saved = rule_rows._changed(rule_rows._draft_of(row(tree)), form._changes(form._draft(1)))
    assert expression_of(saved) == leaf(CATS)


async def test_a_rule_that_another_admin_combined_meanwhile_keeps_its_conditions(form: RuleFormState) -> None:
    show(form, leaf(CATS))
    await form.enter_min_tokens(form.open, 3)
    stored = row(AtLeast(2, (leaf(CATS), leaf(OWLS))))  # another admin's change
    with pytest.raises(FieldRefused, match="Open the rule again"):
        rule_rows._changed(rule_rows._draft_of(stored), form._changes(form._draft(1)))


async def test_only_what_was_changed_since_the_form_was_opened_would_be_lost(form: RuleFormState) -> None:
    assert not form.changed
    await form.choose_removal("grace")
    assert form.changed
    await form.choose_removal("now")
    assert not form.changed
    await form.add_condition(0)
    assert form.changed
    await form.remove_condition(2)
    assert not form.changed
    show(form, leaf(CATS))
    assert not form.changed
    role: Any = SimpleNamespace(id="77", name="Cat", color=0xFF0000, assignable=True, short_reason="")
    form._offer([role])
    form._recheck()
    assert not form.changed, "the role's colour is not the form's"
    await form.enter_min_tokens(form.open, 2)
    assert form.changed
    form._clear()
    assert not form.changed
