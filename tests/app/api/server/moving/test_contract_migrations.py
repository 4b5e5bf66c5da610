"""A collection that moves to another contract, through the dashboard's calls: preview, apply, end, undo."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import col, select, update

from models import ContractMigration, Event, Rule, now, transaction
from services.rules.replacements import contract_migrations
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rivals import owner as owner
from tests.app.api.server.test_rivals import town as town
from tests.jobs.town import Town

NOBODYS = "0x" + "9" * 40


async def new_collection(town: Town) -> str:
    made = await town.call(f"chains/{town.chain}/deploy", standard="ERC721", name="New Cats", slug=uuid.uuid4().hex)
    return str(made["contract"]).lower()


async def ask(owner: Browser, town: Town, new: str, path: str = "", **changes: Any) -> Any:
    payload: dict[str, Any] = {"chain": town.chain, "contract": town.contract, "newContract": new, **changes}
    return await owner.client.post(f"/api/servers/{town.server_id}/migrations{path}", json=payload)


async def stored(town: Town) -> dict[str, Any]:
    """Return the expressions of the server's rules, by name."""
    async with transaction() as db:
        rows = await db.exec(select(Rule.name, Rule.expression).where(Rule.server_id == town.server_id))
        return dict(rows.all())


async def add(owner: Browser, town: Town, name: str, expression: dict[str, Any]) -> int:
    payload = {
        "serverId": town.server_id, "ruleName": name, "roleId": await town.role("Holder"), "expression": expression,
    }  # fmt: skip
    made = await owner.client.post("/api/verification-rules", json=payload)
    assert made.status_code == 201, made.text
    return int(made.json()["id"])


def of(contract: str, least: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "basic", "chain": "base", "contract": contract.lower(), "minTokens": least, **more}


async def test_both_count_until_somebody_ends_it_and_each_step_can_be_undone(owner: Browser, town: Town) -> None:
    new = await new_collection(town)
    old = town.contract.lower()
    await add(owner, town, "Two and a wallet", {"all": [of(old, 2), {"type": "any_wallet"}]})
    ids = {"type": "token_id", "chain": "base", "contract": old, "minTokens": 1, "tokenIds": ["7"]}
    seven = await add(owner, town, "Number seven", ids)
    before = await stored(town)

    seen = await ask(owner, town, new, both=True)
    assert seen.status_code == 200, seen.text
    assert [one["name"] for one in seen.json()["rules"]] == ["A rule", "Two and a wallet"]
    (left,) = seen.json()["left"]
    assert (left["name"], "same" in left["why"]) == ("Number seven", True)
    assert (seen.json()["applied"], await stored(town)) == (False, before)

    done = (await ask(owner, town, new, both=True, apply=True, sameIds=True)).json()
    assert (done["applied"], len(done["rules"]), done["left"]) == (True, 3, [])
    assert done["rules"][1]["notes"] == ["Tokens of both contracts add up."]
    with_both = await stored(town)
    assert with_both["A rule"] == {"any": [of(new), of(old)]}
    assert with_both["Two and a wallet"] == {
        "all": [{"any": [of(new, 2), {"all": [of(new), of(old)]}, of(old, 2)]}, {"type": "any_wallet"}]
    }
    (running,) = (await owner.client.get(f"/api/servers/{town.server_id}/migrations")).json()
    assert (running["id"], running["until"], len(running["rules"])) == (done["id"], None, 3)

    preview = await owner.client.post(f"/api/servers/{town.server_id}/migrations/{done['id']}/preview")
    assert preview.status_code == 200, preview.text
    ended = (await owner.client.post(f"/api/servers/{town.server_id}/migrations/{done['id']}/end")).json()
    assert (len(ended["rules"]), ended["left"]) == (3, [])
    assert (await stored(town))["Two and a wallet"] == {"all": [of(new, 2), {"type": "any_wallet"}]}
    assert (await stored(town))["Number seven"] == {**ids, "contract": new}
    again = await owner.client.post(f"/api/servers/{town.server_id}/migrations/{done['id']}/end")
    assert again.status_code == 404

    too_early = await owner.client.post(f"/api/servers/{town.server_id}/events/{done['batch']}/undo")
    assert (too_early.status_code, "changed again since" in too_early.json()["message"]) == (409, True)
    for batch, wanted in ((ended["batch"], with_both), (done["batch"], before)):
        undone = await owner.client.post(f"/api/servers/{town.server_id}/events/{batch}/undo")
        assert undone.status_code == 200, undone.text
        assert await stored(town) == wanted
        running = (await owner.client.get(f"/api/servers/{town.server_id}/migrations")).json()
        assert len(running) == (1 if wanted is with_both else 0)
    lines = (await owner.client.get(f"/api/servers/{town.server_id}/events?kind=rule")).json()
    said = [one["text"] for one in lines if one["kind"] in {"rule.migrated", "rule.migration_ended"}]
    assert [("both count until" in text, "only the new one counts" in text) for text in said] == [
        (False, True), (True, False),
    ]  # fmt: skip
    about_one = (await owner.client.get(f"/api/servers/{town.server_id}/events?kind=batch&ruleId={seven}")).json()
    assert [(one["ruleId"], one["data"]["rules"], seven in one["data"]["ruleIds"]) for one in about_one] == [
        (None, 3, True), (None, 3, True),
    ], "the log of a rule has each undo that put it back"  # fmt: skip


async def test_an_undo_of_one_rule_names_it(owner: Browser, town: Town) -> None:
    done = (await ask(owner, town, await new_collection(town), apply=True)).json()
    assert (await owner.client.post(f"/api/servers/{town.server_id}/events/{done['batch']}/undo")).status_code == 200
    (line,) = (await owner.client.get(f"/api/servers/{town.server_id}/events?kind=batch")).json()
    assert (line["data"]["ruleIds"], line["ruleName"]) == ([line["ruleId"]], "A rule")


async def test_only_the_new_one_changes_the_rules_and_a_rule_changed_since_stays(owner: Browser, town: Town) -> None:
    new, old = await new_collection(town), town.contract.lower()
    rule_id = await add(owner, town, "Three", of(old, 3))
    done = (await ask(owner, town, new, apply=True)).json()
    assert (len(done["rules"]), done["id"]) == (2, None)
    assert set(map(str, (await stored(town)).values())) == {str(of(new)), str(of(new, 3))}
    changed = await owner.client.patch(f"/api/verification-rules/{rule_id}", json={"minTokens": 4})
    assert changed.status_code == 200, changed.text
    undone = await owner.client.post(f"/api/servers/{town.server_id}/events/{done['batch']}/undo")
    assert "Changed since, or not yours to change: “Three”." in undone.json()["text"]
    assert (await stored(town))["A rule"] == of(old)
    assert (await stored(town))["Three"] == of(new, 4)


async def test_its_date_ends_it_once_and_an_edited_rule_keeps_both(owner: Browser, town: Town) -> None:
    new, old = await new_collection(town), town.contract.lower()
    rule_id = await add(owner, town, "Edited", of(old))
    until = (now() + timedelta(days=3)).isoformat()
    done = await ask(owner, town, new, both=True, until=until, apply=True)
    assert done.status_code == 200, done.text
    edited = {"any": [of(new), of(old), of(old, 0, maxTokens=5)]}
    answer = await owner.client.patch(f"/api/verification-rules/{rule_id}", json={"expression": edited})
    assert answer.status_code == 200, answer.text
    async with transaction() as db:
        assert await contract_migrations.end_due(db) == 0
    async with transaction() as db:
        mine = update(ContractMigration).where(col(ContractMigration.server_id) == town.server_id)
        await db.exec(mine.values(until=now() - timedelta(seconds=1)))
    async with transaction() as db:
        assert await contract_migrations.end_due(db) == 1
    async with transaction() as db:
        assert await contract_migrations.end_due(db) == 0
        lines = await db.exec(
            select(Event).where(Event.server_id == town.server_id, Event.kind == "rule.migration_ended")
        )
        (line,) = lines.all()
    assert (line.actor, line.data["rules"], line.data["left"]) == (None, 1, 1)
    assert (await stored(town))["A rule"] == of(new)
    assert (await stored(town))["Edited"] == edited


async def test_one_whose_rule_a_newer_version_wrote_does_not_hold_back_the_others(owner: Browser, town: Town) -> None:
    new, newest, old = await new_collection(town), await new_collection(town), town.contract.lower()
    until = (now() + timedelta(days=3)).isoformat()
    done = await ask(owner, town, new, both=True, until=until, apply=True)
    other = await add(owner, town, "Other", of(new, 2))
    last = await ask(owner, town, newest, contract=new, both=True, until=until, apply=True)
    assert (done.status_code, last.status_code) == (200, 200), last.text
    newer = {"any": [of(newest), {**of(old), "newer": True}]}
    async with transaction() as db:
        first = await db.get(ContractMigration, done.json()["id"])
        assert first is not None
        (rule_id,) = first.rules
        first.rules = {rule_id: {"both": newer, "only": of(newest)}}
        db.add(first)
        await db.exec(update(Rule).where(col(Rule.id) == int(rule_id)).values(expression=newer))
        mine = update(ContractMigration).where(col(ContractMigration.server_id) == town.server_id)
        await db.exec(mine.values(until=now() - timedelta(seconds=1)))
    async with transaction() as db:
        assert await contract_migrations.end_due(db) == 1
    async with transaction() as db:
        rule = await db.get(Rule, other)
        rows = await db.exec(
            select(ContractMigration.state)
            .where(ContractMigration.server_id == town.server_id)
            .order_by(col(ContractMigration.id))
        )
        assert (rule and rule.expression, rows.all()) == (of(newest, 2), ["open", "ended"])


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"newContract": ""}, 400, "Enter the contract's address."),
        ({"newContract": "0x12"}, 400, "An address that starts with 0x"),
        ({"newContract": NOBODYS}, 409, "can be carried over: There is no contract at"),
        ({"contract": NOBODYS, "newContract": "0x" + "8" * 40}, 400, "No rule of this server names this contract"),
        ({"chain": "moon"}, 400, "Rules on"),
        ({"chain": ""}, 400, "Blockchain is required"),
        ({"both": True, "until": "2020-01-01"}, 400, "is in the future"),
    ],
    ids=["empty", "short", "no contract", "no rule", "other chain", "no chain", "past"],
)
async def test_what_cannot_be_is_refused_and_nothing_changes(
    owner: Browser, town: Town, changes: dict[str, Any], status: int, message: str
) -> None:
    before = await stored(town)
    answer = await ask(owner, town, changes.pop("newContract", "0x" + "7" * 40), apply=True, **changes)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text
    assert await stored(town) == before


async def test_the_same_contract_a_stranger_and_anothers_migration_get_nowhere(
    owner: Browser, town: Town, new_browser: Callable[[], Browser]
) -> None:
    same = await ask(owner, town, town.contract, apply=True)
    assert "the same as the old one" in same.json()["message"]
    assert (await owner.client.post(f"/api/servers/{town.server_id}/migrations/1/end")).status_code == 404
    browser = new_browser()
    await browser.sign_in(town.people["dave"]["username"])
    for path in ("", "/preview", "/1/preview", "/1/end"):
        assert (await ask(browser, town, NOBODYS, path)).status_code == 404, path
    assert (await browser.client.get(f"/api/servers/{town.server_id}/migrations")).status_code == 404


async def test_a_role_in_anothers_place_names_what_stays_and_what_cannot_be(owner: Browser, town: Town) -> None:
    old, new = await town.role("Holder"), await town.role("Collector")
    call = f"/api/servers/{town.server_id}/migrations/role"

    async def refused(old_role: str, new_role: str) -> str:
        answer = await owner.client.post(call, json={"oldRole": old_role, "newRole": new_role, "apply": True})
        assert answer.status_code == 400, answer.text
        return str(answer.json()["message"])

    assert await refused(old, old) == "Choose another role than the old one."
    assert (await refused(old, "1")).startswith("This role does not exist")
    assert await refused(new, old) == "No rule of this server gives this role."
    assert "cannot" in await refused(old, (await town.guild())["id"]), "everybody has it"

    seen = (await owner.client.post(call, json={"oldRole": old, "newRole": new})).json()
    assert ([one["name"] for one in seen["rules"]], seen["applied"], seen["batch"]) == (["A rule"], False, None)
    done = (await owner.client.post(call, json={"oldRole": old, "newRole": new, "apply": True})).json()
    rules = (await owner.client.get(f"/api/verification-rules?serverId={town.server_id}")).json()
    assert ([one["roleId"] for one in rules], done["newName"]) == ([new], "Collector")
    lines = (await owner.client.get(f"/api/servers/{town.server_id}/events?kind=rule.role_replaced")).json()
    assert lines[0]["text"].endswith("replaced the role Holder with Collector in 1 rule.")


async def test_a_rule_whose_role_was_deleted_resumes_with_the_new_one(owner: Browser, town: Town) -> None:
    new = await town.role("Collector")
    async with transaction() as db:
        gone = update(Rule).where(col(Rule.server_id) == town.server_id)
        await db.exec(gone.values(role_id="4242", state="paused", pause_cause="role_gone", pause_reason="gone"))
    call = f"/api/servers/{town.server_id}/migrations/role"
    done = (await owner.client.post(call, json={"oldRole": "4242", "newRole": new, "apply": True})).json()
    assert [one["state"] for one in done["rules"]] == ["active"]
