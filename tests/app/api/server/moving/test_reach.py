"""How many addresses a rule reaches: counted in the background, kept for an hour, shown to those who run the server."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from jobs.census_taker import CensusTaker
from models import transaction
from services.collections.census import reach
from services.engine.previews import preview_log
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town

REACH = "/api/verification-rules/reach"


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; carol and dave hold a token each, and only carol has proved her wallet."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.buys("carol")
        await made.buys("dave")
        await made.prove("carol")
        yield made


def payload(town: Town, **fields: Any) -> dict[str, Any]:
    return {
        "contractAddress": town.contract, "blockchain": "base", "verificationType": "basic", "minTokens": 1,
        "serverId": town.server_id,
    } | fields  # fmt: skip


async def begun(browser: Browser, body: dict[str, Any]) -> int:
    answer = await browser.client.post(REACH, json=body)
    assert answer.status_code == 202, answer.text
    assert answer.json().keys() == {"id"}
    return answer.json()["id"]


async def read(browser: Browser, reach_id: int) -> dict[str, Any]:
    answer = await browser.client.get(f"{REACH}/{reach_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def worked() -> None:
    taker = CensusTaker("test")
    while await taker.once():
        pass


async def test_a_rule_is_counted_before_it_is_saved_and_kept_for_an_hour(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    reach_id = await begun(browser, payload(town))
    assert await read(browser, reach_id) == {
        "id": reach_id, "state": "counting", "progress": 0.0, "holders": None, "verifiedHere": None,
        "chains": [{"chain": "base", "holders": None, "block": None}], "reason": None,
    }  # fmt: skip
    assert await begun(browser, payload(town, ruleName="Another name")) == reach_id, "one count a text at a time"
    await worked()
    found = await read(browser, reach_id)
    block = found["chains"][0].pop("block")
    assert found == {
        "id": reach_id, "state": "done", "progress": 1.0, "holders": 2, "verifiedHere": 1,
        "chains": [{"chain": "base", "holders": 2}], "reason": None,
    }  # fmt: skip
    assert block > 0
    assert await begun(browser, payload(town)) == reach_id
    async with transaction() as db:
        await db.execute(
            text("UPDATE reach SET created_at = created_at - :kept, ended_at = ended_at - :kept"),
            {"kept": reach.KEPT + timedelta(minutes=1)},
        )
        await reach.forget(db)
    assert (await browser.client.get(f"{REACH}/{reach_id}")).status_code == 404
    again = await begun(browser, payload(town))
    await worked()
    assert ((await read(browser, again))["holders"], again > reach_id) == (2, True)


async def test_a_stored_rule_is_counted_by_its_id(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    rule_id = await town.rule("Holder")
    reach_id = await begun(browser, {"id": rule_id})
    await worked()
    assert (await read(browser, reach_id))["holders"] == 2


async def test_what_cannot_be_counted_says_why_and_a_wrong_payload_is_refused(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    found = await read(browser, await begun(browser, payload(town, verificationType="any_nft", contractAddress="")))
    assert (found["state"], found["holders"]) == ("failed", None)
    assert "any NFT cannot be counted" in found["reason"]
    refused = await browser.client.post(REACH, json=payload(town, minTokens=0))
    assert refused.status_code == 400
    for unknown in ("999999", "0", "99999999999"):
        assert (await browser.client.get(f"{REACH}/{unknown}")).status_code in {404, 422}


async def test_a_server_has_so_many_rules_counted_in_an_hour(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setattr(reach, "MOST_AN_HOUR", 2)
    first = await begun(browser, payload(town, minTokens=2))
    await begun(browser, payload(town, minTokens=3))
    refused = await browser.client.post(REACH, json=payload(town, minTokens=4))
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 3_000) == (429, True)
    assert await begun(browser, payload(town, minTokens=2)) == first, "what is kept costs nothing"


async def test_counts_of_single_tokens_are_limited_as_previews_are(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREVIEWS_PER_DAY", "1")
    settings.cache_clear()
    await browser.sign_in(town.people["ada"]["username"])
    await begun(browser, payload(town, verificationType="token_id", tokenIds=["1"]))
    refused = await browser.client.post(REACH, json=payload(town, verificationType="token_id", tokenIds=["2"]))
    assert refused.status_code == 429
    log = await browser.client.get(f"/api/servers/{town.server_id}/events")
    assert [one["kind"] for one in log.json()].count(preview_log.KIND) == 1


async def test_without_a_session_nothing_is_counted(browser: Browser, town: Town) -> None:
    assert (await browser.client.post(REACH, json=payload(town))).status_code == 401
    assert (await browser.client.get(f"{REACH}/1")).status_code == 401
