"""Changes of a rule that name a field without a value, and what large servers and imports leave out."""

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import select

from models import Event, MoveCount, Rule, ServerMove, now, transaction
from services.roles.moves import coverage
from services.rules import pausing
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rivals import owner as owner
from tests.app.api.server.test_rivals import town as town
from tests.jobs.town import Town


async def make(owner: Browser, town: Town, **more: Any) -> int:
    """Create a rule for Holder; return its id."""
    payload = {"serverId": town.server_id, "ruleName": "R", "roleId": await town.role("Holder"), **more}
    made = await owner.client.post("/api/verification-rules", json=payload)
    assert made.status_code == 201, made.text
    return int(made.json()["id"])


async def test_a_field_without_a_value_leaves_the_conditions(owner: Browser, town: Town) -> None:
    leaf = {"type": "basic", "chain": "base", "contract": town.contract.lower(), "minTokens": 1}
    one = await make(owner, town, expression={"any": [leaf, {"type": "any_wallet"}]})
    got = await owner.client.patch(f"/api/verification-rules/{one}", json={"ruleName": "S", "expression": None})
    assert "any" in got.json()["expression"] or "atLeast" in got.json()["expression"]


async def test_a_flat_change_drops_no_condition_of_a_combined_rule(owner: Browser, town: Town) -> None:
    leaf = {"type": "basic", "chain": "base", "contract": town.contract.lower(), "minTokens": 1}
    for tree in ({"all": [leaf, {"type": "any_wallet"}]}, {"not": leaf}):
        one = await make(owner, town, expression=tree)
        path = f"/api/verification-rules/{one}"
        before = (await owner.client.get(path)).json()
        for flat in (
            {"minTokens": 2}, {"maxTokens": 3}, {"verificationType": "any_nft"}, {"tokenIds": ["1"]},
            {"traits": [{"type": "Hat", "value": "Red"}]}, {"blockchain": "polygon"}, {"family": "evm"},
        ):  # fmt: skip
            refused = await owner.client.patch(path, json={"ruleName": "S", **flat})
            assert refused.status_code == 400, flat
            assert "`expression`" in refused.json()["message"]
            preview = await owner.client.post("/api/verification-rules/preview", json={"id": one, **flat})
            assert preview.status_code == 400
        assert (await owner.client.get(path)).json() == before
        # A program that read the rule without its expression sends back what it read.
        same = {name: value for name, value in before.items() if name != "expression"} | {"ruleName": "T"}
        kept = await owner.client.patch(path, json={**same, "contractAddress": f" {town.contract} "})
        assert kept.status_code == 200, kept.text
        assert kept.json() == before | {"ruleName": "T"}
        alone = await owner.client.patch(path, json={"expression": leaf})
        assert alone.json()["expression"] == leaf
        assert (await owner.client.patch(path, json={"minTokens": 2})).json()["expression"] == leaf | {"minTokens": 2}


async def test_a_new_rule_has_the_state_that_it_names(owner: Browser, town: Town) -> None:
    payload = {"serverId": town.server_id, "ruleName": "R", "roleId": await town.role("Holder")}
    payload["expression"] = {"type": "any_wallet"}
    for sent, state in (
        ({"state": "shadow"}, "shadow"),
        ({"state": "shadow", "shadow": False}, "shadow"),
        ({"state": "active"}, "active"),
        ({"state": ""}, "active"),
    ):
        made = await owner.client.post("/api/verification-rules", json=payload | sent)
        assert (made.status_code, made.json()["state"]) == (201, state)
    before = (await owner.client.get(f"/api/verification-rules?serverId={town.server_id}")).json()
    for sent in ("paused", "Shadow", "off"):
        for path in ("", "/preview"):
            refused = await owner.client.post(f"/api/verification-rules{path}", json=payload | {"state": sent})
            assert (refused.status_code, refused.json()) == (
                400, {"message": "A rule's state is one of active, shadow."},
            )  # fmt: skip
    assert (await owner.client.get(f"/api/verification-rules?serverId={town.server_id}")).json() == before


async def test_a_grace_time_without_hours_is_refused_where_there_are_none(owner: Browser, town: Town) -> None:
    payload = {"serverId": town.server_id, "ruleName": "R", "roleId": await town.role("Holder")}
    payload["expression"] = {"type": "any_wallet"}
    message = "The grace time is a whole number of hours, from 1 to 2160."
    for removal in ({"mode": "grace"}, {"mode": "grace", "hours": None}, {"mode": "grace", "hour": 24}):
        refused = await owner.client.post("/api/verification-rules", json=payload | {"removal": removal})
        assert (refused.status_code, refused.json()["message"]) == (400, message)
    one = await make(owner, town, expression={"type": "any_wallet"})
    for removal in ({"mode": "grace"}, {"mode": "grace", "hours": None}):
        refused = await owner.client.patch(f"/api/verification-rules/{one}", json={"removal": removal})
        assert (refused.status_code, refused.json()["message"]) == (400, message)
    for removal in ({"mode": "now"}, {"mode": "grace", "hours": 0}, {"mode": "now", "hours": None}, {}):
        kept = await owner.client.patch(f"/api/verification-rules/{one}", json={"removal": removal})
        assert (kept.status_code, kept.json()["removal"]) == (200, {"mode": "now", "hours": 0})


async def test_hours_without_a_mode_are_no_removal_at_once(owner: Browser, town: Town) -> None:
    payload = {"serverId": town.server_id, "ruleName": "R", "roleId": await town.role("Holder")}
    payload |= {"expression": {"type": "any_wallet"}, "removal": {"hours": 24}}
    message = "Removal is either at once (now) or after a grace time (grace)."
    for path in ("", "/preview"):
        refused = await owner.client.post(f"/api/verification-rules{path}", json=payload)
        assert (refused.status_code, refused.json().get("message")) == (400, message)
    one = await make(owner, town, expression={"type": "any_wallet"})
    refused = await owner.client.patch(f"/api/verification-rules/{one}", json={"removal": {"hours": 24}})
    assert (refused.status_code, refused.json().get("message")) == (400, message)
    two = await make(owner, town, expression={"type": "any_wallet"}, removal={"mode": "grace", "hours": 48})
    longer = await owner.client.patch(f"/api/verification-rules/{two}", json={"removal": {"hours": 72}})
    assert longer.json()["removal"] == {"mode": "grace", "hours": 72}


async def test_a_grace_time_without_hours_keeps_its_hours(owner: Browser, town: Town) -> None:
    one = await make(owner, town, expression={"type": "any_wallet"}, removal={"mode": "grace", "hours": 48})
    got = await owner.client.patch(f"/api/verification-rules/{one}", json={"removal": {"mode": "grace"}})
    assert got.json()["removal"] == {"mode": "grace", "hours": 48}


async def test_a_rule_with_delegations_is_imported_beside_one_without(owner: Browser, town: Town) -> None:
    leaf = {"type": "basic", "chain": "base", "contract": town.contract.lower(), "minTokens": 1}
    one = await make(owner, town, expression=leaf, delegated=True)
    document = (await owner.client.get(f"/api/servers/{town.server_id}/rules.json")).json()
    await owner.client.delete(f"/api/verification-rules/{one}")
    await make(owner, town, expression=leaf, delegated=False)
    got = await owner.client.post(
        f"/api/servers/{town.server_id}/import", json={"source": "holdfast", "document": document}
    )
    assert len(got.json()["rules"]) == 1


async def test_the_pause_of_a_rule_that_a_newer_version_wrote_is_previewed_and_its_conditions_are_not_tried(
    owner: Browser, town: Town
) -> None:
    one, path = await make(owner, town, expression={"type": "any_wallet"}), "/api/verification-rules"
    async with transaction() as db:
        rule = await db.get_one(Rule, one)
        rule.expression = {"newer": []}
        db.add(rule)
    pause = await owner.client.post(f"{path}/preview", json={"id": one, "state": "paused"})
    assert pause.status_code == 200
    for call in ("try", "reach"):
        refused = await owner.client.post(f"{path}/{call}", json={"id": one, "address": town.contract})
        assert (refused.status_code, refused.json()["message"]) == (400, "A condition needs type, chain and contract.")


async def test_a_large_servers_long_move_shows_the_newest_count_and_its_present_state(
    owner: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    role, at = await town.role("Holder"), now()
    counted = at - timedelta(seconds=1)
    roles = [role, *(str(100 + n) for n in range(49))]
    async with transaction() as db:
        move = ServerMove(server_id=town.server_id, roles=roles, begins_at=at - timedelta(days=30), until=at)
        db.add(move)
        await db.flush()
        for ago in range(30):
            then = counted - timedelta(days=ago)
            for one in roles:
                db.add(
                    MoveCount(
                        move_id=move.id or 0,
                        role_id=one,
                        day=then.date(),
                        earned=1000 - ago,
                        unearned=0,
                        unverified=0,
                        unknown=0,
                        at=then,
                    )
                )
    monkeypatch.setattr(coverage, "LARGE", 0)
    seen = (await owner.client.get(f"/api/servers/{town.server_id}/move")).json()
    assert (seen["roles"][0]["right"], seen["countedAt"][:10]) == (1000, counted.date().isoformat())
    assert seen["state"] == "over", "although it still ran at the time of the count"


async def test_a_deleted_rule_that_was_paused_automatically_does_not_come_back_as_paused_by_an_admin(
    owner: Browser, town: Town
) -> None:
    leaf = {"type": "basic", "chain": "base", "contract": town.contract.lower(), "minTokens": 1}
    one = await make(owner, town, expression=leaf)
    async with transaction() as db:
        await pausing.refused(db, town.server_id, await town.role("Holder"), "no")
    await owner.client.delete(f"/api/verification-rules/{one}")
    async with transaction() as db:
        batch = (await db.exec(select(Event.batch).where(Event.kind == "rule.deleted"))).one()
    got = await owner.client.post(f"/api/servers/{town.server_id}/events/{batch}/undo", json={})
    assert got.status_code == 200, got.text
    async with transaction() as db:
        rule = await db.get(Rule, one)
        assert rule is not None
        assert rule.state == "active" or rule.pause_cause is not None
