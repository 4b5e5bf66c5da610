"""A rule that is created with an `Idempotency-Key` is created once, however often the request is repeated."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import func
from sqlmodel import col, select

from models import Rule, transaction
from services.core.actors import Actor
from services.rules.rules import Request
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rule_limits import RULES, limited
from tests.app.api.test_main_path import builders, rule, with_server, world

__all__ = ["world"]

KEY = "3f1c54e0-sheet-17"


@pytest.fixture
async def payload(browser: Browser, world: dict[str, Any]) -> dict[str, Any]:
    """A rule of the only server that ada runs; `browser` is signed in as ada."""
    await browser.sign_in("ada")
    return rule(world, await with_server(browser, builders(world)))


async def created(browser: Browser, payload: dict[str, Any], key: str | None = KEY) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await browser.client.post(RULES, json=payload, headers=headers)


async def stored() -> int:
    async with transaction() as db:
        return (await db.exec(select(func.count(col(Rule.id))).where(col(Rule.deleted_at).is_(None)))).one()


async def test_a_repeated_request_answers_with_the_rule_that_it_made(browser: Browser, payload: dict[str, Any]) -> None:
    first, second = await created(browser, payload), await created(browser, payload)
    assert (first.status_code, second.status_code, await stored()) == (201, 201, 1)
    assert second.json() == first.json()
    renamed = await browser.client.patch(f"{RULES}/{first.json()['id']}", json={"ruleName": "Renamed"})
    assert (await created(browser, payload)).json() == renamed.json()


async def test_it_is_answered_also_where_the_same_rule_could_not_be_made_any_more(
    browser: Browser, payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, rules=1)
    first = await created(browser, payload)
    assert (await created(browser, payload)).json() == first.json()
    assert (await created(browser, payload, "another")).status_code == 409


async def test_requests_at_the_same_moment_make_one_rule(browser: Browser, payload: dict[str, Any]) -> None:
    answers = await asyncio.gather(*(created(browser, payload) for _ in range(4)))
    assert [one.status_code for one in answers] == [201] * 4
    assert (len({one.json()["id"] for one in answers}), await stored()) == (1, 1)


async def test_another_key_and_none_make_another_rule(browser: Browser, payload: dict[str, Any]) -> None:
    made = {(await created(browser, payload, key)).json()["id"] for key in (KEY, "another", None, None)}
    assert (len(made), await stored()) == (4, 4)


async def test_a_key_of_another_rule_is_refused(browser: Browser, payload: dict[str, Any]) -> None:
    await created(browser, payload)
    answer = await created(browser, payload | {"ruleName": "Something else"})
    assert (answer.status_code, await stored()) == (422, 1)
    assert answer.json() == {
        "message": "This Idempotency-Key was sent with another rule. Send a new key with a new rule."
    }


def test_a_key_is_another_one_for_each_person() -> None:
    keys = {Request(KEY, b"").key_of(Actor(person, str(person), "ada")) for person in (1, 12)}
    keys.add(Request(f"2 {KEY}", b"").key_of(Actor(1, "1", "ada")))
    assert len(keys) == 3


async def test_a_refused_request_uses_no_key_up(browser: Browser, payload: dict[str, Any]) -> None:
    assert (await created(browser, payload | {"ruleName": ""})).status_code == 400
    assert (await created(browser, payload)).status_code == 201


async def test_a_deleted_rule_is_not_made_again_by_a_late_repetition(browser: Browser, payload: dict[str, Any]) -> None:
    made = (await created(browser, payload)).json()["id"]
    async with transaction() as db:
        (row,) = (await db.exec(select(Rule).where(Rule.id == made))).all()
        row.deleted_at = row.created_at  # a role that it gave is not settled yet
    assert (await created(browser, payload)).status_code == 404


async def test_who_does_not_run_the_server_learns_nothing_by_a_key(
    browser: Browser, payload: dict[str, Any], new_browser: Any
) -> None:
    await created(browser, payload)
    stranger = new_browser()
    await stranger.sign_in("erin")
    assert (await created(stranger, payload)).status_code == 404


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
async def test_a_key_has_1_to_255_characters_of_ascii(browser: Browser, payload: dict[str, Any], key: str) -> None:
    answer = await created(browser, payload, key)
    assert (answer.status_code, await stored()) == (400, 0)
    assert "Idempotency-Key" in answer.json()["message"]
