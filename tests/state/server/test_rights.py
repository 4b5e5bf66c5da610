"""A screen that stays open while its admin loses their rights: nothing on it can change anything afterwards."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from models import Breaker, now, transaction
from services.core.errors import NotFound
from services.runtime import rate_limits
from state.dashboard.server_page import ServerPageState
from state.rule_form.rule_form import RuleFormState
from state.server.activity import ActivityState
from state.server.api_tokens import ApiTokensState
from state.server.breaker import HeldBackState
from state.server.channels import CREATE, ChannelsState
from state.server.health import ServerHealthState
from state.server.members import EVERYBODY, MembersState
from state.server.move import END, UNDO, MoveState
from state.server.rules import PAUSE, RulesState
from state.server.webhook import DELETE, NEW_SECRET, WebhookState
from tests.app.api.server.test_rights import change, names_of, rows
from tests.app.api.server.test_rights import town as town
from tests.jobs.town import Town
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened

Deed = Callable[[], Awaitable[Any]]


async def deeds(tab: Tab, town: Town, names: dict[str, Any]) -> dict[str, Deed]:
    """Return every action on a server's screens that writes, with its dialogs answered; all are open on the tab."""
    server_id, carol = town.server_id, names["discord_id"]
    form = await tab.state(RuleFormState)
    tab.go("/add-verification-rule", serverId=server_id, ruleId=names["rule_id"])
    await tab.run(form.load())
    channel = await opened(tab, ChannelsState, server_id, "channel")
    activity = await opened(tab, ActivityState, server_id, "activity")
    held_back = await opened(tab, HeldBackState, server_id, "members")
    health = await opened(tab, ServerHealthState, server_id, "health")
    members = await opened(tab, MembersState, server_id, "members")
    rules = await opened(tab, RulesState, server_id, "rules")
    move = await opened(tab, MoveState, server_id, "move")
    open_move = move._seen
    developers = await opened(tab, ApiTokensState, server_id, "developers")
    webhook = await tab.state(WebhookState)
    await tab.run(webhook.edit())
    general = (await town.guild())["channels"][0]["id"]
    banner = held_back.roles

    async def save() -> None:
        form.rule_name = f"{form.rule_name} again"
        await tab.run(form.confirm())  # names the change that `undo` has made to the rule
        await tab.run(form.confirm())

    async def alerts() -> None:
        channel.choose(general)
        await tab.run(channel.save())

    async def decide() -> None:
        held_back.roles = banner  # a tab opened before, which no refusal has emptied
        held_back.ask(names["role_id"], approve=True)
        await tab.run(held_back.decide())

    async def undo() -> None:
        activity.asked = str(names["batch"])
        await tab.run(activity.undo())

    async def pause() -> None:
        rules.asked_id, rules.asked_what = names["rule_id"], PAUSE
        await tab.run(rules.confirm())

    async def save_move() -> None:
        move.set_until((now() + timedelta(days=9)).strftime("%Y-%m-%d"))
        await tab.run(move.save())

    async def end_move() -> None:
        move.asked, move._asked_about = END, open_move
        await tab.run(move.confirm())

    async def undo_move() -> None:
        move.asked = UNDO
        await tab.run(move.confirm())

    async def create_token() -> None:
        developers.open_form()
        developers.set_name("nightly")
        await tab.run(developers.create())

    async def revoke_token() -> None:
        developers.asked_id = int(names["token_id"])
        await tab.run(developers.revoke())

    async def set_webhook() -> None:
        webhook.editing = True
        webhook.set_typed("https://elsewhere.example.org/")
        await tab.run(webhook.save())

    async def confirmed(what: str) -> None:
        webhook.asked = what
        await tab.run(webhook.confirm())

    return {
        "approve": decide,
        "undo": undo,
        "save a rule": save,
        "pause a rule": pause,
        "repair the channel": lambda: tab.run(channel.repair(CREATE)),
        "choose the log channel": alerts,
        "check everybody": lambda: tab.run(members.check_everybody()),
        "check one": lambda: tab.run(members.check(carol)),
        "protect": lambda: tab.run(members.protect(carol, True)),
        "end a member's truce": lambda: tab.run(members.follow_again(town.people["bob"]["id"], names["role_id"])),
        "end a truce": lambda: tab.run(health.follow_again(names["role_id"])),
        "end a move": end_move,
        "begin a move": save_move,
        "undo a move": undo_move,
        "create a token": create_token,
        "revoke a token": revoke_token,
        "set the webhook": set_webhook,
        "send a test event": lambda: tab.run(webhook.send_test()),
        "make a new secret": lambda: confirmed(NEW_SECRET),
        "delete the webhook": lambda: confirmed(DELETE),
    }


async def test_what_is_still_open_changes_nothing_once_the_rights_are_gone(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["bob"]["username"])
    names = await names_of(town)
    async with transaction() as db:
        db.add(Breaker(server_id=town.server_id, role_id=names["role_id"], would_lose=7, holders=9))
    made = await deeds(tab, town, names)
    await change(town, "bob", "remove_role", role="Admin")
    before = await rows()
    for name, deed in made.items():
        with suppress(NotFound):  # the screen says so
            await deed()
        assert await rows() == before, name
    await change(town, "bob", "add_role", role="Admin")
    for name, deed in made.items():
        before = await rows()
        await deed()
        assert await rows() != before, f"{name}: with the rights it works"


async def test_each_change_counts_towards_the_one_limit_of_changes(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in(town.people["bob"]["username"])
    names, spent, spend = await names_of(town), list[str](), rate_limits._spend
    async with transaction() as db:
        db.add(Breaker(server_id=town.server_id, role_id=names["role_id"], would_lose=7, holders=9))
    made = await deeds(tab, town, names)

    async def noted(key: str, per_minute: float) -> None:
        spent.append(key)
        await spend(key, per_minute)

    monkeypatch.setattr(rate_limits, "_spend", noted)
    await browser.client.post("/api/admin/sync-servers")
    (counted,) = [key for key in spent if key.startswith("writes:user:")]
    for name, deed in made.items():
        spent.clear()
        await deed()
        assert counted in spent, name


async def test_what_is_read_again_once_the_rights_are_gone_shows_nothing_more(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["bob"]["username"])
    names = await names_of(town)
    await opened(tab, RulesState, town.server_id, "rules")
    await change(town, "bob", "remove_role", role="Admin")
    async with transaction() as db:
        db.add(Breaker(server_id=town.server_id, role_id=names["role_id"], would_lose=7, holders=9))
    page = await tab.state(ServerPageState)
    tabs = {
        RulesState: "rules", MembersState: "members", ActivityState: "activity", ServerHealthState: "health",
        ChannelsState: "channel", MoveState: "move", ApiTokensState: "developers",
    }  # fmt: skip
    for kind, name in tabs.items():
        page.missing = False  # as it was when the screen was opened
        tab.go("/server-config", serverId=town.server_id, tab=name)
        page.tab = name
        state: Any = await tab.state(kind)
        await tab.run(state.load())
        assert page.missing, name
    shown = [await tab.state(kind) for kind in (MembersState, ActivityState)]
    assert [state.rows for state in shown] == [[], []]


async def test_how_many_wait_for_a_look_is_told_to_those_who_were_let_in_only(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["carol"]["username"])
    await town.rule("Holder")
    tab.go("/server-config", serverId=town.server_id, tab="members")
    page, members = await tab.state(ServerPageState), await tab.state(MembersState)
    # Discord could not be asked when the page was opened, and another member's own check is in progress.
    page.server_id = page._read_for = town.server_id
    page.loaded, page.tab = True, "members"
    members.checking, members.asked, members.left = EVERYBODY, 99, 99
    await tab.run(members.follow())
    assert members.left == 99
