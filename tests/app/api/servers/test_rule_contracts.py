"""Which contracts a rule may name: collections that are there, on the chain where the rule says they are."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlmodel import select

from gateways import gateways
from models import Collection, User, transaction
from services.core.actors import Actor
from services.core.errors import FieldRefused
from services.rules import rules
from services.rules.draft import RuleDraft
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, rule, with_server

NOWHERE = "0x" + "7e" * 20


@pytest.fixture
async def world(discord: None) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        return (await sandbox.get("/control/world")).json()


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
