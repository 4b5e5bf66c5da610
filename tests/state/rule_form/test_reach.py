"""The number of addresses that the form's rule reaches: counted while the form waits, and only for this rule."""

from collections.abc import AsyncIterator
from datetime import date, timedelta

import pytest
from sqlmodel import select

from jobs.census_taker import CensusTaker
from models import Reach, now, transaction
from services.collections.census.reach_by_day import ReachOnDay
from state.rule_form import reach as screen
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.reach import ReachState
from state.rule_form.rule_form import RuleFormState
from state.server.rules import RulesState
from tests.jobs.town import Town, a_town
from tests.state.conftest import Beside, Tab
from tests.state.towns import form as form
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.buys("carol")
        await made.buys("dave")
        await made.prove("carol")
        yield made


async def counted(tab: Tab) -> ReachState:
    """Let the form look once, and return what it then shows."""
    state = await tab.state(ReachState)
    (event,) = await tab.run(ReachState.event_handlers["count"].fn(state))
    assert event is not None
    assert state.busy
    await ReachState.event_handlers["watch"].fn(Beside(state))
    return state


async def worked() -> None:
    taker = CensusTaker("test")
    while await taker.once():
        pass


async def test_the_count_shows_its_progress_and_then_its_numbers(
    form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The form looks only once, so a count in progress stays in progress.
    monkeypatch.setattr(screen, "REACH_WATCHED_SECONDS", screen.REACH_POLL_SECONDS)
    state = await counted(form)
    assert (state.busy, state.percent, state.sentence, state.fault) == (True, 0, "", "")
    await worked()
    # The form was left meanwhile, and is open again.
    (event,) = await form.run(ReachState.event_handlers["follow"].fn(state))
    assert event is not None
    await ReachState.event_handlers["watch"].fn(Beside(state))
    assert (state.busy, state.sentence, state.note) == (False, "2 addresses meet this, 1 verified here.", "")
    assert await form.run(ReachState.event_handlers["follow"].fn(state)) == [None]
    assert state.places[0].startswith("Base up to block ")
    rule = await form.state(RuleFormState)
    assert state.of_rule == rule.conditions_key
    await form.run(RuleFormState.event_handlers["enter_min_tokens"].fn(rule, rule.open, 2.0))
    assert state.of_rule != rule.conditions_key, "the numbers are about another rule"


async def test_numbers_that_were_counted_earlier_say_how_old_they_are(
    form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "REACH_WATCHED_SECONDS", screen.REACH_POLL_SECONDS)
    await counted(form)
    await worked()
    assert not any(place.startswith("Counted") for place in (await counted(form)).places)
    async with transaction() as db:
        (row,) = (await db.exec(select(Reach).where(Reach.server_id == town.server_id))).all()
        row.ended_at = now() - timedelta(minutes=25, seconds=30)
    state = await counted(form)
    assert (state.sentence, state.places[-1]) == ("2 addresses meet this, 1 verified here.", "Counted 25 minutes ago.")


async def test_one_day_has_one_number_and_several_have_the_first_and_the_last() -> None:
    one = ReachOnDay(date(2026, 11, 28), 4, 1)
    assert screen._summary([one]) == "Verified here: 25% of the holders on 28 Nov."
    earlier = ReachOnDay(date(2026, 11, 20), 4, 0)
    assert screen._summary([earlier, one]) == "Verified here: 25% of the holders on 28 Nov, 0% on 20 Nov."


async def test_the_numbers_of_one_server_do_not_show_in_the_form_of_another(
    form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "REACH_WATCHED_SECONDS", screen.REACH_POLL_SECONDS)
    rule = await form.state(RuleFormState)

    async def filled(server_id: int) -> str:
        rule.visit = -1
        form.go("/add-verification-rule", serverId=server_id)
        await form.run(rule.load())
        rule._fill_in(ConditionDraft(contract=town.contract, chain="base", collection=""))
        rule._changed()
        return rule.conditions_key

    key = await filled(town.server_id)
    state = await counted(form)
    assert state.of_rule == key
    assert await filled(town.server_id + 1) != key
    assert await filled(town.server_id) == key


async def test_what_cannot_be_counted_says_why(form: Tab, town: Town) -> None:
    rule = await form.state(RuleFormState)
    rule.contract = ""
    rule._changed()
    state = await counted(form)
    assert (state.busy, state.fault, state.sentence) == (False, "Contract address is required", "")


async def test_a_stored_rule_shows_its_days(form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "REACH_WATCHED_SECONDS", screen.REACH_POLL_SECONDS)
    rule_id = await town.rule("Holder")
    await counted(form)
    await worked()
    rule, state = await form.state(RuleFormState), await form.state(ReachState)
    await form.run(ReachState.event_handlers["load_days"].fn(state))
    assert (state.bars, state.days) == ([], []), "a new rule has none"
    rule.rule_id = rule_id
    await form.run(ReachState.event_handlers["load_days"].fn(state))
    assert [(one.holders, one.verified) for one in state.days] == [(2, 1)]
    assert "50% of the holders" in state.summary
    assert state.bars[0].height == 200


async def test_the_days_of_the_rule_that_was_opened_before_are_hidden_until_those_of_this_one_are_read(
    form: Tab, town: Town
) -> None:
    state = await form.state(ReachState)
    state.summary = "Verified here: 50% of the holders on 28 Nov."
    days = ReachState.event_handlers["load_days"].fn(state)
    await anext(days)
    assert state.summary == ""
    await days.aclose()


async def test_the_rules_tab_shows_the_numbers_of_a_rule_that_was_counted(
    form: Tab, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "REACH_WATCHED_SECONDS", screen.REACH_POLL_SECONDS)
    await town.rule("Holder")
    rules = await opened(form, RulesState, town.server_id, "rules")
    assert [row.reach for row in rules.rows] == [""]
    await counted(form)
    await worked()
    rules = await opened(form, RulesState, town.server_id, "rules")
    (said,) = [row.reach for row in rules.rows]
    assert said.startswith("2 addresses meet this, 1 verified here. Counted on ")
