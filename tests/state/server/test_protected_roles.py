"""The protected roles below a server's rules: chosen, protected, shown with who and since when, and released."""

from typing import Any

import pytest
from sqlmodel import delete, select

from models import Event, Rule, Server, now, transaction
from services.core.errors import RoleNotFound
from state.server.protected_roles import ProtectedRolesState, ProtectedRoleView
from state.server.rules import DELETE, RulesState
from tests.app.api.browsers import Browser
from tests.jobs.town import a_town
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened, with_rule
from tests.support.builders import a_grant, a_member


@pytest.fixture
async def made(sign_in: SignIn) -> tuple[Tab, Browser, dict[str, Any]]:
    """ada's tab and browser, and the rule of her server, which gives Holder."""
    tab, browser = await sign_in("ada")
    return tab, browser, await with_rule(browser)


async def panel(tab: Tab, rule: dict[str, Any]) -> ProtectedRolesState:
    return await opened(tab, ProtectedRolesState, rule["serverId"], "rules")


async def test_a_role_is_protected_and_let_go_of_with_a_line_in_the_log_each(
    made: tuple[Tab, Browser, dict[str, Any]],
) -> None:
    tab, browser, rule = made
    state = await panel(tab, rule)
    assert (state.rows, [role.name for role in state.offered]) == ([], ["Holder"])
    await tab.run(state.protect())
    assert state.rows == [], "nothing is chosen yet"
    state.choose(rule["roleId"])
    await tab.run(state.protect())
    assert state.rows == [ProtectedRoleView(rule["roleId"], "Holder", rule["roleColor"], "Protected by Ada, just now")]
    assert (state.ids, state.offered, state.chosen, state.working) == ([rule["roleId"]], [], "", False)
    assert (await tab.toast()).startswith("Protected: ")
    (told,) = (await browser.client.get(f"/api/servers/{rule['serverId']}/protection")).json()["roles"]
    assert (told["roleName"], told["by"], bool(told["since"])) == ("Holder", "Ada", True)

    state.ask(rule["roleId"])
    assert state.asked_name == "Holder"
    state.close_dialog(False)
    await tab.run(state.end())
    assert len(state.rows) == 1, "the question was closed"
    state.ask(rule["roleId"])
    await tab.run(state.end())
    assert (state.rows, [role.name for role in state.offered]) == ([], ["Holder"])
    async with transaction() as db:
        lines = await db.exec(select(Event.data).where(Event.kind == "role.protected", Event.role_id == rule["roleId"]))
        assert [data["protected"] for data in lines.all()] == [True, False]
        assert (await db.get_one(Server, rule["serverId"])).protected_roles == []


async def test_a_protection_outlives_its_rule_and_its_line_in_the_log(
    made: tuple[Tab, Browser, dict[str, Any]],
) -> None:
    tab, _, rule = made
    state = await panel(tab, rule)
    state.choose(rule["roleId"])
    await tab.run(state.protect())
    async with transaction() as db:
        (await db.get_one(Rule, rule["id"])).deleted_at = now()
        await db.exec(delete(Event))
    state = await panel(tab, rule)
    assert [(role.name, role.since) for role in state.rows] == [("Holder", "")]
    assert state.offered == []
    state.ask(rule["roleId"])
    await tab.run(state.end())
    assert (state.rows, state.offered) == ([], [])


async def test_what_deleting_a_rule_costs_is_told_with_the_protection(
    made: tuple[Tab, Browser, dict[str, Any]],
) -> None:
    tab, _, rule = made
    async with transaction() as db:
        row = await db.get_one(Rule, rule["id"])
        await a_grant(db, await a_member(db, await db.get_one(Server, row.server_id)), row)
    rules = await opened(tab, RulesState, rule["serverId"], "rules")
    assert rules.room == "1 of 100 rules and 1 of 400 conditions of this server are in use."
    await tab.run(rules.ask(rule["id"], DELETE))
    assert rules.asked_title == f"Delete “{rule['ruleName']}”?"
    assert rules.asked_text.endswith("Members without another rule for it lose it now.")
    state = await panel(tab, rule)
    state.choose(rule["roleId"])
    await tab.run(state.protect())
    await tab.run(rules.ask(rule["id"], DELETE))
    assert rules.asked_text == (
        "1 member has Holder through this rule. Nobody loses it, because the role is protected."
    )


async def test_only_roles_of_rules_are_protected_and_only_by_who_runs_the_server(
    made: tuple[Tab, Browser, dict[str, Any]], sign_in: SignIn
) -> None:
    tab, _, rule = made
    state = await panel(tab, rule)
    state.choose("1")
    with pytest.raises(RoleNotFound):
        await tab.run(state.protect())
    assert not state.working
    tab, _ = await sign_in("mallory")
    state = await panel(tab, rule)
    assert (state.rows, state.offered, state.shown_for) == ([], [], 0)


async def test_a_role_that_was_deleted_in_discord_is_not_offered(
    discord: None, sandbox_url: str, sign_in: SignIn
) -> None:
    async with a_town(sandbox_url, "ada") as town:
        for role in ("Holder", "Whale"):
            await town.rule(role)
        tab, _ = await sign_in(town.people["ada"]["username"])
        state = await opened(tab, ProtectedRolesState, town.server_id, "rules")
        assert [role.name for role in state.offered] == ["Holder", "Whale"]
        state.choose(next(role.id for role in state.offered if role.name == "Whale"))
        await town.call("guilds", guild=town.name, action="delete_role", role="Whale")
        await tab.run(state.load())
        assert ([role.name for role in state.offered], state.chosen) == (["Holder"], "")
