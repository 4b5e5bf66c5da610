"""The Rules tab: rules made by an import are previewed and activated together, and one is found among many."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from sqlmodel import col, select

from gateways import gateways
from models import Event, Rule, Server, transaction
from services.accounts import sessions
from services.core.errors import NotFound
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.preview import Impact
from services.rules.expression import Requirement, to_document
from state.rule_form.preview import RulePreviewState
from state.rule_form.rule_form import RuleFormState
from state.server.rules import DELETE, PAUSE, RulesState
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened
from tests.support.builders import CONTRACT, a_rule


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town owned by ada and administered by bob; carol has proved a wallet with two tokens, dave one with a token."""
    async with a_town(sandbox_url, "ada", "bob", "carol", "dave") as made:
        await made.call("members", guild=made.name, user=made.people["bob"]["id"], action="add_role", role="Admin")
        await made.see()
        for who in ("carol", "carol", "dave"):
            await made.buys(who)
        for who in ("carol", "dave"):
            await made.prove(who)
        yield made


async def brought(browser: Browser, town: Town) -> None:
    nft = {"type": "ERC721", "chainId": 8453, "contractAddress": town.contract}
    rules = [nft | {"roleName": "Holder"}, nft | {"roleName": "Whale", "minToken": "2"}]
    body = {"source": "collabland", "document": rules, "apply": True}
    answer = await browser.client.post(f"/api/servers/{town.server_id}/import", json=body)
    assert answer.status_code == 200, answer.text


async def previewed(tab: Tab, browser: Browser) -> Impact:
    """Return what the open dialog shows once it has loaded."""
    proposal = (await tab.state(RulePreviewState))._proposal
    assert proposal is not None

    async with transaction() as db:
        actor = await sessions.actor_of(db, browser.session_id or "")
        assert actor is not None
        planned = await plan(db, gateways(), actor, proposal)
    return await preview.whole(gateways(), planned)


async def states(town: Town) -> list[str]:
    async with transaction() as db:
        found = await db.exec(select(Rule.state).where(Rule.server_id == town.server_id).order_by(col(Rule.id)))
        return list(found.all())


async def test_all_rules_in_shadow_are_previewed_and_activated_together(sign_in: SignIn, town: Town) -> None:
    tab, browser = await sign_in(town.people["ada"]["username"])
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    await tab.run(rules.ask_all())
    assert (rules.waiting, rules.asked_id) == (0, 0), "there is nothing to ask about"
    await brought(browser, town)
    await tab.run(rules.imported(2))
    assert (await tab.toast()).startswith("Rules imported: 2 rules are in shadow")
    assert (rules.waiting, [row.state for row in rules.rows]) == (2, ["shadow", "shadow"])

    await tab.run(rules.ask_all())
    assert (rules.asked_title, rules.asked_action) == ("What 2 rules would do", "Activate 2 rules")
    found = await previewed(tab, browser)
    names = {person["username"]: name for name, person in town.people.items()}
    assert sorted((names[one.name], one.role_name, one.outcome) for one in found.members) == [
        ("carol", "Holder", "gain"), ("carol", "Whale", "gain"), ("dave", "Holder", "gain"),
    ]  # fmt: skip
    assert await states(town) == ["shadow", "shadow"]
    await tab.run(rules.confirm())
    assert await states(town) == ["active", "active"]
    assert (rules.waiting, rules.asked_id, [row.state for row in rules.rows]) == (0, 0, ["active", "active"])
    assert (await tab.toast()).startswith("2 rules activated")
    async with transaction() as db:
        lines = (await db.exec(select(Event.data).where(Event.kind == "rule.changed"))).all()
    assert [(data["before"]["state"], data["after"]["state"]) for data in lines] == [("shadow", "active")] * 2


async def test_a_rule_that_left_the_shadow_meanwhile_stays_as_it_is(sign_in: SignIn, town: Town) -> None:
    tab, browser = await sign_in(town.people["ada"]["username"])
    await brought(browser, town)
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    await tab.run(rules.ask_all())
    path = f"/api/verification-rules/{rules.rows[0].id}"
    assert (await browser.client.patch(path, json={"state": "paused"})).status_code == 200
    found = await previewed(tab, browser)
    assert {one.role_name for one in found.members} == {"Whale"}
    await tab.run(rules.confirm())
    assert await states(town) == ["paused", "active"]


async def test_without_the_rights_nothing_is_activated(sign_in: SignIn, town: Town) -> None:
    tab, browser = await sign_in(town.people["bob"]["username"])
    await brought(browser, town)
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    await tab.run(rules.ask_all())
    await town.call("members", guild=town.name, user=town.people["bob"]["id"], action="remove_role", role="Admin")
    with pytest.raises(NotFound):
        await previewed(tab, browser)
    with suppress(NotFound):  # the screen says so
        await tab.run(rules.confirm())
    assert await states(town) == ["shadow", "shadow"]


async def test_a_rule_that_another_admin_deleted_leaves_the_list_with_the_question(sign_in: SignIn, town: Town) -> None:
    tab, browser = await sign_in(town.people["ada"]["username"])
    await brought(browser, town)
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    gone, kept = rules.rows
    await tab.run(rules.ask(gone.id, PAUSE))
    assert (await browser.client.delete(f"/api/verification-rules/{gone.id}")).status_code == 200
    with pytest.raises(NotFound):  # the screen says so
        await tab.run(rules.confirm())
    assert ([row.id for row in rules.rows], rules.working) == ([kept.id], 0)


async def test_one_rule_is_found_among_many_by_its_name_role_collection_or_contract(
    sign_in: SignIn, town: Town
) -> None:
    tab, browser = await sign_in(town.people["ada"]["username"])
    await brought(browser, town)
    async with transaction() as db:
        server = await db.get(Server, town.server_id)
        assert server is not None
        other = await a_rule(db, server, "7")
        other.name, other.role_name = "Early birds", "Blue Whale"
        db.add(other)
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    holder, whale, early = (row.id for row in rules.rows)

    async def found(text: str) -> list[int]:
        await tab.run(rules.narrow(text))
        return [row.id for row in rules.rows if row.id not in rules.left_out]

    assert await found("") == [holder, whale, early]
    assert await found("  eArLy ") == [early], "by its name"
    assert await found("whale") == [whale, early], "by its role"
    assert await found("birds blue") == [], "as it stands there"
    assert await found(CONTRACT[:12]) == [early], "by the contract, from its beginning"
    assert await found(CONTRACT[5:12]) == []
    assert await found(town.name) == [holder, whale], "by the collection"
    assert await found("nowhere") == []
    await tab.run(rules.show_all())
    assert (rules.filter, rules.left_out) == ("", [])

    await found("early")
    path = f"/api/verification-rules/{whale}"
    assert (await browser.client.patch(path, json={"ruleName": "Early whales"})).status_code == 200
    await tab.run(rules.look())
    assert (rules.filter, rules.left_out) == ("early", [holder]), "the refresh keeps the filter"
    await tab.run(rules.ask(early, PAUSE))
    await tab.run(rules.confirm())
    assert (rules.filter, rules.left_out) == ("early", [holder]), "and so does an action"


async def test_a_rule_that_a_newer_version_wrote_is_shown_paused_exported_and_deleted(
    sign_in: SignIn, town: Town
) -> None:
    tab, browser = await sign_in(town.people["ada"]["username"])
    newer = {"newer": [to_document(Requirement("basic", "base", CONTRACT))]}
    async with transaction() as db:
        rule = await a_rule(db, await db.get_one(Server, town.server_id), "7")
        rule.expression = newer
        db.add(rule)
    rules: Any = await opened(tab, RulesState, town.server_id, "rules")
    assert [row.id for row in rules.rows] == [rule.id]
    await tab.run(rules.ask(rule.id, PAUSE))
    await tab.run(rules.confirm())
    assert await states(town) == ["paused"]
    server, path = f"/api/servers/{town.server_id}", f"/api/verification-rules/{rule.id}"
    exported = (await browser.client.get(f"{server}/rules.json")).json()["rules"]
    assert [one["expression"] for one in exported] == [newer]
    order = {"chain": "base", "contract": town.contract, "newContract": CONTRACT}
    migrated = await browser.client.post(f"{server}/migrations", json=order)
    assert migrated.json() == {"message": "No rule of this server names this contract on Base."}
    changed = await browser.client.patch(path, json={"ruleName": "Another name"})
    assert (changed.status_code, changed.json()["message"]) == (400, "A condition needs type, chain and contract.")
    tab.go("/add-verification-rule", serverId=town.server_id, ruleId=rule.id)
    form: Any = await tab.state(RuleFormState)
    await tab.run(form.load())
    assert (form.load_fault, form.loaded) == ("A condition needs type, chain and contract.", False)
    rules = await opened(tab, RulesState, town.server_id, "rules")
    await tab.run(rules.ask(rule.id, DELETE))
    await tab.run(rules.confirm())
    assert rules.rows == []
    lines = (await browser.client.get(f"{server}/events", params={"kind": "rule.deleted"})).json()
    undone = await browser.client.post(f"{server}/events/{lines[0]['batch']}/undo")
    assert (undone.status_code, undone.json()) == (409, {"message": "A condition needs type, chain and contract."})
