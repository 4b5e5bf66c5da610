"""Trying an address in the rule form: the answer with its evidence, shown only for the rule that was tried."""

from collections.abc import AsyncIterator

import pytest

from app.pages import PAGES
from services.engine.previews import try_address as trial_service
from state.rule_form.rule_form import RuleFormState
from state.rule_form.try_address import ADDRESS_INPUT, TrialState
from tests.jobs.town import STRANGER, Town, a_town
from tests.state.conftest import Beside, Tab
from tests.state.towns import form as form


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol") as made:
        await made.buys("carol")
        yield made


async def tried(tab: Tab, address: str) -> TrialState:
    state = await tab.state(TrialState)
    (event,) = await tab.run(TrialState.event_handlers["try_address"].fn(state, {ADDRESS_INPUT: address}))
    if event is not None:
        assert state.busy
        await TrialState.event_handlers["watch"].fn(Beside(state))
    assert not state.busy
    return state


async def test_the_answer_and_its_evidence_show_under_the_rule_that_was_tried(form: Tab, town: Town) -> None:
    state = await tried(form, f" {town.wallet('carol')} ")
    (line,) = state.lines
    assert (state.outcome, state.tried, state.fault) == ("yes", town.wallet("carol"), "")
    assert (line.outcome, line.amount) == ("yes", "Holds 1, needs 1")
    rule = await form.state(RuleFormState)
    assert state.of_rule == rule.conditions_key
    await form.run(RuleFormState.event_handlers["enter_min_tokens"].fn(rule, rule.open, 2.0))
    assert state.of_rule != rule.conditions_key, "the answer is about another rule"
    state = await tried(form, town.wallet("carol"))
    assert (state.outcome, state.of_rule) == ("no", rule.conditions_key)


async def test_what_cannot_be_tried_says_why(form: Tab, town: Town) -> None:
    assert (await tried(form, " ")).fault == "Enter an address first."
    assert "not a wallet address" in (await tried(form, "me")).fault
    rule = await form.state(RuleFormState)
    rule.contract = ""
    rule._changed()
    state = await tried(form, STRANGER)
    assert (state.fault, state.outcome, state.lines) == ("Contract address is required", "", [])


async def test_an_answer_that_takes_too_long_is_unknown(form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_service, "LONGEST_SECONDS", -1.0)
    state = await tried(form, town.wallet("carol"))
    assert (state.outcome, trial_service.NO_TIME in state.lines[0].amount) == ("unknown", True)


async def test_an_address_is_tried_again_if_its_answer_never_came(form: Tab, town: Town) -> None:
    state = await form.state(TrialState)
    assert await form.run(state.follow()) == [None]
    await form.run(TrialState.event_handlers["try_address"].fn(state, {ADDRESS_INPUT: town.wallet("carol")}))
    # The process that reads it ends here, or the form is left at once.
    (event,) = await form.run(state.follow())
    assert event is not None
    await TrialState.event_handlers["watch"].fn(Beside(state))
    assert (state.busy, state.outcome) == (False, "yes")


def test_the_form_asks_for_it_when_it_is_opened_or_connected_again() -> None:
    (page,) = [one for one in PAGES if one.route == "/add-verification-rule"]
    assert TrialState.follow in page.load
