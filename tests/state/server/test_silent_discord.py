"""The tabs of a server while Discord or the database does not answer: each says so, and reads again on request.

What was changed is not denied.
"""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from components.pages.rule_form.rule_form import _role
from models import Server, transaction
from services.accounts.developers import api_tokens, webhooks
from services.collections.census import reach_by_day
from services.core.errors import ProviderUnavailable
from services.guilds import permissions
from services.health import first_steps, server_health
from services.roles import rival_reports
from services.roles.moves.views import RUNNING
from services.servers import activity, breaker_review, explain, member_list, servers
from state.core import retry
from state.core.session import MEMBER, SessionState
from state.dashboard.server_page import ServerPageState
from state.dashboard.servers import OpenServerState
from state.rule_form.reach import ReachState
from state.rule_form.rule_form import RuleFormState
from state.server import activity as activity_tab
from state.server.activity import ActivityState
from state.server.api_tokens import ApiTokensState
from state.server.breaker import HeldBackState
from state.server.channels import ChannelsState
from state.server.first_steps import FirstStepsState
from state.server.health import ServerHealthState
from state.server.members import EVERYBODY, MembersState
from state.server.move import MoveState
from state.server.protected_roles import ProtectedRolesState
from state.server.rules import RulesState
from state.server.webhook import DELETE, WebhookState
from tests.app.api.browsers import Browser
from tests.state.conftest import SignIn, Tab
from tests.state.server.test_breaker import tripped as tripped
from tests.state.towns import opened, with_rule
from tests.support.builders import a_member

Tripped = tuple[Tab, Browser, dict[str, Any]]
AWAY = OperationalError("SELECT", {}, Exception("the server closed the connection"))
SAID = "The database does not answer right now. Please try again in a few seconds."
SILENT = "Discord does not answer as it should right now."
TABS: dict[Any, str] = {
    RulesState: "rules", ProtectedRolesState: "rules", MembersState: "members", ActivityState: "activity",
    ChannelsState: "channel", MoveState: "move", ApiTokensState: "developers",
}  # fmt: skip


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Switches that make Discord silent, and make it answer again."""
    kept = {
        name: getattr(permissions, name)
        for name in ("require_admin_to_read", "read_with_guild", "require_admin", "require_admin_by_discord_id")
    }
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)

    async def silent(*_: object, **__: object) -> None:
        raise ProviderUnavailable(SILENT)

    def turn(on: bool) -> None:
        for name, own in kept.items():
            monkeypatch.setattr(permissions, name, silent if on else own)

    return turn


async def test_each_tab_says_what_is_wrong_and_shows_its_content_when_asked_again(
    sign_in: SignIn, silence: Callable[[bool], None]
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    await browser.client.get("/api/servers")
    for kind, name in TABS.items():
        silence(True)
        tab.go("/server-config", serverId=server_id, tab=name)
        page = await tab.state(ServerPageState)
        await tab.run(page.load())
        assert (page.name, page.loaded, page.missing, page.fault) == ("Base Builders", True, False, ""), name
        state: Any = await tab.state(kind)
        await tab.run(state.load())
        assert (state.fault, state.shown_for) == (SILENT, 0), name
        silence(False)
        await tab.run(state.load())
        assert (state.fault, state.shown_for) == ("", server_id), name


async def test_health_and_the_banner_need_no_answer_of_discords(
    sign_in: SignIn, silence: Callable[[bool], None]
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    await browser.client.get("/api/servers")
    silence(True)
    tab.go("/server-config", serverId=server_id, tab="health")
    await tab.run((await tab.state(ServerPageState)).load())
    health = await tab.state(ServerHealthState)
    await tab.run(health.load())
    assert (health.fault, health.shown_for) == ("", server_id)
    banner = await tab.state(HeldBackState)
    await tab.run(banner.load())
    assert banner.shown_for == 0


async def test_one_failure_of_what_is_around_the_tabs_is_not_seen(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    await browser.client.get("/api/servers")
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    failed = list[str]()

    def once(module: Any, name: str) -> None:
        own = getattr(module, name)

        async def answer(*given: Any, **more: Any) -> Any:
            if name not in failed:
                failed.append(name)
                raise ProviderUnavailable(SILENT)
            return await own(*given, **more)

        monkeypatch.setattr(module, name, answer)

    for module, name in ((first_steps, "view"), (breaker_review, "of_server"), (reach_by_day, "of_rule"),
                         (servers, "list_servers")):  # fmt: skip
        once(module, name)
    steps = await opened(tab, FirstStepsState, rule["serverId"], "rules")
    banner = await opened(tab, HeldBackState, rule["serverId"], "rules")
    assert (bool(steps.steps), banner.shown_for) == (True, rule["serverId"])
    form, reach = await tab.state(RuleFormState), await tab.state(ReachState)
    form.rule_id = rule["id"]
    await tab.run(reach.load_days())
    tab.go(f"/dashboard/server/{rule['serverId']}")
    (await tab.state(SessionState)).audience = MEMBER
    assert "server-config" in str(await tab.run((await tab.state(OpenServerState)).open()))
    assert failed == ["view", "of_server", "of_rule", "list_servers"]


async def test_the_rule_form_stays_usable_without_the_roles_and_never_shows_a_rule_it_has_not_read(
    sign_in: SignIn, silence: Callable[[bool], None]
) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    form = await tab.state(RuleFormState)
    silence(True)
    tab.go("/add-verification-rule", serverId=rule["serverId"])
    await tab.run(form.load())
    assert (form.loaded, form.roles_failed, form.fault, form.load_fault) == (True, True, "", "")
    assert form.roles_fault, "people read why there are no roles, such as that the bot is not in the server"
    assert "roles_fault" in str(_role())
    silence(False)
    await tab.run(form.load_roles())
    assert (form.roles_failed, bool(form.roles)) == (False, True)
    form.visit = -1
    silence(True)
    tab.go("/add-verification-rule", serverId=rule["serverId"], ruleId=rule["id"])
    await tab.run(form.load())
    assert (form.loaded, form.load_fault) == (False, SILENT)
    silence(False)
    await tab.run(form.load())
    assert (form.loaded, form.load_fault, form.rule_name) == (True, "", rule["ruleName"])


async def test_the_form_of_somebody_elses_server_is_not_shown(sign_in: SignIn) -> None:
    tab, _ = await sign_in("mallory")
    form = await tab.state(RuleFormState)
    tab.go("/add-verification-rule", serverId=1, serverName="Cats")
    await tab.run(form.load())
    assert form.unknown_server


async def test_a_page_that_could_not_be_read_is_not_turned_to(
    sign_in: SignIn, silence: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    monkeypatch.setattr(member_list, "PAGE_SIZE", 1)
    monkeypatch.setattr(activity_tab, "PAGE_SIZE", 1)
    async with transaction() as db:
        for _ in range(3):
            await a_member(db, await db.get_one(Server, server_id))
    for kind, name in ((MembersState, "members"), (ActivityState, "activity")):
        state: Any = await opened(tab, kind, server_id, name)
        first = state.rows
        silence(True)
        with pytest.raises(ProviderUnavailable):
            await tab.run(state.turn(1))
        assert (state.page, state.rows) == (1, first), name
        silence(False)
        await tab.run(state.turn(1))
        assert state.page == 2, name
        assert state.rows != first, name


async def test_what_reads_itself_again_waits_in_silence_for_discord(
    sign_in: SignIn, silence: Callable[[bool], None]
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    move = await opened(tab, MoveState, server_id, "move")
    move.state = RUNNING
    silence(True)
    await tab.run(move.look())
    assert move.state == RUNNING
    silence(False)
    members = await opened(tab, MembersState, server_id, "members")
    members.checking, members._settled = EVERYBODY, True
    silence(True)
    await tab.run(members.follow())
    assert members.checking == EVERYBODY
    silence(False)
    await tab.run(members.follow())
    assert members.checking == ""


async def test_an_undo_is_not_denied_because_the_log_could_not_be_read_after_it(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    await browser.client.delete(f"/api/verification-rules/{rule['id']}")
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    await tab.run(state.ask_undo(state.rows[0].batch))
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)

    async def silent(*_: object, **__: object) -> None:
        raise ProviderUnavailable(SILENT)

    monkeypatch.setattr(activity, "read", silent)
    await tab.run(state.undo())
    assert (await browser.client.get(f"/api/verification-rules/{rule['id']}")).status_code == 200
    assert (await tab.toast()).startswith("Undone: ")
    assert state.undoing == ""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed reads are repeated without a pause."""
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)


async def away(*_: object, **__: object) -> Any:
    raise AWAY


async def test_the_reasons_of_a_member_say_so_and_can_be_read_again(
    sign_in: SignIn, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    async with transaction() as db:
        member = (await a_member(db, await db.get_one(Server, rule["serverId"]))).discord_id
    state = await opened(tab, MembersState, rule["serverId"], "members")
    with monkeypatch.context() as patched:
        patched.setattr(explain, "why", away)
        await tab.run(state.toggle(member))
        assert (state.opened, state.why_of, state.why_fault) == (member, "", SAID)
        await tab.run(state.protect(member, True))
        assert (await tab.toast()).startswith("Protected: ")
    await tab.run(state.why_again())
    assert (state.why_of, state.why_fault, state.why_protected) == (member, "", True)


async def test_a_revoked_token_is_not_denied(sign_in: SignIn, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    state = await opened(tab, ApiTokensState, rule["serverId"], "developers")
    state.open_form()
    state.set_name("A program")
    await tab.run(state.create())
    state.ask(state.rows[0].id)
    monkeypatch.setattr(api_tokens, "list_of", away)
    await tab.run(state.revoke())
    assert (await tab.toast()).startswith("Token revoked: ")
    assert not state.working


async def test_a_deleted_webhook_is_not_denied(sign_in: SignIn, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    await opened(tab, ApiTokensState, rule["serverId"], "developers")
    state = await tab.state(WebhookState)
    await tab.run(state.edit())
    state.set_typed("https://example.org/hook")
    await tab.run(state.save())
    assert state.is_set, state.fault_text
    state.ask(DELETE)
    monkeypatch.setattr(webhooks, "find", away)
    await tab.run(state.confirm())
    assert (await tab.toast()).startswith("Webhook deleted: ")
    assert not state.working


async def test_a_decision_is_not_denied(tripped: Tripped, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tab, _, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "rules")
    state.ask(rule["roleId"], False)
    monkeypatch.setattr(breaker_review, "of_server", away)
    await tab.run(state.decide())
    assert (await tab.toast()).startswith("Removals dismissed: ")
    assert state.deciding == ""


async def test_a_truce_that_was_ended_is_not_denied(
    sign_in: SignIn, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ended(*_: object) -> None:
        """End it."""

    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    state = await opened(tab, ServerHealthState, rule["serverId"], "health")
    monkeypatch.setattr(rival_reports, "follow_again", ended)
    monkeypatch.setattr(server_health, "view", away)
    await tab.run(state.follow_again(rule["roleId"]))
    assert (await tab.toast()).startswith("The rules decide again: ")
