"""The card about a role that replaces another: from a rule whose role was deleted to a rule that gives another role."""

from collections.abc import AsyncIterator

import pytest
from sqlmodel import col, update

from models import Rule, transaction
from state.core.toasts import ToastState
from state.dashboard.server_page import ServerPageState
from state.rule_form.preview import RulePreviewState
from state.server.new_role import NewRoleState
from state.server.rules import RulesState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada") as made:
        await made.rule("Holder")
        yield made


async def test_a_deleted_role_is_replaced_from_the_rule_that_named_it(sign_in: SignIn, town: Town) -> None:
    new = await town.role("Collector")
    async with transaction() as db:
        gone = update(Rule).where(col(Rule.server_id) == town.server_id)
        await db.exec(gone.values(role_id="4242", state="paused", pause_cause="role_gone", pause_reason="It is gone."))
    tab, _ = await sign_in(town.people["ada"]["username"])
    rules = await opened(tab, RulesState, town.server_id, "rules")
    (row,) = rules.rows
    assert (row.role_gone, row.role_id) == (True, "4242")
    card = await tab.state(NewRoleState)
    await tab.run(card.open_form(row.role_id))
    assert (card.is_open, card.old, [one.label for one in card.old_roles]) == (True, "4242", ["Holder (deleted)"])
    assert new in {one.id for one in card.new_roles if one.assignable}
    left_out = [one.label for one in card.new_roles if not one.assignable]
    assert left_out
    assert [one for one in left_out if " – " not in one] == [], "what cannot be chosen says why"

    await tab.run(card.look())
    assert (card.fault_field, card.fault_text) == ("newRole", "Choose the role that takes its place.")
    await tab.run(card.ask())
    assert not card.asked, "nothing was looked at"
    card.set_new("4242")
    await tab.run(card.look())
    assert card.fault_text == "Choose another role than the old one."
    card.set_new(new)
    await tab.run(card.look())
    assert (card.fault_text, card.rules, card.left) == ("", ["A rule"], [])
    assert card.summary == "0 members have Holder from us. They get Collector first, and lose Holder after that."
    await tab.run(card.ask())
    assert (card.asked, (await tab.state(RulePreviewState)).busy) == (new, True)
    card.set_new(new)
    assert not card.asked, "the dialog is about the form as it was"
    await tab.run(card.confirm())
    assert card.is_open
    await tab.run(card.look())
    await tab.run(card.ask())
    await tab.run(card.confirm())
    assert (card.asked, card.is_open) == ("", False)
    assert (await tab.state(ToastState)).title == "1 rule changed"
    rules = await opened(tab, RulesState, town.server_id, "rules")
    assert [(one.role_name, one.state, one.role_gone) for one in rules.rows] == [("Collector", "active", False)]


async def test_the_form_of_one_server_is_not_open_on_another_one(sign_in: SignIn, town: Town, sandbox_url: str) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    await opened(tab, RulesState, town.server_id, "rules")
    card = await tab.state(NewRoleState)
    await tab.run(card.open_form(""))
    await opened(tab, RulesState, town.server_id, "rules")
    assert card.is_open, "the same server keeps it"
    page = await tab.state(ServerPageState)
    page.server_id = page._read_for = town.server_id + 1
    await tab.run(card.load())
    assert (card.is_open, card.asked, card.old_roles) == (False, "", [])
