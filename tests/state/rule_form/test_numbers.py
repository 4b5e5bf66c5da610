"""Numbers in the rule form: large ones, and fields that were emptied."""

import pytest

from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, fill
from tests.state.rule_form.filling import form as form


async def test_a_large_number_is_kept_digit_by_digit(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.enter_min_tokens(form.open, 1_000_000)
    await form.enter_max_tokens(form.open, 2_147_483_647)
    assert (form.min_tokens, form.max_tokens, form._first_fault().text) == ("1000000", "2147483647", "")
    await form.choose_removal("grace")
    await form.enter_grace(1_000_000)
    assert form._first_fault().text == "The grace time is a whole number of hours, from 1 to 2160."
    assert form.grace_hours == "1000000"


@pytest.mark.parametrize("hours", [None, 0])
async def test_an_emptied_grace_time_is_refused_and_not_saved_as_none(form: RuleFormState, hours: float | None) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.choose_removal("grace")
    await form.enter_grace(hours)
    assert form._first_fault().text == "The grace time is a whole number of hours, from 1 to 2160."
    await form.choose_removal("now")
    assert form._first_fault().text == ""


@pytest.mark.parametrize("typed", [2.0**31, 2.0**53, 1e30, 1e300])
async def test_a_number_that_is_too_large_is_refused_with_the_largest_one(form: RuleFormState, typed: float) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.enter_min_tokens(form.open, typed)
    assert form._first_fault().text == "The number of tokens is at most 2147483647."
    await form.enter_min_tokens(form.open, 1)
    await form.enter_max_tokens(form.open, typed)
    assert form._first_fault().text == "The number of tokens is at most 2147483647."
    await form.enter_max_tokens(form.open, None)
    await form.choose_removal("grace")
    await form.enter_grace(typed)
    assert form._first_fault().text == "The grace time is a whole number of hours, from 1 to 2160."
