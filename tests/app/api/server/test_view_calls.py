"""Rules on view functions by REST: creating, reading, changing and refusing them, and trying a call with a wallet."""

from typing import Any

import httpx
import pytest

from app.api.requests.limits_by_path import limits_of
from services.runtime.rate_limits import PREVIEWS
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, role_id, with_server
from tests.app.api.test_main_path import world as world

TRY = "/api/verification-rules/try-call"


def staking(world: dict[str, Any], kind: str) -> dict[str, Any]:
    every = world["chains"]["base"]["collections"]
    return next(one for one in every if one["standard"] == f"Staking:{kind}")


def wallet(world: dict[str, Any], who: str) -> str:
    return next(user["wallets"]["evm"] for user in world["users"] if user["username"] == who)


def trial(world: dict[str, Any], kind: str, who: str = "carol", **changed: Any) -> dict[str, Any]:
    one = staking(world, kind)
    return {
        "chain": "base", "contract": one["contract"], "function": one["view"], "args": one["args"],
        "path": one["path"], "wallet": wallet(world, who),
    } | changed  # fmt: skip


def payload(world: dict[str, Any], server_id: int, kind: str = "number", **changed: Any) -> dict[str, Any]:
    one = staking(world, kind)
    return {
        "ruleName": "Stakers", "contractAddress": one["contract"], "blockchain": "base", "verificationType": "call",
        "function": one["view"], "args": one["args"], "path": one["path"], "compare": ">=", "value": "2",
        "roleId": role_id(builders(world), "Holder"), "serverId": server_id,
    } | changed  # fmt: skip


async def test_a_rule_is_made_of_flat_fields_or_an_expression_and_changed(
    browser: Browser, world: dict[str, Any]
) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    made = await browser.client.post("/api/verification-rules", json=payload(world, server_id))
    assert made.status_code == 201, made.text
    one, stored = staking(world, "number"), made.json()
    leaf = {
        "type": "call", "chain": "base", "contract": one["contract"].lower(), "function": one["view"],
        "args": ["{wallet}"], "compare": ">=", "value": "2", "minTokens": 1,
    }  # fmt: skip
    assert (stored["verificationType"], stored["expression"]) == ("call", leaf)
    assert stored["summary"] == "staked of Staking by number on Base is at least 2"
    path = f"/api/verification-rules/{stored['id']}"
    changed = await browser.client.patch(path, json={"value": "3", "compare": "<="})
    assert changed.json()["expression"] == {**leaf, "value": "3", "compare": "<="}
    both = {"all": [leaf, {**leaf, "contract": staking(world, "list")["contract"], "function": "stakedTokens(address) "
                    "external view returns (uint[] memory)", "path": "length"}]}  # fmt: skip
    changed = await browser.client.patch(path, json={"expression": both})
    assert changed.status_code == 200, changed.text
    assert changed.json()["expression"]["all"][1]["function"] == "stakedTokens(address) view returns (uint256[])"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"function": "staked(address)"}, "Say what the function returns"),
        ({"function": ""}, "Write the function's signature"),
        ({"function": "staked(address) returns (uint256)"}, "write view before returns"),
        ({"args": []}, "takes 1 argument, and none is given"),
        ({"args": ["{wallet}", "5"]}, "takes 1 argument; the number given is 2"),
        ({"args": ["0x12"]}, "or an address"),
        ({"args": "{wallet"}, "or an address"),
        ({"path": "length"}, "Only an array has a length"),
        ({"compare": "=>"}, "one of >=, <=, ="),
        ({"value": "many"}, "a whole number"),
        ({"value": "0"}, "at least 1"),
        ({"blockchain": "solana", "contractAddress": "So11111111111111111111111111111111111111112"}, "EVM chain"),
        ({"contractAddress": "0x" + "7e" * 20}, "There is no contract at"),
        ({"contractAddress": ""}, "Contract address is required"),
    ],
)
async def test_what_is_wrong_is_400_with_a_sentence(
    browser: Browser, world: dict[str, Any], changed: dict[str, Any], said: str
) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    answer = await browser.client.post("/api/verification-rules", json=payload(world, server_id, **changed))
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["message"]


async def test_a_call_can_be_tried_with_any_wallet(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")

    async def tried(kind: str, **changed: Any) -> dict[str, Any]:
        answer = await browser.client.post(TRY, json=trial(world, kind, **changed))
        assert answer.status_code == 200, answer.text
        return answer.json()

    for kind in ("number", "list", "struct", "constant"):
        found = await tried(kind)
        assert (found["value"], found["reason"]) == ("2", None)
        assert found["block"]
        assert (await tried(kind, who="erin"))["value"] == "0"
    assert (await tried("struct", path="2"))["value"] == "true"
    short = trial(world, "number")
    del short["args"], short["path"]
    assert (await browser.client.post(TRY, json=short)).json()["value"] == "2"
    assert (await tried("constant", args=["{wallet}", 6]))["value"] == "0"
    assert (await tried("revert"))["reason"] == "the contract reverted"
    huge = await tried("huge")
    assert huge["value"] is None
    assert huge["reason"]
    nowhere = await tried("number", contract="0x" + "7e" * 20)
    assert (nowhere["value"], nowhere["reason"]) == (None, "the contract gave no answer")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"chain": "solana"}, "EVM chain"),
        ({"chain": "nowhere"}, "not available here"),
        ({"chain": " "}, "Blockchain is required"),
        ({"contract": ""}, "Enter the contract's address"),
        ({"wallet": "carol"}, "An address that starts with 0x"),
        ({"function": "staked(address) view returns (uint7)"}, "8 to 256 bits"),
        ({"path": "1.x"}, "made of numbers and dots"),
        ({"args": ["{wallet}", "{wallet}"]}, "takes 1 argument"),
    ],
)
async def test_a_wrong_trial_is_400_with_a_sentence(
    browser: Browser, world: dict[str, Any], changed: dict[str, Any], said: str
) -> None:
    await browser.sign_in("ada")
    answer = await browser.client.post(TRY, json=trial(world, "number", **changed))
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["message"]


async def test_the_rule_can_be_tried_with_an_address_too(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    for kind, who, outcome in (("number", "carol", "yes"), ("number", "erin", "no"), ("revert", "carol", "unknown")):
        body = payload(world, server_id, kind, address=wallet(world, who))
        answer = await browser.client.post("/api/verification-rules/try", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["outcome"] == outcome


async def test_only_people_who_run_a_server_may_try_and_it_counts_as_a_preview(
    browser: Browser, world: dict[str, Any]
) -> None:
    assert (await browser.client.post(TRY, json=trial(world, "number"))).status_code == 401
    await browser.sign_in("mallory")
    refused = await browser.client.post(TRY, json=trial(world, "number"))
    assert (refused.status_code, "run a server" in refused.json()["message"]) == (403, True)
    assert PREVIEWS in limits_of("POST", TRY)


async def test_a_node_that_is_down_is_its_fault(browser: Browser, world: dict[str, Any]) -> None:
    await browser.sign_in("ada")
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        try:
            for target in ("rpc:base", "rpc2:base"):
                await sandbox.post("/control/faults", json={"target": target, "kind": "500", "seconds": 60})
            answer = await browser.client.post(TRY, json=trial(world, "number"))
        finally:
            await sandbox.delete("/control/faults")
    assert answer.status_code in {502, 503}
