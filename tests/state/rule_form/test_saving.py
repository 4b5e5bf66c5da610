"""Saving the rule form: a failure leaves the form usable, and a second press saves nothing twice."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.exc import OperationalError
from sqlmodel import col, select

from models import Rule, Server, transaction
from services.collections import collections
from services.core.errors import FieldRefused, TooMany
from services.rules import rules
from services.runtime import rate_limits
from state.dashboard.server_page import ServerPageState
from state.rule_form.other_changes import CHANGED
from state.rule_form.rule_fault import NO_FAULT
from state.rule_form.rule_form import RuleFormState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn, Tab

AWAY = OperationalError("SELECT", {}, Exception("the server closed the connection"))


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada") as made:
        yield made


@pytest.fixture
async def form(sign_in: SignIn, town: Town) -> tuple[Tab, RuleFormState]:
    """ada's tab with the form of a new rule, whose every field is filled in."""
    tab, _ = await sign_in(town.people["ada"]["username"])
    tab.go("/add-verification-rule", serverId=town.server_id)
    form = await tab.state(RuleFormState)
    await tab.run(form.load())
    await tab.run(form.choose_chain(form.open, "base"))
    await tab.run(form.enter_contract(form.open, town.contract))
    await tab.run(form.choose_role(next(one.id for one in form.roles if one.assignable)))
    assert form._first_fault() == NO_FAULT
    return tab, form


async def stored(town: Town) -> list[Rule]:
    async with transaction() as db:
        return list((await db.exec(select(Rule).where(col(Rule.server_id) == town.server_id))).all())


@pytest.mark.parametrize("fault", [TooMany("Too often.", 5), AWAY], ids=["too many", "database away"])
async def test_a_contract_that_cannot_be_looked_up_leaves_the_button_usable(
    form: tuple[Tab, RuleFormState], town: Town, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def fails(limit: object, *_: object, **__: object) -> None:
        if limit is not rate_limits.WRITES:
            raise fault

    with monkeypatch.context() as patched:
        patched.setattr(*((rate_limits, "spend") if isinstance(fault, TooMany) else (collections, "parse")), fails)
        with pytest.raises(type(fault)):
            await form[0].run(form[1].save({"contractAddress": "0x" + "ab" * 20}))
    assert (form[1].pending, form[1].contract) == (False, "0x" + "ab" * 20)
    assert await stored(town) == []
    await form[0].run(form[1].save({}))
    again = "Failed to fetch collection data. Please try again."
    assert form[1].fault == (fault.message if isinstance(fault, TooMany) else again), "why the rule has no name yet"


@pytest.mark.parametrize("takes_over", [False, True], ids=["at once", "after the dialog"])
async def test_a_second_press_makes_no_second_rule(
    form: tuple[Tab, RuleFormState], town: Town, takes_over: bool
) -> None:
    tab, rule = form
    await tab.run(rule.switch_takes_over(takes_over))
    if takes_over:
        await tab.run(rule.save({}))
    for _ in range(2):
        said = await tab.run(rule.confirm() if takes_over else rule.save({}))
        assert "server-config" in str(said), "the second press leads there too"
    assert len(await stored(town)) == 1
    assert (await tab.toast()) == "Success: Verification rule created successfully!"
    assert (rule.pending, rule.asking) == (False, False)


async def test_a_change_that_was_saved_elsewhere_meanwhile_is_not_replaced_without_a_word(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> None:
    await form[0].run(form[1].save({}))
    (made,) = await stored(town)
    tabs: list[tuple[Tab, RuleFormState]] = []
    for _ in range(3):
        tab, _name = await sign_in(town.people["ada"]["username"])
        tab.go("/add-verification-rule", serverId=town.server_id, ruleId=made.id)
        tabs.append((tab, await tab.state(RuleFormState)))
        await tab.run(tabs[-1][1].load())
    (one, first), (two, second), (three, third) = tabs
    await one.run(first.enter_min_tokens(first.open, 3))
    await two.run(second.enter_min_tokens(second.open, 5))
    await three.run(third.switch_delegated(True))
    for tab, state in ((one, first), (three, third)):
        await tab.run(state.save({}))
        assert (state.asking, state.fault) == (True, ""), "what the third changes is not what the first has changed"
        await tab.run(state.confirm())
    await two.run(second.save({}))
    assert (second.asking, second.fault) == (False, CHANGED)
    assert [one.min_tokens for one in await stored(town)] == [3]
    await two.run(second.save({}))
    assert (second.asking, second.fault) == (True, ""), "the person has decided"
    await two.run(second.confirm())
    assert [(one.min_tokens, one.delegated) for one in await stored(town)] == [(5, True)]


async def two_forms(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> tuple[tuple[Tab, RuleFormState], tuple[Tab, RuleFormState]]:
    """Save the new rule, and open it in two tabs."""
    await form[0].run(form[1].save({}))
    (made,) = await stored(town)
    tabs: list[tuple[Tab, RuleFormState]] = []
    for _ in range(2):
        tab, _name = await sign_in(town.people["ada"]["username"])
        tab.go("/add-verification-rule", serverId=town.server_id, ruleId=made.id)
        tabs.append((tab, await tab.state(RuleFormState)))
        await tab.run(tabs[-1][1].load())
    return tabs[0], tabs[1]


async def saved(tab: Tab, state: RuleFormState) -> None:
    await tab.run(state.save({}))
    assert (state.asking, state.fault) == (True, "")
    await tab.run(state.confirm())
    assert state.saved


async def test_a_change_elsewhere_is_named_also_where_its_field_is_changed_after_a_first_press(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> None:
    (tab, state), (other_tab, other) = await two_forms(form, town, sign_in)
    await other_tab.run(other.choose_removal("grace"))
    await saved(other_tab, other)
    await tab.run(state.enter_min_tokens(state.open, 3))
    await tab.run(state.save({}))
    assert (state.asking, state.fault) == (True, ""), "the grace time stays"
    await tab.run(state.think_again(False))
    await tab.run(state.choose_removal("grace"))
    await tab.run(state.enter_grace(5))
    await tab.run(state.save({}))
    assert (state.asking, state.fault) == (False, CHANGED)


async def test_a_change_elsewhere_while_the_dialog_asks_is_not_replaced_without_a_word(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> None:
    (tab, state), (other_tab, other) = await two_forms(form, town, sign_in)
    await tab.run(state.enter_min_tokens(state.open, 3))
    await tab.run(state.save({}))
    await other_tab.run(other.enter_min_tokens(other.open, 5))
    await saved(other_tab, other)
    await tab.run(state.confirm())
    assert (state.asking, state.pending, state.fault) == (False, False, CHANGED)
    assert [one.min_tokens for one in await stored(town)] == [5]
    await saved(tab, state)
    assert [one.min_tokens for one in await stored(town)] == [3]


async def test_a_change_that_somebody_else_made_too_replaces_nothing(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> None:
    (tab, state), (other_tab, other) = await two_forms(form, town, sign_in)
    for place, one in ((other_tab, other), (tab, state)):
        await place.run(one.choose_removal("grace"))
        await place.run(one.switch_delegated(True))
        await saved(place, one)


async def test_a_rule_that_was_deleted_meanwhile_is_refused_before_the_dialog(
    form: tuple[Tab, RuleFormState], town: Town, sign_in: SignIn
) -> None:
    await form[0].run(form[1].save({}))
    (made,) = await stored(town)
    tab, _ = await sign_in(town.people["ada"]["username"])
    tab.go("/add-verification-rule", serverId=town.server_id, ruleId=made.id)
    state = await tab.state(RuleFormState)
    await tab.run(state.load())
    await tab.run(state.enter_min_tokens(state.open, 3))
    async with transaction() as db:
        await db.delete(await db.merge(made))
    await tab.run(state.save({}))
    assert (state.asking, state.pending) == (False, False)
    assert state.fault.startswith("This rule was deleted meanwhile. If you still need it, go back to the rules")


async def test_a_form_opened_without_the_bot_in_the_server_says_so_until_it_is_back(
    town: Town, sign_in: SignIn
) -> None:
    """Otherwise somebody fills it in and only then reads that nothing can be saved."""

    async def stored_bot(*, there: bool) -> None:
        async with transaction() as db:
            (await db.get_one(Server, town.server_id)).bot_invited = there

    tab, _ = await sign_in(town.people["ada"]["username"])
    await stored_bot(there=False)
    tab.go("/add-verification-rule", serverId=town.server_id)
    form, page = await tab.state(RuleFormState), await tab.state(ServerPageState)
    await tab.run(form.load())
    assert (form.roles_failed, page.bot_invited) == (True, False)
    await tab.run(form.look_for_bot())
    assert (form.roles_failed, page.bot_invited) == (True, False)
    await stored_bot(there=True)
    await tab.run(form.look_for_bot())
    assert (form.roles_failed, form.roles_loaded, page.bot_invited) == (False, True, True)
    assert [role.name for role in form.roles], "a role can be chosen"


async def test_an_id_that_was_typed_but_not_added_is_saved_or_refused(
    form: tuple[Tab, RuleFormState], town: Town
) -> None:
    tab, rule = form
    await tab.run(rule.choose_type(rule.open, "token_id"))
    await tab.run(rule.add_tokens(rule.open, {"tokenEntry": "5"}))
    await tab.run(rule.save({"tokenEntry": "9-1"}))
    assert rule.fault == rule.token_fault == "9-1 runs backwards. Write the smaller ID first: 1-9."
    assert await stored(town) == []
    await tab.run(rule.save({"tokenEntry": "777"}))
    (made,) = await stored(town)
    assert made.token_ids == ["5", "777"]


async def test_a_role_that_was_deleted_meanwhile_is_shown_as_deleted(
    form: tuple[Tab, RuleFormState], town: Town
) -> None:
    tab, state = form
    made = await town.call("guilds", guild=town.name, action="add_role", name="Short-lived")
    await tab.run(state.load_roles())
    await tab.run(state.choose_role(str(made["id"])))
    await town.call("guilds", guild=town.name, action="delete_role", role="Short-lived")
    outcomes = await tab.run(state.save({}))
    assert state.fault == "This role does not exist in the server (any more). Choose another one."
    assert state.fault_field == "roleId"
    assert RuleFormState.load_roles in outcomes
    await tab.run(state.load_roles())
    shown = next(one for one in state.roles if one.id == state.role_id)
    assert (shown.label, shown.assignable) == ("Short-lived – deleted in Discord", False)
    assert state.fault != "", "the message stays until something is changed"

    await tab.run(state.add_tier())
    await tab.run(state.enter_tier(2, "role", state.role_id))
    await tab.run(state.choose_role(next(one.id for one in state.roles if one.assignable)))
    await tab.run(state.load_roles())
    assert [one.label for one in state.roles if one.id == str(made["id"])] == ["Short-lived – deleted in Discord"]

    await tab.run(state.enter_max_tokens(state.open, 4))
    await tab.run(state.enter_tier(2, "least", "5"))
    assert RuleFormState.load_roles in await tab.run(state.save({}))
    assert (state.fault[:9], state.fault_field) == ("This role", ""), "the role of the first tier is right"


async def test_a_contract_that_only_saving_refuses_marks_no_other_condition(
    form: tuple[Tab, RuleFormState], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise FieldRefused("contractAddress", "It is no collection.")

    tab, state = form
    monkeypatch.setattr(rules, "create_all", refuse)
    await tab.run(state.save({}))
    assert (state.fault, state.fault_field) == ("It is no collection.", "contractAddress")
    await tab.run(state.add_condition(0))
    await tab.run(state.enter_contract(state.open, town.contract))
    await tab.run(state.enter_min_tokens(state.open, 2))
    await tab.run(state.save({}))
    assert (state.fault, state.fault_field) == ("It is no collection.", "")
