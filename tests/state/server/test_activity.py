"""The Activity tab: rows of the log, its filters and pages, and an undo that is confirmed first."""

import re
from typing import Any
from uuid import uuid4

import pytest

from models import Server, transaction
from services.core import audit
from services.core.errors import ProviderUnavailable
from services.guilds import permissions
from services.servers import activity
from services.servers.activity import BY_ITSELF
from settings import settings
from state.core import retry
from state.dashboard.server_page import ServerPageState
from state.server.activity import ActivityState
from tests.app.api.browsers import Browser
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened, with_rule
from tests.support.builders import a_member


@pytest.fixture
async def made(sign_in: SignIn) -> tuple[Tab, Browser, dict[str, Any]]:
    """ada's tab, her browser, and the rule of her server."""
    tab, browser = await sign_in("ada")
    return tab, browser, await with_rule(browser)


async def lost(rule: dict[str, Any], *names: str, together: bool = True) -> list[str]:
    """Make members who lost the rule's role, in one batch or each alone, and return their Discord ids."""
    batch = uuid4()
    async with transaction() as db:
        server = await db.get_one(Server, rule["serverId"])
        people = [await a_member(db, server) for _ in names]
        for member, name in zip(people, names, strict=True):
            member.name = name
        lines = [
            audit.line(
                "role.taken", server_id=rule["serverId"], subject=member.discord_id, role_id=rule["roleId"],
                batch=batch if together else uuid4(),
            )
            for member in people
        ]  # fmt: skip
        await audit.record_all(db, lines)
        return [member.discord_id for member in people]


async def test_lines_of_one_batch_are_one_row_and_filters_find_them(made: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = made
    people = await lost(rule, "Carol", "Dave")
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    assert [row.kind for row in state.rows] == ["role.taken", "rule.created", "server.added"]
    first = state.rows[0]
    assert first.text.startswith("Dave lost Holder")
    assert [text.split(":")[0] for text in first.more] == ["Carol lost Holder"]
    assert (bool(first.batch), first.member, state.rows[1].batch) == (True, "", "")
    assert [option.label for option in state.roles] == ["Holder"]
    assert [option.label for option in state.rules] == ["Builders"]
    assert [option.label for option in state.actors] == ["Ada"]
    for choose, value, kinds in [
        (state.choose_kind, "rule", ["rule.created"]),
        (state.choose_kind, "", ["role.taken", "rule.created", "server.added"]),
        (state.enter_member, "caro", ["role.taken"]),
        (state.enter_member, "", ["role.taken", "rule.created", "server.added"]),
        (state.choose_subject, f"rule:{rule['id']}", ["rule.created"]),
        (state.choose_subject, f"role:{rule['roleId']}", ["role.taken", "rule.created"]),
        (state.choose_actor, BY_ITSELF, ["role.taken"]),
        (state.choose_days, "7", ["role.taken"]),
    ]:
        await tab.run(choose(value))
        assert [row.kind for row in state.rows] == kinds, value
    assert f"roleId={rule['roleId']}&actor=itself&since=" in state.csv_url
    key = state.member_key
    await tab.run(state.clear())
    assert (len(state.rows), state.member_key) == (3, key), "the input stays: somebody may type in it already"
    assert state.csv_url == f"/api/servers/{rule['serverId']}/events.csv?"
    state = await opened(tab, ActivityState, rule["serverId"], "activity", member=people[0])
    assert ([row.text.split(" ")[0] for row in state.rows], state.member) == (["Carol"], people[0])
    assert state.member_key != key, "a new input shows whom the link names"
    assert state.rows[0].member == people[0]
    await tab.run(state.choose_kind("rule"))
    await tab.run(state.enter_member(""))
    await tab.run(state.load())
    assert ([row.kind for row in state.rows], state.member) == (["rule.created"], ""), "a reconnect keeps the filters"


async def test_the_download_is_of_the_server_that_the_page_is_about_also_if_its_log_cannot_be_read(
    made: tuple[Tab, Browser, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer.")

    tab, _, rule = made
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    state.shown_for, state.csv_url = rule["serverId"] + 1, f"/api/servers/{rule['serverId'] + 1}/events.csv?kind=rule"
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    monkeypatch.setattr(activity, "choices", away)
    await tab.run(state.load())
    assert (state.fault, state.csv_url) == ("Discord does not answer.", f"/api/servers/{rule['serverId']}/events.csv?")


async def test_many_lines_are_turned_page_by_page(made: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = made
    await lost(rule, *(f"m{number:03}" for number in range(118)), together=False)
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    pages: list[tuple[int, str, int, bool]] = []
    for by in (0, 1, 1, 1, -1, -1, -1):
        await tab.run(state.turn(by))
        pages.append((state.page, state.rows[0].text.split(" ")[0], len(state.rows), state.is_last))
    first, second, third = (1, "m117", 50, False), (2, "m067", 50, False), (3, "m017", 20, True)
    assert pages == [first, second, third, third, second, first, first]


async def test_a_deleted_rule_is_brought_back_after_a_question(made: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, browser, rule = made
    path = f"/api/verification-rules/{rule['id']}"
    await browser.client.delete(path)
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    batch = state.rows[0].batch
    await tab.run(state.ask_undo(batch))
    assert state.asked_text.startswith("The rule “Builders” comes back as it was.")
    state.close_dialog(False)
    await tab.run(state.undo())
    assert (await browser.client.get(path)).status_code == 404, "the question was closed"
    await tab.run(state.ask_undo(batch))
    await tab.run(state.undo())
    assert (await browser.client.get(path)).status_code == 200
    assert (await tab.toast()).startswith("Undone: The rule “Builders” comes back")
    assert [(row.kind, row.batch) for row in state.rows[:2]] == [("batch.undone", ""), ("rule.deleted", "")]
    for unknown in (batch, str(uuid4()), "nothing"):
        await tab.run(state.ask_undo(unknown))
        assert (await tab.toast()).startswith("This cannot be undone")
        assert state.asked == ""


async def test_while_discord_is_away_an_undo_is_put_off_and_not_called_impossible(
    made: tuple[Tab, Browser, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer as it should right now. Please try again in 5 seconds.")

    tab, browser, rule = made
    path = f"/api/verification-rules/{rule['id']}"
    await browser.client.delete(path)
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    batch = state.rows[0].batch
    said = "Discord could not be asked: Discord does not answer as it should right now. Please try again in 5 seconds."
    with monkeypatch.context() as patched:
        patched.setattr(permissions, "require_admin", away)
        await tab.run(state.ask_undo(batch))
        assert ((await tab.toast()), state.asked, state.undoing) == (said, "", "")
    await tab.run(state.ask_undo(batch))
    with monkeypatch.context() as patched:
        patched.setattr(permissions, "require_admin", away)
        await tab.run(state.undo())
        assert (await tab.toast()) == said
    await tab.run(state.ask_undo(batch))
    await tab.run(state.undo())
    assert (await browser.client.get(path)).status_code == 200


async def test_what_an_undo_would_do_is_worked_out_as_often_as_other_previews(
    made: tuple[Tab, Browser, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMIT_PREVIEWS", "1")
    settings.cache_clear()
    tab, browser, rule = made
    await browser.client.delete(f"/api/verification-rules/{rule['id']}")
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    batch = state.rows[0].batch
    await tab.run(state.ask_undo(batch))
    assert state.asked == batch
    state.close_dialog(False)
    await tab.run(state.ask_undo(batch))
    assert (state.asked, (await tab.toast()).partition(":")[0]) == ("", "Not so fast")


async def test_nobody_else_reads_or_undoes(made: tuple[Tab, Browser, dict[str, Any]], sign_in: SignIn) -> None:
    mine, browser, rule = made
    await browser.client.delete(f"/api/verification-rules/{rule['id']}")
    batch = (await opened(mine, ActivityState, rule["serverId"], "activity")).rows[0].batch
    tab, _ = await sign_in("mallory")
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    assert (await tab.state(ServerPageState)).missing
    for asked in (state.choose_kind("rule"), state.turn(1), state.ask_undo(batch)):
        await tab.run(asked)
    state.asked = batch
    await tab.run(state.undo())
    assert state.rows == []
    assert (await tab.toast()) == "This cannot be undone: Server not found"


async def test_rules_that_share_a_name_are_told_apart_in_the_filter(made: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, browser, rule = made
    copy = {name: rule[name] for name in ("ruleName", "contractAddress", "blockchain", "roleId", "serverId")}
    again = await browser.client.post("/api/verification-rules", json={**copy, "verificationType": "basic"})
    assert again.status_code == 201, again.text
    gone = await browser.client.delete(f"/api/verification-rules/{again.json()['id']}")
    assert gone.status_code == 200, gone.text
    state = await opened(tab, ActivityState, rule["serverId"], "activity")
    labels = {option.value: option.label for option in state.rules}
    assert re.fullmatch(r"Builders \(created \d+ \w+ \d+, \d\d:\d\d UTC\)", labels[f"rule:{rule['id']}"])
    assert labels[f"rule:{again.json()['id']}"].endswith(", deleted)")
