"""The contracts that a rule may name: existing collections, on the chain that the rule names."""

import uuid
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlmodel import select

from gateways import gateways
from models import Collection, User, transaction
from services.core.actors import Actor
from services.core.errors import FieldRefused
from services.rules import contract_check, rules
from services.rules.draft import RuleDraft
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, rule, with_server
from tests.app.api.test_main_path import world as world

NOWHERE = "0x" + "7e" * 20


async def fault(kind: str | None) -> None:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        await sandbox.delete("/control/faults")
        for target in ("rpc:base", "rpc2:base") if kind else ():
            await sandbox.post("/control/faults", json={"target": target, "kind": kind, "seconds": 60})


def standing(world: dict[str, Any], standard: str) -> str:
    every = world["chains"]["base"]["collections"]
    return next(one["contract"] for one in every if one["standard"] == standard)


def called(world: dict[str, Any], standard: str) -> str:
    every = world["chains"]["base"]["collections"]
    return next(one["name"] for one in every if one["standard"] == standard)


async def test_a_rule_names_collections_only(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    flat = rule(world, server_id)

    async def refused(**changed: Any) -> str:
        answer = await browser.client.post("/api/verification-rules", json=flat | changed)
        assert answer.status_code == 400, answer.text
        return answer.json()["message"]

    wallet = next(user["wallets"]["evm"] for user in world["users"] if user["username"] == "carol")
    multicall = "0xcA11bde05977b3631167028862bE2a173976CA11"
    for kind, more in (("basic", {}), ("token_id", {"tokenIds": ["7"]})):
        for address in (NOWHERE, wallet):
            said = await refused(verificationType=kind, contractAddress=address, **more)
            assert said.startswith("There is no contract at 0x")
            assert "wallet's address" in said
        said = await refused(verificationType=kind, contractAddress=multicall, **more)
        assert "does not say that it is an NFT collection" in said
    leaf = {"type": "basic", "chain": "base", "contract": NOWHERE}
    fine = {"type": "basic", "chain": "base", "contract": standing(world, "ERC721")}
    assert "There is no contract" in await refused(expression={"any": [fine, leaf]})
    for standard in ("ERC721", "ERC721Enumerable", "ERC1155"):
        made = await browser.client.post(
            "/api/verification-rules", json=flat | {"contractAddress": standing(world, standard)}
        )
        assert made.status_code == 201, made.text
        assert f"of {called(world, standard)} on Base" in made.json()["summary"]
    async with transaction() as db:
        kept = {row.contract: row.standard for row in (await db.exec(select(Collection))).all()}
    assert kept[standing(world, "ERC1155").lower()] == "ERC1155"
    changed = await browser.client.patch(
        f"/api/verification-rules/{made.json()['id']}", json={"contractAddress": NOWHERE}
    )
    assert (changed.status_code, "There is no contract" in changed.json()["message"]) == (400, True)


async def test_a_rule_may_have_a_maximum_and_several_traits(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    flat = rule(world, server_id) | {"contractAddress": standing(world, "ERC721")}

    async def said(status: int, **changed: Any) -> dict[str, Any]:
        answer = await browser.client.post("/api/verification-rules", json=flat | changed)
        assert answer.status_code == status, answer.text
        return answer.json()

    made = await said(201, minTokens=2, maxTokens=4)
    assert (made["minTokens"], made["maxTokens"], made["expression"]["maxTokens"]) == (2, 4, 4)
    assert made["summary"].startswith("2 to 4 tokens of")
    path = f"/api/verification-rules/{made['id']}"
    assert (await browser.client.patch(path, json={"maxTokens": 9})).json()["expression"]["maxTokens"] == 9
    assert (await browser.client.patch(path, json={"minTokens": 3})).json()["maxTokens"] == 9
    assert (await browser.client.patch(path, json={"maxTokens": None})).json()["maxTokens"] is None
    assert (await said(201, minTokens=0, maxTokens=0))["summary"].startswith("No token of")
    for amounts in ({"minTokens": 5, "maxTokens": 4}, {"maxTokens": "7"}, {"maxTokens": 1.5}, {"maxTokens": -1}):
        assert "maximum" in (await said(400, **amounts))["message"]
    assert "any NFT" in (await said(400, verificationType="any_nft", maxTokens=3))["message"]
    traits = [{"type": "Fur", "value": "Gold"}, {"type": "Level", "value": "5..10"}]
    made = await said(201, verificationType="trait", traits=traits)
    assert made["expression"]["traits"] == traits
    assert made["summary"].endswith("with Fur: Gold and Level of 5 to 10")
    path = f"/api/verification-rules/{made['id']}"
    assert (await browser.client.patch(path, json={"minTokens": 2})).json()["expression"]["traits"] == traits
    one = (await browser.client.patch(path, json={"traitType": "Hat", "traitValue": "Crown"})).json()
    assert one["expression"]["trait"] == {"type": "Hat", "value": "Crown"}
    again = [traits[0], traits[0]]
    for wrong in (again, [{"type": "Level", "value": "10..5"}], [{"type": "Fur", "value": ""}], traits * 6):
        assert (await said(422 if len(wrong) > 10 else 400, verificationType="trait", traits=wrong))["message"]


async def test_all_tiers_are_made_or_none(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    async with transaction() as db:
        user = (await db.exec(select(User))).one()
    actor = Actor(user.id or 0, user.discord_id, user.username)
    flat = rule(world, server_id)
    first = RuleDraft(
        rule_name="Holder", contract_address=standing(world, "ERC721"), blockchain="base", verification_type="basic",
        role_id=flat["roleId"], server_id=server_id, max_tokens=4,
    )  # fmt: skip
    wrong = replace(first, min_tokens=5, max_tokens=None, role_id="1")
    with pytest.raises(FieldRefused):
        async with transaction() as db:
            await rules.create_all(db, gateways(), actor, [first, wrong])
    path = f"/api/verification-rules?serverId={server_id}"
    assert (await browser.client.get(path)).json() == []
    async with transaction() as db:
        await rules.create_all(db, gateways(), actor, [first, replace(wrong, role_id=flat["roleId"])])
    made = (await browser.client.get(path)).json()
    assert [(one["minTokens"], one["maxTokens"]) for one in made] == [(1, 4), (5, None)]


async def test_a_collection_from_before_the_standards_is_for_rules_that_count(
    browser: Browser, world: dict[str, Any]
) -> None:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        wanted = {"standard": "Punks", "name": "Attic Punks", "slug": uuid.uuid4().hex}
        punks = (await sandbox.post("/control/chains/base/deploy", json=wanted)).json()["contract"]
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    flat = rule(world, server_id) | {"contractAddress": punks}
    parsed = await browser.client.post("/api/collection/parse", json={"input": punks, "blockchain": "base"})
    assert parsed.json()["name"] == "Attic Punks"
    made = await browser.client.post("/api/verification-rules", json=flat | {"minTokens": 2})
    assert made.status_code == 201, made.text
    assert "At least 2 tokens of Attic Punks on Base" in made.json()["summary"]
    trait = {"verificationType": "trait", "traitType": "Hat", "traitValue": "Crown"}
    for more in (trait, {"verificationType": "token_id", "tokenIds": ["7"]}):
        answer = await browser.client.post("/api/verification-rules", json=flat | more)
        assert (answer.status_code, "older than the standards for NFTs" in answer.json()["message"]) == (400, True)


async def test_a_contract_that_cannot_be_looked_up_is_the_nodes_fault_and_a_known_one_is_not_asked(
    browser: Browser, world: dict[str, Any]
) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    flat = rule(world, server_id) | {"contractAddress": standing(world, "ERC1155")}
    try:
        await fault("down")
        answer = await browser.client.post("/api/verification-rules", json=flat)
        assert answer.status_code == 503
        assert "Base" in answer.json()["message"]
        await fault(None)
        made = await browser.client.post("/api/verification-rules", json=flat)
        await fault("down")
        changed = await browser.client.patch(f"/api/verification-rules/{made.json()['id']}", json={"minTokens": 3})
        assert changed.status_code == 200, changed.text
    finally:
        await fault(None)


COINS = {"verificationType": "token", "minTokens": 1}


async def deployed(**body: Any) -> str:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        given = {"standard": "ERC20", "name": "Some Coin", "slug": f"coin-{uuid4().hex}", **body}
        answer = await sandbox.post("/control/chains/base/deploy", json=given)
        assert answer.status_code == 200, answer.text
        return answer.json()["contract"]


async def test_a_rule_may_count_a_coin_by_the_decimals_that_it_says(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    flat = rule(world, server_id) | COINS

    async def said(status: int, **changed: Any) -> dict[str, Any]:
        answer = await browser.client.post("/api/verification-rules", json=flat | changed)
        assert answer.status_code == status, answer.text
        return answer.json()

    dollar = next(one["contract"] for one in world["chains"]["base"]["collections"] if one.get("decimals") == 6)
    made = await said(201, contractAddress=dollar, min="0100.50", max="250.5")
    assert made["expression"]["decimals"] == 6
    assert (made["expression"]["min"], made["expression"]["max"]) == ("100.5", "250.5")
    assert made["summary"] == "Between 100.5 and 250.5 of Harbour Dollar on Base"
    changed = await browser.client.patch(f"/api/verification-rules/{made['id']}", json={"min": "7", "max": None})
    assert (changed.status_code, changed.json()["summary"]) == (200, "At least 7 of Harbour Dollar on Base")
    assert changed.json()["expression"]["decimals"] == 6

    leaf = {"type": "token", "chain": "base", "contract": "native", "min": "0.5"}
    own = await said(201, expression={"any": [leaf, {**leaf, "contract": dollar}]})
    assert own["summary"] == "Any of: At least 0.5 of ETH on Base; At least 0.5 of Harbour Dollar on Base"
    assert [one["decimals"] for one in own["expression"]["any"]] == [18, 6]
    # The coin's own decimals count, not those that the caller sends.
    lied = await said(201, expression={**leaf, "contract": dollar, "decimals": 18})
    assert lied["expression"]["decimals"] == 6

    refusals = {
        "6 decimals": {"contractAddress": dollar, "min": "0.0000001"},
        "at least how many coins": {"contractAddress": dollar},
        "must not be less": {"contractAddress": dollar, "min": "5", "max": "4"},
        "such as 100": {"contractAddress": dollar, "min": "a lot"},
        "no contract at": {"contractAddress": NOWHERE, "min": "1"},
        "does not say how many decimals": {"contractAddress": standing(world, "ERC721"), "min": "1"},
        "is not a coin": {
            "blockchain": "solana",
            "contractAddress": world["chains"]["solana"]["collections"][0]["contract"],
            "min": "1",
        },
        "at most 36": {"contractAddress": await deployed(decimals="lies"), "min": "1"},
        "a million or more": {"contractAddress": await deployed(decimals=str(2**255)), "min": "1"},
    }
    mute = await deployed(decimals=None)
    for message, sent in {**refusals, "does not say how many": {"contractAddress": mute, "min": "1"}}.items():
        assert message in (await said(400, **sent))["message"]
    for decimals in (0, 18, 30):
        coin = await deployed(decimals=decimals)
        assert (await said(201, contractAddress=coin, min="1"))["expression"]["decimals"] == decimals
        assert (await said(400, contractAddress=coin, min="0." + "0" * decimals + "1"))["message"]
    assert (
        "does not say that it is an NFT"
        in (await said(400, verificationType="basic", contractAddress=dollar))["message"]
    )


async def test_a_rule_that_others_change_meanwhile_never_names_an_unchecked_contract(
    browser: Browser, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    dollar = next(one["contract"] for one in world["chains"]["base"]["collections"] if one.get("decimals") == 6)
    coin = rule(world, server_id) | COINS | {"contractAddress": dollar, "min": "1"}
    made = await browser.client.post("/api/verification-rules", json=coin)
    path, read = f"/api/verification-rules/{made.json()['id']}", contract_check.check
    cats = {"verificationType": "basic", "contractAddress": standing(world, "ERC721")}

    async def slowly(*given: Any) -> Any:
        found = await read(*given)
        monkeypatch.setattr(contract_check, "check", read)
        assert (await browser.client.patch(path, json=cats)).status_code == 200
        return found

    monkeypatch.setattr(contract_check, "check", slowly)
    other = await browser.client.patch(path, json={"contractAddress": await deployed(decimals=18)})
    assert (other.status_code, other.json()["message"]) == (409, "The rule was changed just now. Look again.")
    now = (await browser.client.get(path)).json()
    assert (now["verificationType"], now["contractAddress"]) == ("basic", cats["contractAddress"])

    # A change of something else is no reason.
    name = {"ruleName": "Renamed meanwhile"}
    monkeypatch.setattr(contract_check, "check", slowly)
    cats = name
    last = await browser.client.patch(path, json={"contractAddress": standing(world, "ERC1155")})
    assert (last.status_code, last.json()["ruleName"]) == (200, name["ruleName"])


async def test_a_coin_is_found_by_its_address(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    dollar = next(one["contract"] for one in world["chains"]["base"]["collections"] if one.get("decimals") == 6)
    for given, name in ((dollar, "Harbour Dollar"), ("native", "ETH")):
        answer = await browser.client.post("/api/collection/parse", json={"input": given, "blockchain": "base"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["name"] == name
        assert answer.json()["blockchain"] == "base"


async def test_a_preview_asks_the_coin_and_goes_on_while_nobody_answers(
    browser: Browser, world: dict[str, Any]
) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    dollar = next(one["contract"] for one in world["chains"]["base"]["collections"] if one.get("decimals") == 6)
    sent = rule(world, server_id) | COINS | {"contractAddress": dollar, "min": "100"}
    assert (await browser.client.post("/api/verification-rules/preview", json=sent)).status_code == 200
    fine = await browser.client.post("/api/verification-rules/preview", json=sent | {"min": "0.0000001"})
    assert (fine.status_code, "6 decimals" in fine.json()["message"]) == (400, True)
    await fault("down")
    assert (await browser.client.post("/api/verification-rules/preview", json=sent)).status_code == 200
    assert (await browser.client.post("/api/verification-rules", json=sent)).status_code == 503
    await fault(None)
