"""The banner for removals that the breaker holds back: the members, the reason, and the two answers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import select

from models import Breaker, Grant, Rule, Server, now, transaction
from services.core.errors import Conflict
from services.rules import rules
from state.dashboard.server_page import ServerPageState
from state.dashboard.servers import DashboardState
from state.server.breaker import SHOWN_ON, HeldBackState
from state.server.members import EVERYBODY, MembersState
from state.server.rules import RulesState
from tests.app.api.browsers import Browser
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened, with_rule
from tests.support.builders import a_grant, a_member


@pytest.fixture
async def tripped(sign_in: SignIn) -> tuple[Tab, Browser, dict[str, Any]]:
    """ada's tab and browser, and her rule, whose role carol and dave would lose."""
    tab, browser = await sign_in("ada")
    rule = await with_rule(browser)
    await browser.client.patch(f"/api/verification-rules/{rule['id']}", json={"minTokens": 3})
    reading = {
        "answer": "no", "chain": "base", "contract": rule["contractAddress"], "type": "basic", "needed": 3,
        "held": "1", "reason": None,
    }  # fmt: skip
    async with transaction() as db:
        server, row = await db.get_one(Server, rule["serverId"]), await db.get_one(Rule, rule["id"])
        for name in ("Dave", "Carol"):
            member = await a_member(db, server, roles=(rule["roleId"],))
            member.name = name
            grant = await a_grant(db, member, row)
            grant.held_back_at, grant.evidence = now(), {"readings": [reading]}
        db.add(Breaker(server_id=rule["serverId"], role_id=rule["roleId"], would_lose=7, holders=9))
    return tab, browser, rule


async def grants(rule: dict[str, Any]) -> Sequence[Grant]:
    async with transaction() as db:
        return (await db.exec(select(Grant).where(Grant.server_id == rule["serverId"]))).all()


@pytest.mark.parametrize("tab_name", SHOWN_ON)
async def test_who_would_lose_what_and_why_stands_above_the_tabs(
    tripped: tuple[Tab, Browser, dict[str, Any]], tab_name: str
) -> None:
    tab, _, rule = tripped
    (role,) = (await opened(tab, HeldBackState, rule["serverId"], tab_name)).roles
    assert role.headline == "7 of 9 holders would lose Holder within a day"
    # The headline counts who had lost it earlier that day; what is listed and decided about is fewer people.
    assert role.since == "Held back just now. Nothing is taken until you decide. 2 members would lose it now."
    assert role.cause.startswith("Ada changed the rule “Builders”: it asks for at least 3 tokens of ")
    assert [loser.name for loser in role.losers] == ["Carol", "Dave"]
    assert role.losers[0].reason.startswith("holds 1, needs 3 of ")
    assert (role.total, role.more) == (2, "")


async def test_the_dashboard_says_that_removals_wait(tripped: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = tripped
    tab.go("/dashboard")
    dashboard = await tab.state(DashboardState)
    await tab.run(dashboard.load())
    waiting = {card.internal_id: card.held_back for card in dashboard.cards}
    assert waiting[rule["serverId"]] == "Removals of a role wait for your decision"


async def test_the_banner_reads_nothing_on_other_tabs(tripped: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = tripped
    assert (await opened(tab, HeldBackState, rule["serverId"], "activity")).roles == []


async def test_held_back_roles_appear_and_disappear_but_not_while_somebody_answers(
    tripped: tuple[Tab, Browser, dict[str, Any]],
) -> None:
    tab, browser, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "health")
    state.ask(rule["roleId"], True)
    path = f"/api/servers/{rule['serverId']}/breaker"
    assert (await browser.client.post(path, json={"approve": True})).status_code == 200
    await tab.run(state.look())
    assert len(state.roles) == 1, "the question is about it"
    state.close_dialog(False)
    await tab.run(state.look())
    assert state.roles == []
    async with transaction() as db:
        db.add(Breaker(server_id=rule["serverId"], role_id="77", would_lose=6, holders=6))
    await tab.run(state.look())
    assert [role.id for role in state.roles] == ["77"]


@pytest.mark.parametrize("approve", [True, False])
async def test_an_answer_is_given_after_a_question(tripped: tuple[Tab, Browser, dict[str, Any]], approve: bool) -> None:
    tab, _, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "members")
    state.ask("unknown", approve)
    assert state.asked == ""
    state.ask(rule["roleId"], approve)
    assert "2 members" in state.asked_text
    state.close_dialog(False)
    await tab.run(state.decide())
    assert len(state.roles) == 1, "the question was closed"
    state.ask(rule["roleId"], approve)
    await tab.run(state.decide())
    assert state.roles == []
    assert (await tab.toast()).startswith("Removals approved" if approve else "Removals dismissed")
    assert [grant.gift_since is not None for grant in await grants(rule)] == [not approve] * 2


async def another(rule: dict[str, Any]) -> None:
    """Hold back one more member."""
    async with transaction() as db:
        server, row = await db.get_one(Server, rule["serverId"]), await db.get_one(Rule, rule["id"])
        grant = await a_grant(db, await a_member(db, server, roles=(rule["roleId"],)), row)
        grant.held_back_at = now()


async def test_an_answer_is_for_the_members_that_were_shown(tripped: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "members")
    await another(rule)
    await tab.run(state.look())
    assert [role.total for role in state.roles] == [3]
    state.ask(rule["roleId"], True)
    assert "3 members" in state.asked_text
    await another(rule)
    with pytest.raises(Conflict, match="4 members wait by now, not 3"):
        await tab.run(state.decide())
    assert [role.total for role in state.roles] == [4], "they are shown now"
    assert [grant.held_back_at is not None for grant in await grants(rule)] == [True] * 4
    state.ask(rule["roleId"], True)
    await tab.run(state.decide())
    assert state.roles == []


async def test_a_dismissal_after_an_approval_says_that_it_came_too_late(
    tripped: tuple[Tab, Browser, dict[str, Any]],
) -> None:
    tab, browser, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "members")
    state.ask(rule["roleId"], False)
    body = {"approve": True, "roleId": rule["roleId"]}
    assert (await browser.client.post(f"/api/servers/{rule['serverId']}/breaker", json=body)).status_code == 200
    with pytest.raises(Conflict, match="Nobody waits for a decision about this role any more"):
        await tab.run(state.decide())
    assert state.roles == []
    assert [grant.gift_since for grant in await grants(rule)] == [None] * 2


async def test_a_refused_answer_leaves_the_banner_as_it_was(tripped: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = tripped
    state = await opened(tab, HeldBackState, rule["serverId"], "rules")
    state.ask(rule["roleId"], True)
    (await tab.state(ServerPageState)).server_id += 1
    with pytest.raises(Conflict, match="shows another server now"):
        await tab.run(state.decide())
    assert state.deciding == "", "otherwise the banner is never read again"


async def test_nobody_else_decides(tripped: tuple[Tab, Browser, dict[str, Any]], sign_in: SignIn) -> None:
    mine, _, rule = tripped
    shown = (await opened(mine, HeldBackState, rule["serverId"], "rules")).roles
    tab, browser = await sign_in("mallory")
    state = await opened(tab, HeldBackState, rule["serverId"], "rules")
    assert state.roles == []
    state.roles = shown
    state.ask(rule["roleId"], True)
    with pytest.raises(Exception, match="Server not found"):
        await tab.run(state.decide())
    path = f"/api/servers/{rule['serverId']}/breaker"
    assert (await browser.client.post(path, json={"approve": False})).status_code == 404
    async with transaction() as db:
        row = await db.get_one(Breaker, (rule["serverId"], rule["roleId"]))
    assert (row.approved_at, row.dismissed_at) == (None, None)


@pytest.mark.parametrize("approve", [True, False])
async def test_a_program_says_what_it_was_shown(tripped: tuple[Tab, Browser, dict[str, Any]], approve: bool) -> None:
    _, browser, rule = tripped
    path = f"/api/servers/{rule['serverId']}/breaker"

    async def shown() -> dict[str, Any]:
        ((role,),) = [(await browser.client.get(path)).json()]
        # JavaScript knows milliseconds only.
        return {"trippedAt": role["trippedAt"][:23] + "Z", "total": role["total"]}

    async def decided(status: int, **body: Any) -> str:
        answer = await browser.client.post(path, json={"approve": approve, "roleId": rule["roleId"], **body})
        assert answer.status_code == status, answer.text
        return answer.json().get("message", "")

    seen = await shown()
    await another(rule)
    assert await decided(409, seen=seen) == "3 members wait by now, not 2. Please look again."
    seen = await shown()
    async with transaction() as db:
        row = await db.get_one(Breaker, (rule["serverId"], rule["roleId"]))
        row.tripped_at += timedelta(minutes=1)
    assert (await decided(409, seen=seen)).startswith("The breaker has tripped again: 3 members wait now.")
    assert [grant.held_back_at is not None for grant in await grants(rule)] == [True] * 3
    await decided(422, seen=seen, roleId=None)
    await decided(200, seen=await shown())
    assert "Nobody waits for a decision" in await decided(409, seen=seen)


async def test_the_open_rules_show_what_becomes_of_them_and_how_many_holders_an_approval_left(
    tripped: tuple[Tab, Browser, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser, rule = tripped
    rules_tab = await opened(tab, RulesState, rule["serverId"], "rules")
    assert [row.holders for row in rules_tab.rows] == [2]
    for grant in await grants(rule):
        async with transaction() as db:
            (await db.get_one(Grant, grant.id)).state = "taken"
        await tab.run(rules_tab.look())
    assert [row.holders for row in rules_tab.rows] == [0]
    async with transaction() as db:
        (await db.get_one(Rule, rule["id"])).state = "paused"
    await tab.run(rules_tab.look())
    assert [row.state for row in rules_tab.rows] == ["paused"], "nobody pressed a button"
    another = await browser.client.patch(f"/api/verification-rules/{rule['id']}", json={"minTokens": 3})
    assert another.status_code == 200, another.text
    await tab.run(rules_tab.look())
    assert [row.lines[0].text.split(" of ")[0] for row in rules_tab.rows] == ["At least 3 tokens"]

    async def read_again(*_: object) -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(rules, "list_rules", read_again)
    await tab.run(rules_tab.look())


async def test_the_open_list_of_members_follows_an_approval(tripped: tuple[Tab, Browser, dict[str, Any]]) -> None:
    tab, _, rule = tripped
    members = await opened(tab, MembersState, rule["serverId"], "members")
    state = await opened(tab, HeldBackState, rule["serverId"], "members")
    state.ask(rule["roleId"], True)
    await tab.run(state.decide())
    assert (members.checking, members.asked > 0) == (EVERYBODY, True), "it is read again when nobody waits"
