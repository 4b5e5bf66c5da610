"""A stored rule in the form: shown, changed and sent."""

from types import SimpleNamespace
from typing import Any

import pytest

from models import Rule
from services.rules import rule_rows
from services.rules.draft import expression_of
from services.rules.expression import AtLeast, Expression, Not, parse, to_document
from state.rule_form.condition_groups import from_tree
from state.rule_form.conditions import ROOT
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, FOXES, NAMES, OWLS, leaf
from tests.state.rule_form.filling import form as form

STORED: dict[str, Expression] = {
    "one": leaf(CATS, type="trait", traits=(("Level", ">=10"),)),
    "several": AtLeast(
        2, (leaf(CATS), Not(leaf(FOXES, "polygon")), AtLeast(1, (leaf(OWLS), leaf(CATS, min_tokens=3))))
    ),
    "none": AtLeast(2, (Not(leaf(CATS)), Not(leaf(OWLS)))),
    "tier": leaf(CATS, min_tokens=5, max_tokens=19),
    "traits": leaf(CATS, type="trait", traits=(("Fur", "Gold"), ("Rank", ">3"), ("Level", "5..10"))),
    "texts": leaf(CATS, type="trait", traits=(("Level", "<= 5"), ("Shirt", "< 3 hearts"))),
    "spaced": leaf(CATS, type="trait", traits=(("Level", "5"), ("Age", "> 95"))),
}


@pytest.mark.parametrize("kind", list(STORED))
async def test_a_stored_rule_is_shown_and_sent_as_it_is(form: RuleFormState, kind: str) -> None:
    tree = STORED[kind]
    form._resume(from_tree(tree), tree, NAMES)
    form._changed()
    draft = form._draft(1)
    if kind in {"tier", "traits", "texts", "spaced"}:
        assert expression_of(draft) == tree
        kept = Rule(id=1, server_id=1, name="x", role_id="1", role_name="", expression=to_document(leaf(OWLS)),
                    verification_type="basic", contract_address=OWLS, blockchain="base", created_by="0")  # fmt: skip
        assert expression_of(rule_rows._changed(rule_rows._draft_of(kept), form._changes(draft))) == tree
    elif kind == "one":
        assert (draft.trait_type, draft.trait_value, draft.expression) == ("Level", ">=10", None)
    else:
        assert parse(draft.expression) == tree
    assert form.rule_name != ""


async def test_a_rule_too_deep_for_the_form_keeps_its_conditions(form: RuleFormState) -> None:
    deep = AtLeast(2, (leaf(CATS), AtLeast(1, (leaf(OWLS), AtLeast(2, (leaf(CATS), leaf(OWLS)))))))
    form._resume(from_tree(deep), deep, NAMES)
    form._kept = "", "Deep"
    await form.choose_role("77")
    form._changed()
    assert (form.too_deep, form.rule_name) == (True, "Deep")
    assert form._changes(form._draft(1))["expression"] == to_document(deep)
    await form.add_condition(ROOT)
    assert form._changes(form._draft(1))["expression"] == to_document(deep)
    assert len(form.lines) > 3


async def test_a_stored_name_stays_while_the_conditions_do(form: RuleFormState) -> None:
    tree = STORED["one"]
    form._resume(from_tree(tree), tree, NAMES)
    form._sync()
    form._kept = form._signature(), "Our own name"
    form._changed()
    assert form.rule_name == "Our own name"
    await form.enter_min_tokens(form.open, 2)
    assert form.rule_name == "Cats (Trait) - Level: >=10"
    await form.refresh_name()
    await form.enter_min_tokens(form.open, 1)
    assert form.rule_name == "Cats (Trait) - Level: >=10"


@pytest.mark.parametrize(
    ("stored", "shadow", "state"),
    [("active", False, ""), ("active", True, "shadow"), ("shadow", False, "active"), ("shadow", True, ""),
     ("paused", True, ""), ("paused", False, "")],
)  # fmt: skip
async def test_shadow_is_sent_only_when_it_changes(form: RuleFormState, stored: str, shadow: bool, state: str) -> None:
    form._stored_state, form.paused = stored, stored == "paused"
    await form.switch_shadow(shadow)
    assert form._changes(form._draft(1)).get("state", "") == state


async def test_roles_of_one_name_are_told_apart_by_their_ids(form: RuleFormState) -> None:
    names = {"1150000000000012345": "Twin", "1150000000000067890": "Twin", "1150000000000011111": "Only"}
    found: list[Any] = [
        SimpleNamespace(id=number, name=name, color=0, assignable=name == "Only", short_reason="above the bot's role")
        for number, name in names.items()
    ]
    form._offer(found)
    assert [one.label for one in form.roles] == [
        "Twin (…12345) – above the bot's role", "Twin (…67890) – above the bot's role", "Only",
    ]  # fmt: skip
    assert [one.name for one in form.roles] == list(names.values())
