"""The audit log through the API: filtered, as a table, and undone, only for people who run the server."""

import csv
import io
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update
from sqlmodel import col, delete, select

from models import Event, Grant, Member, Rule, Server, now, transaction
from services.core import audit
from services.rules import pausing
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, known, rule, with_server
from tests.app.api.test_main_path import world as world
from tests.support.builders import a_grant, a_member


@pytest.fixture
async def made(browser: Browser, world: dict[str, Any]) -> dict[str, Any]:
    """ada's server with one rule for the role Holder."""
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    await known(world)
    answer = await browser.client.post("/api/verification-rules", json=rule(world, server_id))
    assert answer.status_code == 201, answer.text
    return answer.json()


async def log(browser: Browser, made: dict[str, Any], **asked: Any) -> list[dict[str, Any]]:
    answer = await browser.client.get(f"/api/servers/{made['serverId']}/events", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def somebody(made: dict[str, Any], name: str, *roles: str) -> Member:
    async with transaction() as db:
        member = await a_member(db, await db.get_one(Server, made["serverId"]), roles=roles)
        member.name = name
        return member


async def written(made: dict[str, Any], *lines: dict[str, Any]) -> None:
    async with transaction() as db:
        await audit.record_all(db, [{**line, "server_id": made["serverId"]} for line in lines])


async def undo(browser: Browser, made: dict[str, Any], batch: object, status: int = 200) -> dict[str, Any]:
    path = f"/api/servers/{made['serverId']}/events/{batch}/undo"
    asked, done = await browser.client.get(path), await browser.client.post(path)
    assert asked.status_code == done.status_code == status, (asked.text, done.text)
    assert asked.json() == done.json(), "the preview says what is done"
    return done.json()


async def grants(made: dict[str, Any]) -> Sequence[Grant]:
    async with transaction() as db:
        return (await db.exec(select(Grant).where(Grant.server_id == made["serverId"]))).all()


async def test_the_log_is_told_in_words_and_filtered(browser: Browser, made: dict[str, Any]) -> None:
    carol, dave = await somebody(made, "Carol 100%"), await somebody(made, "Dave")
    role = made["roleId"]
    await written(
        made,
        audit.line("role.given", subject=carol.discord_id, role_id=role, data={"ruleIds": [made["id"]]}),
        audit.line("role.taken", subject=dave.discord_id, role_id=role) | {"at": now() - timedelta(days=3)},
        audit.line("role.given", subject=dave.discord_id, role_id="1", data={"roleName": "Other", "ruleIds": []}),
    )
    every = await log(browser, made)
    assert [line["kind"] for line in every] == [
        "role.given", "role.taken", "role.given", "rule.created", "server.added"
    ]  # fmt: skip
    first = every[2]
    assert first["text"] == "Carol 100% got Holder by “Builders”."
    assert (first["actorName"], first["subjectName"], first["roleName"]) == (None, "Carol 100%", "Holder")
    assert every[3]["actorName"] == "Ada"
    assert [line["undoable"] for line in every] == [False] * 5, "what has no batch, or what made a rule"
    yesterday = (now() - timedelta(days=1)).isoformat()
    for asked, found in [
        ({"kind": "role"}, 3),
        ({"kind": "role.taken, server"}, 2),
        ({"kind": "role_"}, 0),
        ({"member": "carol"}, 1),
        ({"member": dave.discord_id}, 2),
        ({"member": "%"}, 1),
        ({"roleId": role}, 3),
        ({"roleId": "1"}, 1),
        ({"ruleId": made["id"]}, 2),
        ({"actor": "itself"}, 3),
        ({"actor": every[3]["actor"]}, 2),
        ({"since": yesterday}, 4),
        ({"until": yesterday, "kind": "role"}, 1),
        ({"until": yesterday[:10], "kind": "role.given"}, 0),
        ({"since": every[1]["at"][:10], "until": every[1]["at"][:10], "kind": "role"}, 1),
        ({"until": "9999-12-31", "kind": "role"}, 3),
        ({"limit": 2}, 2),
        ({"before": every[2]["id"]}, 2),
    ]:
        assert len(await log(browser, made, **asked)) == found, asked


async def test_the_log_is_a_table_with_the_same_filters(
    browser: Browser, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.server.activity.CSV_PAGE", 2)
    evil = await somebody(made, "=HYPERLINK(1)")
    line = audit.line("role.given", subject=evil.discord_id, role_id=made["roleId"])
    await written(made, *[line] * 5)
    path = f"/api/servers/{made['serverId']}/events.csv"
    answer = await browser.client.get(path)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="activity-{made["serverId"]}.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["kind"] for row in rows] == ["role.given"] * 5 + ["rule.created", "server.added"]
    assert rows[0]["member"] == "'=HYPERLINK(1)"
    assert rows[0]["what happened"] == "'=HYPERLINK(1) got Holder."
    only = await browser.client.get(path, params={"kind": "rule"})
    assert len(only.text.splitlines()) == 2


async def test_a_deleted_rule_comes_back_as_it_was(browser: Browser, made: dict[str, Any]) -> None:
    path = f"/api/verification-rules/{made['id']}"
    await browser.client.patch(path, json={"minTokens": 3, "removal": {"mode": "grace", "hours": 12}})
    before = (await browser.client.get(path)).json()
    for holders in (0, 1):
        if holders:
            carol = await somebody(made, "Carol", made["roleId"])
            async with transaction() as db:
                await a_grant(db, carol, await db.get_one(Rule, made["id"]))
        assert (await browser.client.delete(path)).status_code == 200
        deleted = (await log(browser, made, kind="rule.deleted"))[0]
        assert deleted["undoable"]
        said = await undo(browser, made, deleted["batch"])
        assert said["text"].startswith("The rule “Builders” comes back as it was.")
        assert ("1 member had Holder by it." in said["text"]) is bool(holders)
        after = (await browser.client.get(path)).json()
        assert {**after, "holders": 0, "createdAt": ""} == {**before, "holders": 0, "createdAt": ""}
        assert not (await log(browser, made, kind="rule.deleted"))[0]["undoable"]
    assert (await log(browser, made))[0]["text"] == "Ada brought the rule “Builders” back."
    assert (await undo(browser, made, deleted["batch"], 409))["message"] == "This was undone before."


async def test_a_change_of_a_rule_is_put_back_unless_it_was_changed_again(
    browser: Browser, made: dict[str, Any]
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    for change in ({"minTokens": 3}, {"ruleName": "Kittens"}, {"minTokens": 5}, {"state": "paused"}):
        assert (await browser.client.patch(path, json=change)).status_code == 200
    paused, five, renamed, three = await log(browser, made, kind="rule.changed")
    refused = await undo(browser, made, three["batch"], 409)
    assert refused["message"].startswith("The rule was changed again since.")
    assert "its name was “Kittens”" in (await undo(browser, made, renamed["batch"]))["text"]
    assert "it is active now" in (await undo(browser, made, paused["batch"]))["text"]
    await undo(browser, made, five["batch"])
    now_is = (await browser.client.get(path)).json()
    assert (now_is["ruleName"], now_is["minTokens"], now_is["state"]) == ("Builders", 3, "active")
    await browser.client.delete(path)
    assert "deleted since" in (await undo(browser, made, three["batch"], 409))["message"]


async def test_a_change_that_is_put_back_takes_nothing_more(browser: Browser, made: dict[str, Any]) -> None:
    carol = await somebody(made, "Carol", made["roleId"])
    await browser.client.patch(f"/api/verification-rules/{made['id']}", json={"minTokens": 3})
    async with transaction() as db:
        await a_grant(db, carol, await db.get_one(Rule, made["id"]), state="taking")
    await undo(browser, made, (await log(browser, made, kind="rule.changed"))[0]["batch"])
    assert [grant.state for grant in await grants(made)] == ["held"]


@pytest.mark.parametrize("by", ["itself", "a person", "undoing the change", "undoing the pause"])
async def test_the_grace_time_begins_again_when_a_paused_rule_goes_on(
    browser: Browser, made: dict[str, Any], by: str
) -> None:
    path, carol = f"/api/verification-rules/{made['id']}", await somebody(made, "Carol", made["roleId"])
    await browser.client.patch(path, json={"removal": {"mode": "grace", "hours": 72}})
    await browser.client.patch(path, json={"state": "paused"})
    async with transaction() as db:
        (await a_grant(db, carol, await db.get_one(Rule, made["id"]))).no_since = now() - timedelta(days=20)
    match by:
        case "itself":
            async with transaction() as db:
                (await db.get_one(Rule, made["id"])).pause_cause = "role_above"
                await db.flush()
                assert await pausing.roles_judged(db, made["serverId"], resumed=[made["roleId"]]) == 1
        case "a person":
            assert (await browser.client.patch(path, json={"state": "active"})).status_code == 200
        case "undoing the change":
            await undo(browser, made, (await log(browser, made, kind="rule.changed"))[0]["batch"])
        case _:
            await browser.client.patch(path, json={"state": "active"})
            batch = await paused_by_itself(made)
            async with transaction() as db:
                await db.execute(update(Grant).values(no_since=now() - timedelta(days=20)))
            await undo(browser, made, batch)
    (grant,) = await grants(made)
    assert grant.no_since is not None
    assert now() - grant.no_since < timedelta(minutes=5)


@pytest.mark.parametrize("by", ["a person", "all together", "undoing the change"])
async def test_the_grace_time_begins_again_when_a_rule_leaves_the_shadow(
    browser: Browser, made: dict[str, Any], by: str
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    await browser.client.patch(path, json={"removal": {"mode": "grace", "hours": 72}})
    await browser.client.patch(path, json={"state": "shadow"})
    await waits_for_long(made)
    match by:
        case "a person":
            assert (await browser.client.patch(path, json={"state": "active"})).status_code == 200
        case "all together":
            order = {"serverId": made["serverId"], "ruleIds": [made["id"]]}
            assert (await browser.client.post("/api/verification-rules/activate", json=order)).status_code == 200
        case _:
            await undo(browser, made, (await log(browser, made, kind="rule.changed"))[0]["batch"])
    await begins_now(made)


@pytest.mark.parametrize("state", ["paused", "shadow"])
async def test_the_grace_time_begins_again_when_a_rule_that_did_not_decide_is_deleted(
    browser: Browser, made: dict[str, Any], state: str
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    await browser.client.patch(path, json={"removal": {"mode": "grace", "hours": 72}})
    await browser.client.patch(path, json={"state": state})
    await waits_for_long(made)
    assert (await browser.client.delete(path)).status_code == 200
    await begins_now(made)


async def test_the_grace_time_begins_again_when_a_deleted_rule_comes_back(
    browser: Browser, made: dict[str, Any]
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    await browser.client.patch(path, json={"removal": {"mode": "grace", "hours": 72}})
    await waits_for_long(made, days=2)
    await browser.client.delete(path)
    await undo(browser, made, (await log(browser, made, kind="rule.deleted"))[0]["batch"])
    await begins_now(made)


async def test_the_grace_time_begins_again_when_another_role_lets_a_paused_rule_go_on(
    browser: Browser, made: dict[str, Any], world: dict[str, Any]
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    await browser.client.patch(path, json={"removal": {"mode": "grace", "hours": 72}})
    await waits_for_long(made)
    async with transaction() as db:
        await pausing.pause_role(db, made["serverId"], made["roleId"], "No.", "dangerous")
    other = next(one["id"] for one in builders(world)["roles"] if one["name"] == "Collector")
    order = {"oldRole": made["roleId"], "newRole": other, "apply": True}
    replaced = await browser.client.post(f"/api/servers/{made['serverId']}/migrations/role", json=order)
    assert replaced.status_code == 200, replaced.text
    assert (await browser.client.get(path)).json()["state"] == "active"
    await begins_now(made)


async def waits_for_long(made: dict[str, Any], days: int = 20) -> None:
    """Give a member the rule's role, and let the rule say no since so many days."""
    carol = await somebody(made, "Carol", made["roleId"])
    async with transaction() as db:
        (await a_grant(db, carol, await db.get_one(Rule, made["id"]))).no_since = now() - timedelta(days=days)


async def begins_now(made: dict[str, Any]) -> None:
    (grant,) = await grants(made)
    assert grant.no_since is not None
    assert now() - grant.no_since < timedelta(minutes=5)


async def paused_by_itself(made: dict[str, Any]) -> UUID:
    """Let the rule pause because of its role; return the batch of that line of the log."""
    async with transaction() as db:
        await pausing.pause_role(db, made["serverId"], made["roleId"], "No.", "dangerous")
        newest = select(Event.batch).where(Event.kind == "rule.paused").order_by(col(Event.id).desc()).limit(1)
        batch = (await db.exec(newest)).one()
    assert batch is not None
    return batch


async def test_a_rule_that_the_product_paused_resumes(browser: Browser, made: dict[str, Any]) -> None:
    batch = await paused_by_itself(made)
    assert (await undo(browser, made, batch))["text"].startswith("“Builders” goes on deciding.")
    assert (await browser.client.get(f"/api/verification-rules/{made['id']}")).json()["state"] == "active"


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("by", ["itself", "a person"])
async def test_undoing_a_pause_resumes_no_rule_that_was_paused_again(
    browser: Browser, made: dict[str, Any], by: str, resumed: bool
) -> None:
    path, first = f"/api/verification-rules/{made['id']}", await paused_by_itself(made)
    if resumed or by == "itself":
        await browser.client.patch(path, json={"state": "active"})
    again = None
    if by == "itself":
        again = await paused_by_itself(made)
    else:
        await browser.client.patch(path, json={"state": "paused"})
    said = (await undo(browser, made, first, 409))["message"]
    assert said == "These rules have been resumed, deleted or paused again since."
    assert (await browser.client.get(path)).json()["state"] == "paused"
    if again is not None:
        await undo(browser, made, again)


async def test_a_change_is_undone_although_the_product_paused_and_resumed_the_rule_since(
    browser: Browser, made: dict[str, Any]
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    for state in ("shadow", "active"):
        await browser.client.patch(path, json={"state": state})
    await paused_by_itself(made)
    async with transaction() as db:
        assert await pausing.roles_judged(db, made["serverId"], resumed=[made["roleId"]]) == 1
    newest, *_ = await log(browser, made, kind="rule.changed")
    await undo(browser, made, newest["batch"])
    assert (await browser.client.get(path)).json()["state"] == "shadow"


async def test_a_rule_leaves_the_shadow_by_the_field_that_put_it_there(browser: Browser, made: dict[str, Any]) -> None:
    path = f"/api/verification-rules/{made['id']}"
    for changes, state, shadow in (
        ({"shadow": True}, "shadow", True),
        ({"ruleName": "Other"}, "shadow", True),
        ({"shadow": False}, "active", False),
        ({"state": "paused"}, "paused", False),
        ({"shadow": False}, "paused", False),
        ({"shadow": True}, "shadow", True),
        ({"shadow": False, "state": "paused"}, "paused", False),
    ):
        answer = (await browser.client.patch(path, json=changes)).json()
        assert (answer["state"], answer["shadow"]) == (state, shadow), changes


@pytest.mark.parametrize("by", ["itself", "a person"])
async def test_undoing_an_admins_pause_resumes_no_rule_that_was_paused_again(
    browser: Browser, made: dict[str, Any], by: str
) -> None:
    path = f"/api/verification-rules/{made['id']}"
    for state in ("paused", "active"):
        await browser.client.patch(path, json={"state": state})
    if by == "itself":
        await paused_by_itself(made)
    else:
        await browser.client.patch(path, json={"state": "paused"})
    *newer, first = await log(browser, made, kind="rule.changed")
    refused = await undo(browser, made, first["batch"], 409)
    assert refused["message"].startswith("The rule was changed again since.")
    assert (await browser.client.get(path)).json()["state"] == "paused"
    if by == "a person":
        for line in (*newer, first):
            await undo(browser, made, line["batch"])
        assert (await browser.client.get(path)).json()["state"] == "active"


async def test_a_batch_of_removals_gives_the_role_back_to_those_who_are_still_there(
    browser: Browser, made: dict[str, Any]
) -> None:
    batch, role = uuid4(), made["roleId"]
    carol, dave, gone = [await somebody(made, name) for name in ("Carol", "Dave", "Gone")]
    again, going = await somebody(made, "Again", role), await somebody(made, "Going", role)
    async with transaction() as db:
        await db.merge(Member(**{**gone.model_dump(), "left_at": now()}))
        grant = await a_grant(db, going, await db.get_one(Rule, made["id"]), state="taking")
        grant.batch, grant.intended_at, grant.next_at = batch, now(), now() + timedelta(hours=1)
    await written(
        made,
        *(audit.line("role.taken", subject=one.discord_id, role_id=role, batch=batch)
          for one in (carol, dave, gone, again)),
    )  # fmt: skip
    said = await undo(browser, made, batch)
    assert said["members"] == 3
    assert said["text"].startswith("3 members get Holder back and keep it")
    found = {grant.discord_id: grant for grant in await grants(made)}
    assert found.keys() == {carol.discord_id, dave.discord_id, going.discord_id}
    for grant in found.values():
        assert (grant.state, grant.attempts) == ("giving", 1)
        assert grant.gift_since is not None
    (line, *_) = await log(browser, made, kind="batch")
    assert line["text"] == "Ada undid a removal of Holder: 3 members get it back."
    assert not any(one["undoable"] for one in await log(browser, made, kind="role.taken"))


async def test_what_somebody_else_took_is_given_again(browser: Browser, made: dict[str, Any]) -> None:
    batch = uuid4()
    carol = await somebody(made, "Carol")
    async with transaction() as db:
        await a_grant(db, carol, await db.get_one(Rule, made["id"]), state="lost")
    await written(made, audit.line("role.lost", subject=carol.discord_id, role_id=made["roleId"], batch=batch))
    assert (await undo(browser, made, batch))["members"] == 1
    (grant,) = await grants(made)
    assert (grant.state, grant.gift_since) == ("giving", None)


async def test_nothing_is_given_that_may_not_be_granted_or_that_nobody_misses(
    browser: Browser, made: dict[str, Any], world: dict[str, Any]
) -> None:
    founder = next(role["id"] for role in builders(world)["roles"] if role["name"] == "Founder")
    carol = await somebody(made, "Carol", made["roleId"])
    for role, message in [
        (founder, "Founder is above the bot's own role."),
        ("1", "This role does not exist in the server any more."),
        (made["roleId"], "Nobody is left to give Holder back to"),
    ]:
        batch = uuid4()
        await written(made, audit.line("role.taken", subject=carol.discord_id, role_id=role, batch=batch))
        assert (await undo(browser, made, batch, 409))["message"].startswith(message)
    created = (await log(browser, made, kind="rule.created"))[0]["batch"]
    assert (await undo(browser, made, created, 409))["message"] == "This cannot be undone."
    assert await grants(made) == []


async def test_nobody_else_reads_or_undoes(
    browser: Browser, new_browser: Callable[[], Browser], made: dict[str, Any]
) -> None:
    await browser.client.patch(f"/api/verification-rules/{made['id']}", json={"state": "paused"})
    batch = (await log(browser, made, kind="rule.changed"))[0]["batch"]
    path = f"/api/servers/{made['serverId']}"
    mallory = new_browser()
    await mallory.sign_in("mallory")
    for call in ("events", "events.csv", f"events/{batch}/undo", "breaker"):
        assert (await mallory.client.get(f"{path}/{call}")).status_code == 404
    assert (await mallory.client.post(f"{path}/events/{batch}/undo")).status_code == 404
    for unknown in (uuid4(), "x", "%00"):
        assert (await browser.client.post(f"{path}/events/{unknown}/undo")).status_code in {404, 400}
    other = await with_other_server(browser, made)
    assert (await browser.client.post(f"/api/servers/{other}/events/{batch}/undo")).status_code == 404
    assert (await browser.client.get(f"/api/verification-rules/{made['id']}")).json()["state"] == "paused"
    async with transaction() as db:
        await db.exec(delete(Event).where(col(Event.server_id) == other))


async def with_other_server(browser: Browser, made: dict[str, Any]) -> int:
    """Store another server that the same person runs."""
    mine = await browser.client.get("/api/discord/servers")
    another = next(guild for guild in mine.json() if guild["name"] != "Base Builders")
    payload = {"discordServerId": another["id"], "serverName": "Other", "serverIcon": "", "description": ""}
    return (await browser.client.post("/api/servers", json=payload)).json()["id"]
