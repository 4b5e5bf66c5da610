"""Solana through the API: rules of every type on a collection deployed a moment ago, and a wallet's challenge."""

import uuid
from typing import Any

import httpx

from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, role_id, with_server
from tests.app.api.test_main_path import world as world

WALLET = "1" * 31 + "8"


async def act(action: str, **body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=settings().sandbox_url) as sandbox:
        answer = await sandbox.post(f"/control/chains/solana/{action}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_rules_of_every_type_are_made_for_a_collection_of_a_moment_ago(browser: Browser, world: dict[str, Any]):
    contract = (await act("deploy", standard="Solana", name="Späte Gäste", slug=uuid.uuid4().hex))["contract"]
    token = (await act("mint", contract=contract, to=WALLET))["token_id"]
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    payload = {
        "ruleName": "Guests", "contractAddress": contract, "blockchain": "solana", "minTokens": 1,
        "serverId": server_id, "roleColor": "#5865F2",
        "roleId": role_id(builders(world), "Holder"), "roleName": "Holder",
    }  # fmt: skip
    for kind, more in (
        ("basic", {}),
        ("trait", {"traitType": "Hat", "traitValue": "Crown"}),
        ("token_id", {"tokenIds": [token]}),
        ("any_nft", {"contractAddress": "any"}),
    ):
        answer = await browser.client.post(
            "/api/verification-rules", json={**payload, "verificationType": kind, **more}
        )
        assert answer.status_code == 201, answer.text
        assert (answer.json()["blockchain"], answer.json()["verificationType"]) == ("solana", kind)
        (alone,) = answer.json()["singleSources"]
        assert (alone["chain"], alone["verificationType"]) == ("solana", kind)
        assert alone["text"].startswith("Solana has one node and index here")
        assert "RPC_SOLANA" in alone["remedy"]
    previewed = await browser.client.post(
        "/api/verification-rules/preview", json={**payload, "verificationType": "basic"}
    )
    assert [one["chain"] for one in previewed.json()["singleSources"]] == ["solana"]
    for wrong, said in (
        ({"contractAddress": WALLET}, "solana"),
        ({"contractAddress": "0x" + "5e" * 20}, "address"),
        ({"verificationType": "token_id", "tokenIds": ["100-200"]}, "mint address"),
    ):
        answer = await browser.client.post(
            "/api/verification-rules", json={**payload, "verificationType": "basic", **wrong}
        )
        assert answer.status_code in {400, 404}, answer.text
        assert said in answer.json()["message"].lower()


async def test_a_wallet_on_solana_is_asked_for_a_memo(browser: Browser, world: dict[str, Any]):
    await browser.sign_in("carol")
    asked = (await browser.client.get("/api/wallet-challenge", params={"address": WALLET})).json()
    assert asked["transaction"] == {"chains": [], "memo": asked["code"]}
    named = (await browser.client.get("/api/wallet-challenge", params={"address": "carol.sol"})).json()
    assert named["resolved"] == {"name": "carol.sol", "address": "3tF45NttFL4K8smZuqzPD61awTEToSph6dfCWhCc5MGR"}
