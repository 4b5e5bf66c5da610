"""Wallets through the API: what to show or send, names that must be confirmed, and proofs by transaction."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from settings import settings
from tests.app.api.browsers import Browser

EVM = ["ethereum", "polygon", "arbitrum", "optimism", "base", "apechain", "abstract"]


@pytest.fixture
async def sandbox(discord: None) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, timeout=30) as client:
        yield client


async def tell(sandbox: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await sandbox.post(f"/control/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def asked(browser: Browser, address: str) -> dict[str, Any]:
    answer = await browser.client.get("/api/wallet-challenge", params={"address": address})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def verify(browser: Browser, address: str, **more: str) -> dict[str, Any]:
    body = {"walletAddress": address, "verificationMethod": "transaction", **more}
    answer = await browser.client.post("/api/verify-wallet", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def fresh() -> str:
    return "0x" + secrets.token_hex(20)


async def test_a_challenge_says_what_to_send_on_each_chain(browser: Browser, sandbox: httpx.AsyncClient) -> None:
    await browser.sign_in("dave")
    address = fresh()
    challenge = await asked(browser, address)
    assert challenge["resolved"] == {"name": None, "address": address}
    assert challenge["transaction"]["memo"] is None
    chains = challenge["transaction"]["chains"]
    assert [one["chain"] for one in chains] == EVM
    for one in chains:
        assert set(one) == {"chain", "to", "valueWei", "data"}
        assert one["to"] == address
        assert int(one["valueWei"]) > 0
        assert bytes.fromhex(one["data"][2:]).decode() == challenge["code"]
    assert await asked(browser, address) == challenge


@pytest.mark.parametrize("by", ["value", "data", "hash"])
async def test_a_wallet_is_proved_by_what_the_challenge_asked_for(
    browser: Browser, sandbox: httpx.AsyncClient, by: str
) -> None:
    await browser.sign_in("dave")
    address = fresh()
    one = (await asked(browser, address))["transaction"]["chains"][EVM.index("arbitrum")]
    waiting = await verify(browser, address)
    assert (waiting["success"], waiting["again"]) == (False, True)
    carried = {"value_wei": "0", "data": one["data"]} if by == "data" else {"value_wei": one["valueWei"]}
    sent = await tell(sandbox, "chains/arbitrum/send", **{"from": address, "to": one["to"], **carried})
    more = {"transactionHash": f"https://arbiscan.io/tx/{sent['hash']}"} if by == "hash" else {}
    assert await verify(browser, address, **more) == {
        "success": True, "message": "Your wallet has been successfully verified!", "again": False,
        "confirmations": 0, "needed": 0, "resolved": None, "retryAfter": 0, "linked": None,
    }  # fmt: skip
    listed = (await browser.client.get("/api/wallet-verifications")).json()
    assert [(one["walletAddress"], one["verificationMethod"]) for one in listed] == [(address, "transaction")]


async def test_a_wallet_that_opensea_shows_as_anothers_profile_is_told_so(
    browser: Browser, sandbox: httpx.AsyncClient
) -> None:
    await browser.sign_in("dave")
    main, linked = fresh(), fresh()
    for address, body in ((main, {"username": f"n{main[2:12]}"}), (linked, {"linked_to": main})):
        assert (await sandbox.put(f"/control/opensea/accounts/{address}", json=body)).status_code == 200
    answer = await verify(browser, linked, verificationMethod="opensea_bio")
    assert (answer["success"], answer["again"], answer["retryAfter"]) == (False, False, 0)
    url = f"{settings().opensea_url}/{main}"
    assert answer["linked"] == {"address": main, "name": f"n{main[2:12]}", "url": url}
    assert main in answer["message"]


@pytest.mark.parametrize(
    ("bio", "said"),
    [
        (
            "gm! Holdfast: dave",
            "The bio has a space after “holdfast:”. Write holdfast:dave without a space, save, and try again.",
        ),
        ("gm! holdfast-zzzzzzzz99", "The bio has another code. Yours is {code} now: replace it, save, and try again."),
    ],
    ids=["a space", "another code"],
)
async def test_a_bio_that_nearly_proves_says_what_to_change(
    browser: Browser, sandbox: httpx.AsyncClient, bio: str, said: str
) -> None:
    await browser.sign_in("dave")
    address = fresh()
    code = (await asked(browser, address))["code"]
    put = await sandbox.put(f"/control/opensea/accounts/{address}", json={"bio": bio})
    assert put.status_code == 200
    answer = await verify(browser, address, verificationMethod="opensea_bio")
    assert (answer["success"], answer["message"]) == (False, said.format(code=code))


async def test_it_is_told_in_how_many_seconds_opensea_answers_again(
    browser: Browser, sandbox: httpx.AsyncClient
) -> None:
    await browser.sign_in("dave")
    no_more = {"target": "opensea", "left": 0, "seconds": 100}
    try:
        assert (await sandbox.put("/control/limits", json=no_more)).status_code == 200
        answer = await verify(browser, fresh(), verificationMethod="opensea_bio")
    finally:
        await sandbox.delete("/control/limits")
    assert (answer["success"], answer["again"]) == (False, True)
    assert 90 <= answer["retryAfter"] <= 101


async def test_a_name_is_resolved_and_has_to_be_confirmed_by_its_address(
    browser: Browser, sandbox: httpx.AsyncClient
) -> None:
    await browser.sign_in("dave")
    address, name = fresh(), f"n{secrets.token_hex(5)}.eth"
    await tell(sandbox, "chains/ethereum/name", name=name, address=address)
    written = name.upper().replace(".ETH", ".eth")
    challenge = await asked(browser, written)
    assert challenge["resolved"] == {"name": name, "address": address}
    assert challenge["transaction"]["chains"][0]["to"] == address
    put = await sandbox.put(f"/control/opensea/accounts/{address}", json={"bio": challenge["code"]})
    assert put.status_code == 200
    for method in ("opensea_bio", "transaction"):
        answer = await verify(browser, written, verificationMethod=method)
        assert answer["success"] is False
        assert answer["resolved"] == {"name": name, "address": address}
        assert f"{name} stands for {address}" in answer["message"]
        assert "confirm it by sending this address" in answer["message"]
    assert (await browser.client.get("/api/wallet-verifications")).json() == []
    assert (await verify(browser, address, verificationMethod="opensea_bio"))["success"] is True


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("nobody-has-this.eth", "stands for no wallet on Ethereum"),
        ("саrol.eth", "is not a valid name"),
        ("carol..eth", "is not a valid name"),
        ("someone-nobody-is.sol", "stands for no wallet on Solana"),
        ("a" * 300 + ".eth", "too long"),
    ],
)
async def test_a_name_that_leads_nowhere_is_told_in_a_sentence(
    browser: Browser, sandbox: httpx.AsyncClient, written: str, said: str
) -> None:
    await browser.sign_in("dave")
    refused = await browser.client.get("/api/wallet-challenge", params={"address": written})
    assert (refused.status_code, said in refused.json()["message"]) == (400, True)
    answer = await verify(browser, written)
    assert (answer["success"], said in answer["message"]) == (False, True)


async def test_a_directory_in_trouble_is_try_again(browser: Browser, sandbox: httpx.AsyncClient) -> None:
    await browser.sign_in("dave")
    try:
        for front in ("rpc", "rpc2"):
            await tell(sandbox, "faults", target=f"{front}:ethereum", kind="500", seconds=60)
        assert "cannot be looked up right now" in (await verify(browser, "carol.eth"))["message"]
        asked = await browser.client.get("/api/wallet-challenge", params={"address": "carol.eth"})
        assert (asked.status_code, asked.headers["Retry-After"]) == (503, "60")
        assert "cannot be looked up right now" in asked.json()["message"]
    finally:
        await sandbox.delete("/control/faults")


async def test_an_unknown_method_is_told_and_the_session_still_decides(
    browser: Browser, sandbox: httpx.AsyncClient
) -> None:
    await browser.sign_in("dave")
    answer = await verify(browser, fresh(), verificationMethod="signature")
    assert (answer["success"], "Choose OpenSea Profile Bio or Transaction Proof" in answer["message"]) == (False, True)
    foreign = {"walletAddress": fresh(), "verificationMethod": "transaction", "userId": "0"}
    assert (await browser.client.post("/api/verify-wallet", json=foreign)).status_code == 403
