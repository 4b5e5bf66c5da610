"""A rule's answer about an address: yes, no or unknown with the evidence; trying it stores nothing."""

import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import text

from models import transaction
from services.engine.previews import try_address
from settings import settings
from tests.app.api.browsers import Browser
from tests.jobs.town import STRANGER, Town, a_town

TRY = "/api/verification-rules/try"
NOBODY = "0x" + "0b" * 20


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; carol holds a token, and only dave, who holds none, has proved a wallet."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.buys("carol")
        await made.prove("dave")
        yield made


def payload(town: Town, address: str, **fields: Any) -> dict[str, Any]:
    return {
        "contractAddress": town.contract, "blockchain": "base", "verificationType": "basic", "minTokens": 1,
        "serverId": town.server_id, "address": address,
    } | fields  # fmt: skip


async def tried(browser: Browser, body: dict[str, Any]) -> dict[str, Any]:
    answer = await browser.client.post(TRY, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def sizes() -> dict[str, int]:
    """Return how many rows each table has, leaving out sessions and the limits and states of nodes."""
    async with transaction() as db:
        names = await db.execute(
            text("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        )
        return {
            name: int((await db.execute(text(f'SELECT count(*) FROM "{name}"'))).scalar_one())
            for (name,) in names.all()
            if name not in {"session", "node_limit", "provider_state"}
        }


async def test_an_address_is_told_yes_or_no_with_the_evidence_and_nothing_is_stored(
    browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    before = await sizes()
    yes = await tried(browser, payload(town, town.people["carol"]["wallets"]["evm"]))
    (found,) = yes["requirements"]
    wallet = town.wallet("carol")
    assert (yes["outcome"], yes["address"], yes["name"]) == ("yes", wallet, None)
    assert (found["needed"], found["held"], found["outcome"], found["chain"]) == (1, 1, "yes", "base")
    assert found["wallet"] == f"{wallet[:6]}...{wallet[-4:]}"
    assert found["block"] > 0
    assert found["source"]
    assert town.name in found["text"]
    no = await tried(browser, payload(town, NOBODY))
    assert (no["outcome"], no["requirements"][0]["held"], no["requirements"][0]["wallet"]) == ("no", 0, None)
    assert await sizes() == before


async def test_a_no_needs_both_nodes_and_what_one_of_them_denies_is_unknown(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    carol, nobody = payload(town, town.wallet("carol")), payload(town, NOBODY)
    await town.break_("zero", "rpc:base")
    assert {(await tried(browser, carol))["outcome"] for _ in range(4)} <= {"yes", "unknown"}
    await town.heal()
    await town.break_("down", "rpc2:base")
    assert (await tried(browser, carol))["outcome"] == "yes"
    lone = await tried(browser, nobody)
    assert (lone["outcome"], lone["requirements"][0]["reason"]) == ("unknown", try_address.NO_SECOND_NODE)


@pytest.mark.parametrize("kind", ["down", "500", "429", "empty", "malformed"])
async def test_no_fault_of_the_nodes_makes_a_no(browser: Browser, town: Town, kind: str) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    await town.break_(kind, "rpc:base", "rpc2:base")
    for address in (town.wallet("carol"), NOBODY):
        found = await tried(browser, payload(town, address))
        assert (found["outcome"], bool(found["requirements"][0]["reason"])) == ("unknown", True)


async def test_composed_rules_and_other_types_are_answered_as_for_a_member(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    leaf = {"type": "basic", "chain": "base", "contract": town.contract}
    one = {"type": "token_id", "chain": "base", "contract": town.contract, "tokenIds": ["1"]}
    on_solana = {"type": "any_nft", "chain": "solana"}
    for expression, outcomes in (
        ({"all": [leaf, one]}, ("yes", "no")),
        ({"any": [{**leaf, "minTokens": 2}, one]}, ("yes", "no")),
        ({"not": one}, ("no", "yes")),
        ({"atLeast": {"n": 2, "of": [leaf, one, on_solana]}}, ("yes", "no")),
        (on_solana, ("no", "no")),
    ):
        body = {"serverId": town.server_id, "expression": expression}
        found = [await tried(browser, {**body, "address": who}) for who in (town.wallet("carol"), NOBODY)]
        assert tuple(one["outcome"] for one in found) == outcomes, expression
    (reading,) = found[0]["requirements"]
    assert reading["reason"] == try_address.OF_ANOTHER_KIND


async def test_delegated_vaults_count_where_the_rule_counts_them_even_if_others_may_claim_them(
    browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    vault, hot = (f"0x{uuid.uuid4().hex}{'0' * 8}" for _ in range(2))
    await town.call("chains/base/mint", contract=town.contract, token_id="900", to=vault)
    for delegate in (town.wallet("dave"), hot):
        await town.call("chains/base/delegate", vault=vault, to=delegate)
    assert (await tried(browser, payload(town, hot)))["outcome"] == "no"
    found = await tried(browser, payload(town, hot, delegated=True))
    assert found["outcome"] == "yes"
    assert "through delegation from" in found["requirements"][0]["wallet"]
    await town.call("chains/base/mint", contract=town.contract, token_id="901", to=town.wallet("dave"))
    await town.call("chains/base/delegate", vault=town.wallet("dave"), to=hot)
    body = payload(town, hot, delegated=True, minTokens=2)
    assert (await tried(browser, body))["outcome"] == "yes", "a member's proof of the vault must not show"


async def test_a_stored_rule_and_changes_to_it_can_be_tried(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    new = payload(town, "") | {"ruleName": "Town", "roleId": await town.role("Holder")}
    rule_id = (await browser.client.post("/api/verification-rules", json=new)).json()["id"]
    body = {"id": rule_id, "address": town.wallet("carol")}
    assert (await tried(browser, body))["outcome"] == "yes"
    assert (await tried(browser, {**body, "minTokens": 2}))["outcome"] == "no"
    assert (await tried(browser, {**body, "address": STRANGER}))["outcome"] == "no"


async def test_names_are_looked_up_and_what_is_no_address_is_said(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    found = await tried(browser, payload(town, "carol.eth"))
    assert (found["name"], found["address"].startswith("0x")) == ("carol.eth", True)
    for address, sentence in (
        ("", "not a wallet address"),
        ("0x12", "has 42 characters"),
        ("nobody-has-this.eth", "stands for no wallet"),
    ):
        refused = await browser.client.post(TRY, json=payload(town, address))
        assert (refused.status_code, sentence in refused.json()["message"]) == (400, True), refused.text
    for fields, sentence in (
        ({"contractAddress": ""}, "Contract address is required"),
        ({"minTokens": 0}, "Minimum tokens must be at least 1"),
    ):
        refused = await browser.client.post(TRY, json=payload(town, NOBODY) | fields)
        assert (refused.status_code, sentence in refused.json()["message"]) == (400, True), refused.text


async def test_what_is_no_collection_is_unknown_with_the_reason(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    found = await tried(browser, payload(town, town.wallet("carol"), contractAddress=NOBODY))
    assert found["outcome"] == "unknown"
    assert found["requirements"][0]["reason"].startswith("There is no contract at")


async def test_only_those_who_run_the_server_may_try_and_only_so_often(
    browser: Browser, new_browser: Callable[[], Browser], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await browser.client.post(TRY, json=payload(town, NOBODY))).status_code == 401
    other = new_browser()
    await other.sign_in(town.people["dave"]["username"])
    for body in (payload(town, NOBODY), {"id": 1, "address": NOBODY}, {"address": NOBODY}):
        assert (await other.client.post(TRY, json=body)).status_code in {400, 404}
    assert (await other.client.post(TRY, json=payload(town, NOBODY))).status_code == 404
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setenv("LIMIT_PREVIEWS", "2")
    settings.cache_clear()
    answers = [await browser.client.post(TRY, json=payload(town, "")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [400, 400, 429]
    preview = await browser.client.post("/api/verification-rules/preview", json=payload(town, ""))
    assert preview.status_code == 429, "both have one limit"


async def test_what_takes_too_long_is_unknown(browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    monkeypatch.setattr(try_address, "LONGEST_SECONDS", -1.0)
    found = await tried(browser, payload(town, town.wallet("carol")))
    assert (found["outcome"], found["requirements"][0]["reason"]) == ("unknown", try_address.NO_TIME)


async def test_an_address_is_tried_for_coins_in_whole_ones(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    slug = uuid.uuid4().hex
    made = await town.call("chains/base/deploy", standard="ERC20", name="Trial Dollar", slug=slug, decimals=6)
    await town.call("chains/base/mint", contract=made["contract"], amount="99500000", to=town.wallet("carol"))
    before = await sizes()
    sent = payload(town, town.wallet("carol"), verificationType="token", contractAddress=made["contract"])
    yes, no = [await tried(browser, sent | {"min": least}) for least in ("99.5", "99.500001")]
    assert (yes["outcome"], no["outcome"]) == ("yes", "no")
    (found,) = yes["requirements"]
    assert (found["needed"], found["held"], found["text"]) == ("99.5", "99.5", "At least 99.5 of Trial Dollar on Base")
    refused = await browser.client.post(TRY, json=sent | {"min": "0.0000001"})
    assert (refused.status_code, "6 decimals" in refused.json()["message"]) == (400, True)
    collection = await tried(browser, sent | {"contractAddress": town.contract, "min": "1"})
    assert (collection["outcome"], "decimals" in collection["requirements"][0]["reason"]) == ("unknown", True)
    assert await sizes() == before
