"""How many rules, conditions and collections one server may have, however they are created."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import delete, text
from sqlmodel import select

from models import Due, Event, Rule, Server, transaction
from services.rules import limits as rule_limits
from services.rules.expression import parse
from services.runtime import rate_limits
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, rule, with_server, world
from tests.support.builders import a_member, address

__all__ = ["world"]

RULES = "/api/verification-rules"


def limited(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, value in limits.items():
        monkeypatch.setenv(f"{name.upper()}_PER_SERVER", str(value))
    settings.cache_clear()


@pytest.fixture
async def server_id(browser: Browser, world: dict[str, Any]) -> int:
    """The id of the only server that ada runs; `browser` is signed in as ada."""
    await browser.sign_in("ada")
    return await with_server(browser, builders(world))


@pytest.fixture
def flat(world: dict[str, Any], server_id: int) -> dict[str, Any]:
    """The payload of a rule with one condition in that server."""
    return rule(world, server_id)


def contracts(world: dict[str, Any]) -> list[str]:
    return [one["contract"] for one in world["chains"]["base"]["collections"]]


def conditions(world: dict[str, Any], *amounts: int) -> dict[str, Any]:
    """Return that many conditions on one collection."""
    contract = contracts(world)[0]
    return {"any": [{"type": "basic", "chain": "base", "contract": contract, "minTokens": one} for one in amounts]}


def long_leaf(world: dict[str, Any], at: int, ids: int) -> dict[str, Any]:
    """Return a condition with that many ranges of long token ids."""
    ranges = [f"{10**76 + 3 * one}-{10**76 + 3 * one + 1}" for one in range(at * ids, (at + 1) * ids)]
    return {"type": "token_id", "chain": "base", "contract": contracts(world)[0], "tokenIds": ranges}


async def refused(browser: Browser, payload: dict[str, Any], path: str = RULES, method: str = "POST") -> str:
    answer = await browser.client.request(method, path, json=payload)
    assert answer.status_code == 409, answer.text
    assert set(answer.json()) == {"message"}
    return answer.json()["message"]


async def undone(browser: Browser, server_id: int, kind: str) -> tuple[int, str]:
    lines = (await browser.client.get(f"/api/servers/{server_id}/events")).json()
    batch = next(line["batch"] for line in lines if line["kind"] == kind)
    answer = await browser.client.post(f"/api/servers/{server_id}/events/{batch}/undo")
    return answer.status_code, answer.text


async def test_who_creates_while_another_does_waits_for_their_rule_and_counts_it(
    browser: Browser, server_id: int, flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, rules=2)
    assert (await browser.client.post(RULES, json=flat)).status_code == 201
    async with transaction() as db:
        first = (await db.exec(select(Rule))).one()
        await rule_limits.lock(db, server_id)
        await rule_limits.check(db, server_id, parse(first.expression))
        db.add(Rule(**first.model_dump(exclude={"id"})))
        await db.flush()
        creating = asyncio.create_task(browser.client.post(RULES, json=flat))
        while not creating.done() and not await waiting():
            await asyncio.sleep(0.01)
    answer = await creating
    assert (answer.status_code, answer.json()["message"][:26]) == (409, "This server has 2 rules, a")


async def waiting() -> bool:
    """Return whether a session waits for another one's lock."""
    async with transaction() as db:
        return bool((await db.execute(text("SELECT 1 FROM pg_locks WHERE NOT granted"))).first())


async def test_a_rule_beyond_the_limit_is_refused_however_it_comes_about(
    browser: Browser, server_id: int, flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, rules=2)
    made = [(await browser.client.post(RULES, json=flat)).json()["id"] for _ in range(2)]
    said = await refused(browser, flat)
    assert said == (
        "This server has 2 rules, and a server can have at most 2. "
        "Delete a rule that you no longer need, or put several conditions into one rule."
    )
    assert await refused(browser, flat, f"{RULES}/preview") == said
    assert (await browser.client.delete(f"{RULES}/{made[0]}")).status_code == 200
    assert (await browser.client.post(RULES, json=flat)).status_code == 201
    status, said = await undone(browser, server_id, "rule.deleted")
    assert (status, "at most 2" in said) == (409, True), said


async def test_conditions_count_over_all_rules_of_a_server(
    browser: Browser, world: dict[str, Any], server_id: int, flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, conditions=5)
    first = (await browser.client.post(RULES, json=flat | {"expression": conditions(world, 1, 2, 3)})).json()["id"]
    second = (await browser.client.post(RULES, json=flat | {"expression": conditions(world, 4, 5)})).json()["id"]
    said = await refused(browser, flat)
    assert said == (
        "The rules of this server would have 6 conditions in all, and a server can have at most 5. "
        "Remove conditions, or delete a rule that you no longer need."
    )
    larger = {"expression": conditions(world, 4, 5, 6)}
    assert await refused(browser, larger, f"{RULES}/{second}", "PATCH") == said
    assert await refused(browser, {"id": second, **larger}, f"{RULES}/preview") == said
    fewer, others = {"expression": conditions(world, 4)}, {"expression": conditions(world, 7, 8)}
    for change in (fewer, others, {"ruleName": "Others"}):
        assert (await browser.client.patch(f"{RULES}/{second}", json=change)).status_code == 200
    shorter = {"expression": conditions(world, 1)}
    assert (await browser.client.patch(f"{RULES}/{first}", json=shorter)).status_code == 200
    limited(monkeypatch, conditions=3)
    status, said = await undone(browser, server_id, "rule.changed")
    assert (status, "at most 3" in said) == (409, True), said


async def test_what_is_over_a_limit_stays_and_can_be_changed_but_not_enlarged(
    browser: Browser, world: dict[str, Any], flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await browser.client.post(RULES, json=flat | {"expression": conditions(world, 1, 2, 3)})).json()["id"]
    assert (await browser.client.post(RULES, json=flat)).status_code == 201
    limited(monkeypatch, rules=1, conditions=2, contracts=1)
    assert "This server has 2 rules" in await refused(browser, flat)
    for change in ({"expression": conditions(world, 1, 4)}, {"state": "paused"}, {"state": "active"}):
        assert (await browser.client.patch(f"{RULES}/{made}", json=change)).status_code == 200
    larger = {"expression": conditions(world, 1, 2, 3, 4)}
    assert "would have 5 conditions" in await refused(browser, larger, f"{RULES}/{made}", "PATCH")


async def test_collections_count_once_however_many_conditions_name_them(
    browser: Browser, world: dict[str, Any], flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, contracts=2)
    named = contracts(world)
    anything = {"verificationType": "any_nft", "contractAddress": ""}
    for fields in ({}, {"minTokens": 2}, {"contractAddress": named[1]}, anything):
        answer = await browser.client.post(RULES, json=flat | fields)
        assert answer.status_code == 201, answer.text
    said = await refused(browser, flat | {"contractAddress": named[2]})
    assert said.startswith("The rules of this server would name 3 different collections, and a server can name at most")


async def test_token_ids_count_over_all_rules_and_a_range_counts_once(
    browser: Browser, flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, token_ids=5)
    listed = flat | {"verificationType": "token_id", "tokenIds": ["1", "2", "10-900"]}
    assert (await browser.client.post(RULES, json=listed)).status_code == 201
    said = await refused(browser, listed)
    assert said.startswith("The rules of this server would list 6 token IDs and ranges, and a server can list at most")
    assert (await browser.client.post(RULES, json=listed | {"tokenIds": ["3", "4-5"]})).status_code == 201
    assert (await browser.client.post(RULES, json=flat)).status_code == 201


async def test_conditions_that_take_more_than_a_rule_may_are_refused_however_they_come_about(
    browser: Browser, world: dict[str, Any], flat: dict[str, Any]
) -> None:
    large = {"expression": {"any": [long_leaf(world, at, 50) for at in range(10)]}}
    made = (await browser.client.post(RULES, json=flat)).json()["id"]
    for method, path, payload in (
        ("POST", RULES, flat | large),
        ("POST", f"{RULES}/preview", flat | large),
        ("PATCH", f"{RULES}/{made}", large),
    ):
        answer = await browser.client.request(method, path, json=payload)
        assert answer.status_code == 400, (method, path)
        assert answer.json()["message"].startswith("The conditions of a rule can take 64 KiB at most.")
    small = {"expression": {"any": [long_leaf(world, at, 20) for at in range(10)]}}
    assert (await browser.client.post(RULES, json=flat | small)).status_code == 201


async def test_large_rules_fill_the_log_only_so_fast_and_small_ones_change_meanwhile(
    browser: Browser, world: dict[str, Any], flat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "LOG_KIB", 64)
    large = {"expression": {"any": [long_leaf(world, at, 20) for at in range(10)]}}
    small = (await browser.client.post(RULES, json=flat)).json()["id"]
    made = await browser.client.post(RULES, json=flat | large)
    assert made.status_code == 201, "one change may be as large as all of a minute"
    for state in ("paused", "active", "paused"):
        answer = await browser.client.patch(f"{RULES}/{made.json()['id']}", json={"state": "paused"})
        assert answer.status_code == 429
        assert "too often" in answer.json()["message"]
        assert (await browser.client.patch(f"{RULES}/{small}", json={"state": state})).status_code == 200
    assert (await browser.client.get(f"{RULES}/{made.json()['id']}")).json()["state"] == "active"


@pytest.mark.parametrize("change", [{"state": "paused"}, {"ruleName": "Mine", "minTokens": 2}])
async def test_a_change_that_changes_nothing_is_not_logged_and_queues_nobody(
    browser: Browser, server_id: int, flat: dict[str, Any], change: dict[str, Any]
) -> None:
    async with transaction() as db:
        await a_member(db, await db.get_one(Server, server_id), wallet=address())
    made = (await browser.client.post(RULES, json=flat)).json()["id"]
    views = [(await browser.client.patch(f"{RULES}/{made}", json=change)).json()]
    async with transaction() as db:
        assert (await db.exec(select(Due))).all() != []
        await db.execute(delete(Due))
    views += [(await browser.client.patch(f"{RULES}/{made}", json=change)).json() for _ in range(9)]
    assert all(one == views[0] for one in views)
    async with transaction() as db:
        assert len((await db.exec(select(Event).where(Event.kind == "rule.changed"))).all()) == 1
        assert (await db.exec(select(Due))).all() == []
