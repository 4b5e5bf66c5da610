"""What is typed or pasted in a condition that is left at once: it is taken, and for that condition."""

from state.rule_form.conditions import ROOT
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, fill
from tests.state.rule_form.filling import form as form


async def test_ids_that_are_left_in_the_entry_are_added_once(form: RuleFormState) -> None:
    fill(form, CATS, type="token_id")
    await form.leave_tokens(form.open, "5")
    assert (form.token_ids, form.token_fault, form.token_entry, form.token_entries) == (["5"], "", "5", 1)
    # The press of Add for which the entry was left.
    await form.add_tokens({"tokenEntry": "5"})
    assert (form.token_ids, form.token_fault, form.token_entry, form.token_entries) == (["5"], "", "5", 2)
    await form.add_tokens({"tokenEntry": "5"})
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
