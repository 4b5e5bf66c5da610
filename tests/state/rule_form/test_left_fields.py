"""What is typed or pasted in a condition that is left at once: it is taken, and for that condition."""

import pytest

from services.collections import collections
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.conditions import ROOT
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, drained, fill
from tests.state.rule_form.filling import form as form


async def test_ids_that_are_left_in_the_entry_are_added_once(form: RuleFormState) -> None:
    fill(form, CATS, type="token_id")
    await form.leave_tokens(form.open, "5")
    assert (form.token_ids, form.token_fault, form.token_entry, form.token_entries) == (["5"], "", "5", 1)
    # The press of Add for which the entry was left.
    await form.add_tokens(form.open, {"tokenEntry": "5"})
    assert (form.token_ids, form.token_fault, form.token_entry, form.token_entries) == (["5"], "", "5", 2)
    await form.add_tokens(form.open, {"tokenEntry": "5"})
    assert form.token_fault == "5 is already in the list."
    await form.leave_tokens(form.open + 1, "7")
    assert form.token_ids == ["5"], "that condition is not open"


async def test_a_list_is_for_the_condition_in_which_it_was_pasted(form: RuleFormState) -> None:
    fill(form, CATS, type="address_list")
    first = form.open
    await form.add_condition(ROOT)
    fill(form, CATS, type="address_list")
    await form.take_list(first, "f" * 32, 2)
    assert not form.details["list"], "the open condition has its own"
    await form.take_list(form.open, "e" * 32, 3)
    assert [dict(slot.draft.details)["list"] for slot in form._slots] == ["f" * 32, "e" * 32]
    async for _ in form.open_condition(first):
        pass
    assert (form.details["list"], form.details["count"]) == ("f" * 32, "2")


async def test_a_list_that_is_stored_late_is_none_of_a_condition_made_after_its_own_was_removed(
    form: RuleFormState,
) -> None:
    await form.add_condition(ROOT)
    removed = form.open
    await form.remove_condition(removed)
    await form.add_condition(ROOT)
    fill(form, CATS, type="address_list")
    await form.take_list(removed, "f" * 32, 2)
    assert not form.details["list"]


async def test_what_is_chosen_while_another_condition_is_being_added_is_for_the_one_it_was_chosen_in(
    form: RuleFormState,
) -> None:
    fill(form, CATS, type="call")
    first = form.open
    for change in (
        lambda: drained(form.choose_chain(first, "polygon")),
        lambda: drained(form.choose_type(first, "trait")),
        lambda: form.enter_min_tokens(first, 4),
        lambda: form.enter_max_tokens(first, 9),
        lambda: form.enter_trait_value(first, "Gold"),
        lambda: form.choose_compare(first, ">="),
        lambda: form.enter_detail(first, "min", "0.5"),
        lambda: form.add_tokens(first, {"tokenEntry": "41"}),
    ):
        await form.add_condition(ROOT)
        fresh = ConditionDraft(chain=form.chain)
        await change()
        assert form.open == first, "the person is at this one"
        assert form._slots[-1].draft.leaf == fresh.leaf
    first_draft = form._slots[0].draft
    assert (first_draft.type, first_draft.chain, first_draft.token_ids) == ("trait", "polygon", ("41",))
    assert (first_draft.min_tokens, first_draft.max_tokens, dict(first_draft.details)["min"]) == ("4", "9", "0.5")
    assert (len(form._slots), len(form.sections[0].rows)) == (9, 9)


async def test_what_is_chosen_in_a_condition_that_is_removed_meanwhile_changes_no_other(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.add_condition(ROOT)
    removed = form.open
    await form.remove_condition(removed)
    before = form._signature()
    await drained(form.choose_type(removed, "trait"))
    await drained(form.choose_chain(removed, "polygon"))
    await form.enter_min_tokens(removed, 4)
    await form.add_tokens(removed, {"tokenEntry": "41"})
    assert form._signature() == before


async def test_what_changes_nothing_in_a_condition_that_was_left_does_not_open_it(form: RuleFormState) -> None:
    fill(form, CATS, type="trait", trait_type="Fur", trait_value="Gold")
    first = form.open
    await form.add_condition(ROOT)
    now_open = form.open
    await drained(form.choose_type(first, "trait"))
    await drained(form.choose_chain(first, "base"))
    await drained(form.choose_trait_type(first, "Fur"))
    await form.choose_compare(first, "")
    assert form.open == now_open


@pytest.mark.parametrize(("listed", "value"), [(["Fur", "Hat"], ""), (["Hat"], "Gold"), ([], "Gold")])
async def test_another_kind_of_trait_that_is_chosen_late_keeps_only_a_value_that_was_typed(
    product: None, form: RuleFormState, monkeypatch: pytest.MonkeyPatch, listed: list[str], value: str
) -> None:
    async def kinds(*asked: object) -> list[str]:
        return listed

    async def values(*asked: object) -> list[str]:
        return ["Top"]

    monkeypatch.setattr(collections, "trait_types", kinds)
    monkeypatch.setattr(collections, "trait_values", values)
    fill(form, CATS, type="trait", trait_type="Fur", trait_value="Gold")
    first = form.open
    await form.add_condition(ROOT)
    await drained(form.choose_trait_type(first, "Hat"))
    assert (form.open, form.trait_type, form.trait_value, form._slots[0].draft.trait_value) == (
        first, "Hat", value, value,
    )  # fmt: skip
    assert form.trait_values == (["Top"] if listed else [])
