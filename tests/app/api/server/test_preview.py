"""What a rule would do to members before it is saved, changed or deleted; a preview writes nothing."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlmodel import col, select

from gateways import gateways
from models import Due, Event, Grant, Rule, User, transaction
from services.core.actors import Actor
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.proposals import NewTiers
from services.rules.rules import RuleDraft
from services.rules.types import registry
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town

PREVIEW = "/api/verification-rules/preview"


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town in which carol and erin hold a token, dave and frank none; erin and frank got Holder by hand."""
    async with a_town(sandbox_url, "ada", "carol", "dave", "erin", "frank") as made:
        for who in ("erin", "frank"):
            person = made.people[who]["id"]
            await made.call("members", guild=made.name, user=person, action="add_role", role="Holder")
        await made.see()
        for who in ("carol", "erin"):
            await made.buys(who)
        for who in ("carol", "dave", "erin", "frank"):
            await made.prove(who)
        yield made


async def payload(town: Town, role: str = "Holder", **fields: Any) -> dict[str, Any]:
    return {
        "ruleName": "Town", "contractAddress": town.contract, "blockchain": "base", "verificationType": "basic",
        "minTokens": 1, "roleId": await town.role(role), "serverId": town.server_id,
    } | fields  # fmt: skip


async def asked(browser: Browser, town: Town, body: dict[str, Any]) -> tuple[dict[str, int], dict[str, str]]:
    """Ask for a preview, and return the counts and each person's outcome."""
    answer = await browser.client.post(PREVIEW, json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    names = {person["id"]: name for name, person in town.people.items()}
    assert all(member["name"] == town.people[names[member["discordId"]]]["username"] for member in found["members"])
    outcomes = {names[member["discordId"]]: member["outcome"] for member in found["members"]}
    assert len(outcomes) == len(found["members"])
    counts = {outcome: found[outcome] for outcome in preview.OUTCOMES}
    assert counts == {outcome: list(outcomes.values()).count(outcome) for outcome in counts}
    return counts, outcomes


async def granted(town: Town, rule_id: int, *people: str) -> None:
    """Give these people the role because of the rule, in Discord and in the ledger."""
    async with transaction() as db:
        rule = await db.get_one(Rule, rule_id)
        for who in people:
            db.add(
                Grant(
                    server_id=town.server_id, discord_id=town.people[who]["id"], role_id=rule.role_id,
                    rule_ids=[rule_id], state="held",
                )
            )  # fmt: skip
            name = rule.role_name
            await town.call("members", guild=town.name, user=town.people[who]["id"], action="add_role", role=name)
    await town.see()


async def rows() -> list[list[Any]]:
    """Return everything that a sweep or a change would write."""
    async with transaction() as db:
        found = [(await db.exec(select(table))).all() for table in (Rule, Grant, Event, Due)]
        return [
            [row.model_dump() for row in table if not (isinstance(row, Event) and row.kind == "rule.previewed")]
            for table in found
        ]


async def previews() -> list[Event]:
    """Return the log's lines about previews, oldest first."""
    async with transaction() as db:
        return list((await db.exec(select(Event).where(Event.kind == "rule.previewed").order_by(col(Event.id)))).all())


async def two_previews_a_day(browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Sign in as an admin with two previews on tokens a day, and return a rule that counts, without its tokens."""
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setenv("PREVIEWS_PER_DAY", "2")
    settings.cache_clear()
    body = await payload(town, verificationType="token_id")
    del body["minTokens"]
    return body


async def test_few_people_who_could_meet_a_rule_on_tokens_are_counted_and_not_named(
    browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    body = await payload(town, verificationType="token_id", tokenIds=["0-100000"], role="Whale")
    body.pop("minTokens")
    answer = await browser.client.post(PREVIEW, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["gain"] == 2
    assert answer.json()["members"] == []


async def test_each_preview_is_in_the_log_once_a_day(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    body = await payload(town)
    for _ in range(2):
        assert (await browser.client.post(PREVIEW, json=body)).status_code == 200
    assert (await browser.client.post(PREVIEW, json=body | {"minTokens": 2})).status_code == 200
    lines = await previews()
    assert [line.actor for line in lines] == [town.people["ada"]["id"]] * 2
    assert [line.data["rule"]["expression"]["minTokens"] for line in lines] == [1, 2]


async def test_so_many_different_previews_on_tokens_are_to_be_had_in_a_day(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = await two_previews_a_day(browser, town, monkeypatch)
    asked_for = [body | {"tokenIds": [str(number)]} for number in (1, 2, 1, 3)]
    answers = [(await browser.client.post(PREVIEW, json=one)).status_code for one in asked_for]
    assert answers == [200, 200, 200, 429]
    assert (await browser.client.post(PREVIEW, json=await payload(town))).status_code == 200, "others are not counted"


async def test_previews_asked_for_at_once_are_counted_one_after_the_other(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = await two_previews_a_day(browser, town, monkeypatch)
    asked_for = (browser.client.post(PREVIEW, json=body | {"tokenIds": [str(number)]}) for number in range(6))
    answers = [answer.status_code for answer in await asyncio.gather(*asked_for)]
    assert sorted(answers) == [200, 200, 429, 429, 429, 429]
    assert len(await previews()) == 2


async def test_a_new_rule_tells_who_gains_and_who_keeps_and_writes_nothing(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    before, start = await rows(), await town.mark()
    _, outcomes = await asked(browser, town, await payload(town))
    assert outcomes == {"carol": "gain", "erin": "keep", "frank": "keep"}
    _, outcomes = await asked(browser, town, await payload(town, role="Whale", shadow=True))
    assert outcomes == {"carol": "gain", "erin": "gain"}
    _, outcomes = await asked(browser, town, await payload(town, takesOver=True))
    assert outcomes == {"carol": "gain", "erin": "keep", "frank": "lose"}
    assert await rows() == before
    assert await town.writes(start) == []


async def test_what_a_vault_delegated_counts_where_the_proposed_rule_says_so(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    vault = "0x" + uuid.uuid4().hex + "dead7a17"
    await town.call("chains/base/mint", contract=town.contract, token_id="900", to=vault)
    await town.call("chains/base/delegate", vault=vault, to=town.wallet("dave"))
    _, outcomes = await asked(browser, town, await payload(town, role="Whale"))
    assert outcomes == {"carol": "gain", "erin": "gain"}
    _, outcomes = await asked(browser, town, await payload(town, role="Whale", delegated=True))
    assert outcomes == {"carol": "gain", "dave": "gain", "erin": "gain"}


async def test_what_cannot_be_read_is_unknown(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    await town.break_("down", "rpc:base", "rpc2:base")
    counts, outcomes = await asked(browser, town, await payload(town, takesOver=True))
    assert outcomes == dict.fromkeys(("carol", "dave", "erin", "frank"), "unknown")
    assert counts == {"gain": 0, "keep": 0, "lose": 0, "unknown": 4}


async def test_a_change_a_pause_and_an_end_tell_who_loses(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    rule_id = (await browser.client.post("/api/verification-rules", json=await payload(town, "Whale"))).json()["id"]
    await granted(town, rule_id, "carol", "erin")
    before = await rows()
    for body, outcomes in (
        ({"minTokens": 2}, {"carol": "lose", "erin": "lose"}),
        ({"minTokens": 2, "removal": {"mode": "grace", "hours": 24}}, {"carol": "lose", "erin": "lose"}),
        ({"ruleName": "Other"}, {"carol": "keep", "erin": "keep"}),
        ({"state": "paused"}, {"carol": "keep", "erin": "keep"}),
        ({"state": "shadow"}, {"carol": "keep", "erin": "keep"}),
        ({"delete": True}, {"carol": "lose", "erin": "lose"}),
    ):
        assert (await asked(browser, town, {"id": rule_id, **body}))[1] == outcomes, body
    assert await rows() == before

    await browser.client.post("/api/verification-rules", json=await payload(town, "Whale"))
    assert (await asked(browser, town, {"id": rule_id, "delete": True}))[1] == {"carol": "keep", "erin": "keep"}


async def test_another_role_is_lost_and_gained_at_once(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    rule_id = (await browser.client.post("/api/verification-rules", json=await payload(town, "Whale"))).json()["id"]
    await granted(town, rule_id, "carol")
    collector, whale = await town.role("Collector"), await town.role("Whale")
    answer = (await browser.client.post(PREVIEW, json={"id": rule_id, "roleId": collector})).json()
    found = {(member["name"], member["roleId"]): member["outcome"] for member in answer["members"]}
    carol, erin = (town.people[who]["username"] for who in ("carol", "erin"))
    assert found == {(carol, whale): "lose", (carol, collector): "gain", (erin, collector): "gain"}


async def test_a_shadow_rule_shows_what_it_would_do(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    made = await browser.client.post("/api/verification-rules", json=await payload(town, "Whale", shadow=True))
    rule_id = made.json()["id"]
    for body in ({"id": rule_id}, {"id": rule_id, "state": "active"}):
        assert (await asked(browser, town, body))[1] == {"carol": "gain", "erin": "gain"}
    assert (await asked(browser, town, {"id": rule_id, "state": "paused"}))[1] == {}


async def test_the_same_messages_as_when_saving_and_nothing_for_others(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    rule_id = (await browser.client.post("/api/verification-rules", json=await payload(town, "Whale"))).json()["id"]
    for fields, message in (
        ({"ruleName": ""}, "Rule name is required"),
        ({"roleId": ""}, "Role is required"),
        ({"minTokens": 0}, "Minimum tokens must be at least 1"),
        ({"roleId": await town.role("Admin")}, "carries the permission"),
    ):
        for body in (await payload(town) | fields, {"id": rule_id, **fields}):
            refused = await browser.client.post(PREVIEW, json=body)
            assert (refused.status_code, message in refused.json()["message"]) == (400, True), body
    other = new_browser()
    await other.sign_in(town.people["dave"]["username"])
    for body in (
        await payload(town),
        {"id": rule_id},
        {"id": rule_id, "delete": True},
        {"id": 2**31},
        {"delete": True},
    ):
        assert (await other.client.post(PREVIEW, json=body)).status_code in {400, 404}, body
    assert (await other.client.post(PREVIEW, json=await payload(town))).status_code == 404
    assert (await new_browser().client.post(PREVIEW, json=await payload(town))).status_code == 401


async def test_in_a_large_server_it_says_how_many_were_read(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    few = {"basic": replace(registry.RULE_TYPES["basic"], previewed=2)}
    monkeypatch.setattr(registry, "RULE_TYPES", {**registry.RULE_TYPES, **few})
    answer = (await browser.client.post(PREVIEW, json=await payload(town, takesOver=True))).json()
    assert (answer["looked"], answer["concerned"]) == (2, 4)
    assert {member["outcome"] for member in answer["members"]} == {"keep", "lose"}, "who has the role comes first"
    monkeypatch.setattr(preview, "LONGEST_SECONDS", -1.0)
    answer = (await browser.client.post(PREVIEW, json=await payload(town))).json()
    assert (answer["looked"], answer["concerned"], answer["members"]) == (0, 4, [])


async def test_every_tier_that_takes_over_is_previewed(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == town.people["ada"]["id"]))).one()
    ada = Actor(user.id or 0, user.discord_id, user.username)
    first = RuleDraft(
        "Few", town.contract, "base", "basic", await town.role("Whale"), town.server_id, max_tokens=4, takes_over=True
    )
    more = replace(first, rule_name="Many", min_tokens=5, max_tokens=None, role_id=await town.role("Holder"))
    async with transaction() as db:
        planned = await plan(db, gateways(), ada, NewTiers((first, more)))
    found = await preview.whole(gateways(), planned)
    names = {p["id"]: n for n, p in town.people.items()}
    outcomes = {(names[m.discord_id], m.role_name): m.outcome for m in found.members}
    assert outcomes == {
        ("carol", "Whale"): "gain",
        ("erin", "Whale"): "gain",
        ("erin", "Holder"): "lose",
        ("frank", "Holder"): "lose",
    }
