"""Importing rules of other bots and of exports: a preview, then shadow rules; only for people who run the server."""

import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from sqlmodel import col, select

from app.api.requests.body_limit import LARGEST_LONG_BODY
from models import Event, Rule, transaction
from services.rules import documents
from services.rules.documents import json_documents
from services.rules.types import address_list_text
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.town import STRANGER, Town, a_town
from tests.services.rules.documents import rivals

SOLANA = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"
SCHEMA = json.loads(Path(documents.__file__).with_name("rules.schema.json").read_text())


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns with carol, who holds a token of the collection."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.buys("carol")
        await made.prove("carol")
        yield made


@pytest.fixture
async def contracts(town: Town) -> tuple[str, str, str]:
    """The town's collection, an ERC-1155 collection, and a coin with six decimals."""
    slug = uuid.uuid4().hex
    many = await town.call("chains/base/deploy", standard="ERC1155", name="Dogs", slug=f"d{slug}")
    coin = await town.call("chains/base/deploy", standard="ERC20", name="Dollar", slug=f"c{slug}", decimals=6)
    return town.contract, many["contract"], coin["contract"]


async def sent(browser: Browser, server_id: int, source: str, document: object, **fields: Any) -> httpx.Response:
    body = {"source": source, "document": document, **fields}
    return await browser.client.post(f"/api/servers/{server_id}/import", json=body)


async def brought(
    browser: Browser, server_id: int, source: str, document: object, **fields: Any
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the rules by name, and the skipped ones with their reasons."""
    answer = await sent(browser, server_id, source, document, **fields)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["applied"] is bool(fields.get("apply"))
    return {one["name"]: one for one in found["rules"]}, {one["what"]: one["why"] for one in found["skipped"]}


async def stored(server_id: int) -> list[Rule]:
    async with transaction() as db:
        return list((await db.exec(select(Rule).where(Rule.server_id == server_id).order_by(col(Rule.id)))).all())


async def lines(kind: str) -> list[dict[str, Any]]:
    async with transaction() as db:
        return [
            row.data for row in (await db.exec(select(Event).where(Event.kind == kind).order_by(col(Event.id)))).all()
        ]


async def test_twenty_rules_of_collabland_are_reported_and_then_made_in_shadow(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    start = await town.mark()
    document = {"rules": rivals.collabland(*contracts)}
    seen, skipped = await brought(browser, town.server_id, "collabland", document)
    assert (len(seen), len(skipped)) == (10, 10)
    # One of the twenty is the same as another.
    assert "It says the same as Rule 1 “Holder”." in skipped["Rule 3 “No minimum is one”"]
    assert await stored(town.server_id) == []
    holder = await town.role("Holder")
    assert {one["roleId"] for one in seen.values()} == {holder}
    assert seen["A hundred coins"]["summary"] == "At least 100 of Dollar on Base"
    assert seen["Holder"]["notes"] == ["Its role was found by the name “Holder”."]
    assert seen["Holder"]["lines"] == [{"depth": 0, "text": seen["Holder"]["summary"]}]

    made, again = await brought(browser, town.server_id, "collabland", document, apply=True)
    assert again == skipped
    rules = await stored(town.server_id)
    assert [rule.id for rule in rules] == [one["id"] for one in made.values()]
    assert {rule.state for rule in rules} == {"shadow"}
    assert {rule.name: rule.expression for rule in rules} == {
        name: one["payload"]["expression"] for name, one in seen.items()
    }
    assert await lines("rule.imported") == [{"source": "collabland", "rules": 10, "skipped": 10}]
    assert len(await lines("rule.created")) == 10
    assert await town.writes(start) == []
    nothing, all_known = await brought(browser, town.server_id, "collabland", document)
    assert nothing == {}
    assert all_known["Rule 1 “Holder”"] == "The server has this rule already: “Holder”."


async def test_what_a_look_returns_can_be_posted_as_a_rule_and_previewed(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    seen, _ = await brought(browser, town.server_id, "collabland", rivals.collabland(*contracts)[:1])
    payload = seen["Holder"]["payload"]
    preview = await browser.client.post("/api/verification-rules/preview", json=payload)
    assert (preview.status_code, preview.json()["gain"]) == (200, 1), preview.text
    made = await browser.client.post("/api/verification-rules", json=payload)
    assert (made.status_code, made.json()["state"]) == (201, "shadow"), made.text


async def test_rules_in_shadow_are_previewed_and_activated_together(
    browser: Browser, new_browser: Callable[[], Browser], town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    nft = {"type": "ERC721", "chainId": 8453, "contractAddress": town.contract}
    document = [nft | {"roleName": "Holder"}, nft | {"roleName": "Whale", "name": "Whales"}]
    made, _ = await brought(browser, town.server_id, "collabland", document, apply=True)
    ids = [one["id"] for one in made.values()]
    preview = {"serverId": town.server_id, "activate": ids}
    answer = await browser.client.post("/api/verification-rules/preview", json=preview)
    assert (answer.status_code, answer.json()["gain"]) == (200, 2), answer.text
    assert {one["roleName"] for one in answer.json()["members"]} == {"Holder", "Whale"}
    assert {rule.state for rule in await stored(town.server_id)} == {"shadow"}

    call, order = "/api/verification-rules/activate", {"serverId": town.server_id, "ruleIds": [*ids, 2**31 - 1]}
    other = new_browser()
    await other.sign_in(town.people["dave"]["username"])
    assert (await other.client.post(call, json=order)).status_code == 404
    assert (await other.client.post("/api/verification-rules/preview", json=preview)).status_code == 404
    assert (await new_browser().client.post(call, json=order)).status_code == 401
    assert {rule.state for rule in await stored(town.server_id)} == {"shadow"}
    assert (await browser.client.post(call, json=order)).json() == {"activated": 2}
    assert {rule.state for rule in await stored(town.server_id)} == {"active"}
    assert (await browser.client.post(call, json=order)).json() == {"activated": 0}


async def test_a_role_that_is_gone_activates_nothing(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    nft = {"type": "ERC721", "chainId": 8453, "contractAddress": town.contract}
    document = [nft | {"roleName": "Holder"}, nft | {"roleName": "Whale", "name": "Whales"}]
    made, _ = await brought(browser, town.server_id, "collabland", document, apply=True)
    await town.call("guilds", guild=town.name, action="delete_role", role="Whale")
    order = {"serverId": town.server_id, "ruleIds": [one["id"] for one in made.values()]}
    answer = await browser.client.post("/api/verification-rules/activate", json=order)
    assert answer.status_code == 400
    assert "does not exist in the server" in answer.json()["message"]
    assert {rule.state for rule in await stored(town.server_id)} == {"shadow"}


async def test_a_guilds_roles_are_found_by_id_and_else_by_name(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    whale = await town.role("Whale")
    document = rivals.guild(*contracts, role_id=whale)
    seen, skipped = await brought(browser, town.server_id, "guild", document)
    assert (len(seen), len(skipped)) == (12, 8)
    assert {one["roleName"] for one in seen.values()} == {"Whale"}
    assert seen["Friends"]["payload"]["expression"]["count"] == 2
    made, _ = await brought(browser, town.server_id, "guild", document, apply=True, only=[1, 12])
    assert list(made) == ["Holder", "Friends"]
    assert [rule.name for rule in await stored(town.server_id)] == ["Holder", "Friends"]

    seen, skipped = await brought(browser, town.server_id, "guild", rivals.guild(*contracts, role_id="404"))
    assert [(one["roleName"], one["notes"]) for one in seen.values()] == [
        ("Holder", ["Its role was found by the name “Holder”."])
    ]
    assert "no role with “Gold” or the ID 404" in skipped["Role 11 “Gold”"]


async def test_an_export_is_imported_on_another_server_as_it_was(
    browser: Browser, town: Town, contracts: tuple[str, str, str], sandbox_url: str
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    cats, _, coin = contracts
    common = {"serverId": town.server_id, "roleId": await town.role("Holder")}
    leaf = {"chain": "base", "contract": cats}
    for fields in (
        {"ruleName": "Coins", "expression": {"type": "token", "chain": "base", "contract": coin, "min": "0.25"}},
        {"ruleName": "Families 👨‍👩‍👧 " + "x" * 380, "expression": {"type": "any_wallet"}},
        {"ruleName": "Friends", "verificationType": "address_list", "addresses": [STRANGER, SOLANA], "shadow": True},
        {"ruleName": "Mixed", "removal": {"mode": "grace", "hours": 5}, "takesOver": True, "delegated": True,
         "roleColor": "#123456", "expression": {"atLeast": {"n": 1, "of": [
             {"type": "basic", **leaf, "minTokens": 2, "maxTokens": 5}, {"not": {"type": "any_wallet"}},
             {"type": "address_list", "addresses": [STRANGER]}]}}},
    ):  # fmt: skip
        made = await browser.client.post("/api/verification-rules", json=common | fields)
        assert made.status_code == 201, made.text
    export = await browser.client.get(f"/api/servers/{town.server_id}/rules.json")
    assert export.status_code == 200, export.text
    assert export.headers["content-disposition"] == f'attachment; filename="rules-{town.server_id}.json"'
    document = export.json()
    Draft202012Validator(SCHEMA).validate(document)
    assert (document["format"], document["version"]) == ("holdfast-rules", 1)
    assert await lines("rule.exported") == [{"rules": 4}]

    async with a_town(sandbox_url, "eve") as other:
        await browser.sign_in(other.people["eve"]["username"])
        # The text of the file as a browser sends it.
        seen, skipped = await brought(browser, other.server_id, "holdfast", export.text)
        assert (list(seen), skipped) == ([one["ruleName"] for one in document["rules"]], {})
        assert {one["roleId"] for one in seen.values()} == {await other.role("Holder")}
        made, _ = await brought(browser, other.server_id, "holdfast", document, apply=True)
        assert all(one["id"] for one in made.values())
        back = (await browser.client.get(f"/api/servers/{other.server_id}/rules.json")).json()
        told = [one | {"roleId": "", "state": ""} for one in document["rules"]]
        assert [one | {"roleId": "", "state": ""} for one in back["rules"]] == told
        assert {one["state"] for one in back["rules"]} == {"shadow"}
        assert back["addressLists"] == document["addressLists"]


async def test_the_whole_export_of_a_server_is_a_document_too(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    rule_id = await town.rule("Holder")
    whole = (await browser.client.get(f"/api/servers/{town.server_id}/export")).json()
    _, skipped = await brought(browser, town.server_id, "holdfast", whole)
    assert list(skipped.values()) == ["The server has this rule already: “A rule”."]
    assert (await browser.client.delete(f"/api/verification-rules/{rule_id}")).status_code == 200
    seen, _ = await brought(browser, town.server_id, "holdfast", whole)
    assert [(one["name"], one["notes"]) for one in seen.values()] == [("A rule", [])]


async def test_roles_that_no_rule_may_give_and_names_that_are_two_roles_are_skipped(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    await town.call("guilds", action="add_role", guild=town.name, name="Twin")
    await town.call("guilds", action="add_role", guild=town.name, name="Twin")
    await town.see()
    cats = {"type": "ERC721", "chainId": 8453, "contractAddress": contracts[0]}
    nowhere = {**cats, "contractAddress": STRANGER, "roleName": "Holder"}
    rules = [cats | {"roleName": name} for name in ("Twin", "Admin", "@everyone", "")]
    seen, skipped = await brought(browser, town.server_id, "collabland", [*rules, nowhere])
    assert seen == {}
    assert "2 roles called “Twin”" in skipped["Rule 1"]
    assert "carries the permission" in skipped["Rule 2"]
    assert "no role with “@everyone”" in skipped["Rule 3"]
    assert skipped["Rule 4"] == "It names no role."
    assert "There is no contract at" in skipped["Rule 5"]


async def test_a_chain_that_does_not_answer_is_said_and_makes_no_rule(
    browser: Browser, town: Town, contracts: tuple[str, str, str]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    await town.break_("down", "rpc:base", "rpc2:base")
    document = rivals.collabland(*contracts)[:2]
    seen, skipped = await brought(browser, town.server_id, "collabland", document)
    assert (len(seen), skipped) == (2, {})
    assert all("could not be read just now" in one["notes"][-1] for one in seen.values())
    answer = await sent(browser, town.server_id, "collabland", document, apply=True)
    assert answer.status_code == 503, answer.text
    assert await stored(town.server_id) == []


async def test_more_than_the_server_has_room_for_is_said_and_all_or_nothing(
    browser: Browser, town: Town, contracts: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setenv("RULES_PER_SERVER", "3")
    settings.cache_clear()
    document = rivals.collabland(*contracts)
    look = (await sent(browser, town.server_id, "collabland", document)).json()
    assert "room for 3 more of its 3 rules" in look["warning"]
    answer = await sent(browser, town.server_id, "collabland", document, apply=True)
    assert answer.status_code == 409, answer.text
    assert await stored(town.server_id) == []
    made, _ = await brought(browser, town.server_id, "collabland", document, apply=True, only=[1, 2, 4])
    assert len(made) == len(await stored(town.server_id)) == 3


@pytest.mark.parametrize("apply", [False, True])
async def test_nobody_else_imports_or_exports_and_nothing_of_theirs_is_parsed(
    browser: Browser, new_browser: Callable[[], Browser], town: Town, apply: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_documents, "read", lambda *_, **__: pytest.fail("parsed"))
    for who in ("dave", "carol"):
        other = new_browser()
        await other.sign_in(town.people[who]["username"])
        assert (await sent(other, town.server_id, "guild", {}, apply=apply)).status_code == 404
        assert (await other.client.get(f"/api/servers/{town.server_id}/rules.json")).status_code == 404
    assert (await sent(new_browser(), town.server_id, "guild", {}, apply=apply)).status_code == 401
    assert (await new_browser().client.get(f"/api/servers/{town.server_id}/rules.json")).status_code == 401
    assert await lines("rule.exported") == []


async def test_hostile_documents_are_refused_and_cost_nothing(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    path = f"/api/servers/{town.server_id}/import"
    start = await town.mark()
    large = "x" * json_documents.LARGEST_DOCUMENT
    for body, status, message in (
        (b"{", 400, "not JSON"),
        (b"5", 422, "source"),
        (b'{"source": "guild"}', 422, "document"),
        (b'{"source": "guild", "source": "holdfast", "document": {}}', 400, "twice"),
        (b'{"source": "ebay", "document": {}}', 400, "The source is one of collabland, guild, holdfast"),
        (b'{"source": "guild", "document": {}, "apply": "perhaps"}', 422, "apply"),
        (b'{"source": "guild", "document": "[[["}', 400, "not JSON"),
        (b'{"source": "guild", "document": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", 400, "levels deep"),
        (json.dumps({"source": "guild", "document": large + "x"}).encode(), 413, "larger than 1024 KiB"),
        (json.dumps({"source": "guild", "document": [large, large[:5_000]]}).encode(), 413, "larger than 1024 KiB"),
        (b"x" * (LARGEST_LONG_BODY + 1), 413, "larger than"),
        (json.dumps({"source": "collabland", "document": [{}] * 10_000}).encode(), 400, "at most 200"),
        (json.dumps({"source": "collabland", "document": {"a": {}, "\ud800": 1}}).encode(), 400, "cannot be stored"),
    ):
        answer = await browser.client.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == status, (body[:60], answer.text)
        assert message in answer.json()["message"], body[:60]
    assert await stored(town.server_id) == []
    assert await town.requests(start, "rpc:base") == []


async def test_imports_count_as_previews(browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMIT_PREVIEWS", "2")
    settings.cache_clear()
    await browser.sign_in(town.people["ada"]["username"])
    answers = [(await sent(browser, town.server_id, "collabland", [])).status_code for _ in range(3)]
    assert answers == [200, 200, 429]


def naming(roles: list[str], addresses: list[Any], leaves: int = 40) -> dict[str, Any]:
    """Return rules that name one list in each condition and differ in how many conditions must hold."""
    listed = {"list": "ab" * 16, "count": len(addresses), "addresses": addresses}
    leaf = {"type": "address_list", "list": listed["list"], "count": listed["count"]}
    rules = [
        {"ruleName": f"{role} {n}", "roleName": role, "expression": {"atLeast": {"n": n, "of": [leaf] * leaves}}}
        for role in roles
        for n in range(2, 27)
    ]
    return {"format": "holdfast-rules", "version": 1, "rules": rules, "addressLists": [listed]}


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The lists that were read, noted as they are read."""
    asked = list[object]()
    whole = address_list_text.of_items

    async def counted(items: object) -> address_list_text.ReadList:
        asked.append(items)
        return await whole(items)

    monkeypatch.setattr(address_list_text, "of_items", counted)
    return asked


async def test_a_list_that_each_condition_names_is_read_once(
    browser: Browser, town: Town, readings: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDRESSES_PER_SERVER", "10000000")
    monkeypatch.setenv("CONDITIONS_PER_SERVER", "10000")
    settings.cache_clear()
    await browser.sign_in(town.people["ada"]["username"])
    document = naming(["Holder", "Whale"], [f"0x{at:040x}" for at in range(1, 2_001)])
    seen, skipped = await brought(browser, town.server_id, "holdfast", document)
    assert (len(seen), skipped, len(readings)) == (50, {}, 1)
    made, _ = await brought(browser, town.server_id, "holdfast", document, apply=True)
    assert (len(made), len(readings)) == (50, 3)
    digests = {leaf["list"] for rule in await stored(town.server_id) for leaf in rule.expression["atLeast"]["of"]}
    assert len(digests) == 1
    page = await browser.client.get(f"/api/servers/{town.server_id}/address-lists/{digests.pop()}")
    assert page.text.count("0x") == 2_000


async def test_a_list_with_mistakes_is_read_once_and_skips_only_the_rules_that_name_it(
    browser: Browser, town: Town, readings: list[object]
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    document = naming(["Holder"], [STRANGER, "0x12"], leaves=26)
    good = {"ruleName": "Good", "roleName": "Holder", "expression": {"type": "address_list", "addresses": [STRANGER]}}
    document["rules"].append(good)
    seen, skipped = await brought(browser, town.server_id, "holdfast", document)
    assert (list(seen), len(skipped), len(readings)) == (["Good"], 25, 2)
    assert {why[:7] for why in skipped.values()} == {"Line 2:"}


async def test_more_addresses_than_a_server_can_list_are_refused_before_they_are_read(
    browser: Browser, town: Town, readings: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDRESSES_PER_SERVER", "1999")
    settings.cache_clear()
    await browser.sign_in(town.people["ada"]["username"])
    document = naming(["Holder"], [f"0x{at:040x}" for at in range(1, 2_001)], leaves=26)
    answer = await sent(browser, town.server_id, "holdfast", document)
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        "The lists of this document have 2,000 addresses, and a server can list at most 1,999.",
    )
    assert readings == []
