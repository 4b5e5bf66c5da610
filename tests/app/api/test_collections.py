"""Collections by address and by marketplace page, against the sandbox's OpenSea and chains."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlmodel import select, update

from models import Collection, now, transaction
from settings import settings
from tests.app.api.browsers import Browser, seeded_world

PEOPLE_WALLET = "0x" + "77" * 20
SOLANA_WALLET = "3tF45NttFL4K8smZuqzPD61awTEToSph6dfCWhCc5MGR"


@pytest.fixture
async def sandbox(discord: None) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as client:
        yield client
        await client.delete("/control/faults")
        await client.delete("/control/limits")


async def listed(chain: str) -> dict[str, Any]:
    world = await seeded_world(settings().sandbox_url)
    return world["chains"][chain]["collections"][0]


async def parsed(browser: Browser, given: str, chain: str = "ethereum") -> httpx.Response:
    return await browser.client.post("/api/collection/parse", json={"input": given, "blockchain": chain})


async def test_a_collection_is_found_by_its_address_and_by_its_pages(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    collection = await listed("apechain")
    contract, slug = collection["contract"], collection["slug"]
    expected = {"name": collection["name"], "contractAddress": contract.lower(), "blockchain": "apechain"}
    for given, chain in [
        (contract.upper().replace("X", "x"), "apechain"),
        (f"https://opensea.io/collection/{slug}", ""),
        (f"{settings().opensea_url}/collection/{slug}", "base"),
        (f"https://opensea.io/item/ape_chain/{contract}/1", "ethereum"),
        (f"{settings().magiceden_url}/collections/apechain/{slug}", "ethereum"),
        (f"https://magiceden.us/item-details/apechain/{contract}/1", "ethereum"),
    ]:
        answer = await parsed(browser, given, chain)
        assert (answer.status_code, answer.json()) == (200, expected), given
    async with transaction() as db:
        (row,) = (await db.exec(select(Collection))).all()
    assert (row.chain, row.contract, row.name, row.slug) == ("apechain", contract.lower(), collection["name"], slug)


async def test_one_person_does_not_use_up_the_lookups_of_others(
    new_browser: Callable[[], Browser], sandbox: httpx.AsyncClient
):
    few = {"target": "opensea", "left": 100, "seconds": 3_600}
    assert (await sandbox.put("/control/limits", json=few)).status_code == 200
    greedy, next_one = new_browser(), new_browser()
    await greedy.sign_in("ada")
    await next_one.sign_in("bob")
    page = f"https://opensea.io/collection/{(await listed('apechain'))['slug']}"
    answers = [(await parsed(greedy, page)).status_code for _ in range(20)]
    assert (answers[0], answers[-1]) == (200, 503)
    assert (await parsed(next_one, page)).status_code == 200


async def test_a_contract_that_opensea_does_not_tell_of_speaks_for_itself(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    collection = await listed("optimism")
    contract, slug = collection["contract"], collection["slug"]
    await sandbox.post("/control/faults", json={"target": "opensea", "kind": "500", "seconds": 60})
    answer = await parsed(browser, contract, "optimism")
    assert answer.json()["name"] == collection["name"]
    busy = await parsed(browser, f"https://opensea.io/collection/{slug}")
    assert busy.status_code == 503
    assert "OpenSea" in busy.json()["message"]
    assert busy.headers["Retry-After"]
    traits = await browser.client.get(f"/api/collection/{contract}/traits?blockchain=optimism")
    assert traits.status_code == 503


async def test_a_remembered_collection_needs_nobody_and_outlives_every_fault(
    browser: Browser, sandbox: httpx.AsyncClient
):
    await browser.sign_in("ada")
    contract = (await listed("arbitrum"))["contract"]
    assert (await parsed(browser, contract, "arbitrum")).status_code == 200
    async with transaction() as db:
        await db.exec(update(Collection).values(name="As remembered"))
    assert (await parsed(browser, contract, "arbitrum")).json()["name"] == "As remembered"
    async with transaction() as db:
        await db.exec(update(Collection).values(updated_at=now() - timedelta(days=1)))
    await sandbox.post("/control/faults", json={"target": "opensea", "kind": "500", "seconds": 60})
    assert (await parsed(browser, contract, "arbitrum")).json()["name"] == "As remembered"
    await sandbox.post("/control/faults", json={"target": "opensea", "kind": "500", "seconds": 0.000_001})


@pytest.mark.parametrize(
    ("given", "chain", "status", "says"),
    [
        ("", "base", 400, "Enter a contract address or collection URL first"),
        (
            PEOPLE_WALLET,
            "base",
            404,
            "There is no contract at 0x7777...7777 on Base. Nor is there on any other chain here.",
        ),
        (PEOPLE_WALLET, "base", 404, "It looks like a wallet's address"),
        (SOLANA_WALLET, "base", 404, "There is no collection at 3tF45N...5MGR on Solana. It looks like a wallet's"),
        (PEOPLE_WALLET, "", 400, "Blockchain is required"),
        (PEOPLE_WALLET, "solana", 404, "0x7777...7777 is not an address on Solana."),
        (PEOPLE_WALLET, "sei", 400, "cannot be used"),
        (PEOPLE_WALLET[:-1], "base", 400, "42 characters"),
        ("https://opensea.io/carol", "base", 400, "profile"),
        ("https://magiceden.io/u/carol", "base", 400, "profile"),
        (f"https://opensea.io/{PEOPLE_WALLET}", "base", 400, "profile"),
        ("https://magiceden.io/marketplace/no_such_otters", "base", 404, "no_such_otters"),
        (f"https://magiceden.io/item-details/{SOLANA_WALLET}", "base", 404, "belongs to no collection"),
        ("https://opensea.io/collection/no-such-cats", "base", 404, "no-such-cats"),
        ("https://magiceden.io/collections/sei/cats", "base", 400, "Sei"),
        ("https://magiceden.io/collections/base/lantern-foxes", "base", 400, "Lantern Foxes is on Ethereum"),
        ("https://elsewhere.example/collection/x", "base", 400, "neither"),
    ],
)
async def test_what_cannot_be_found_says_what_to_do(
    browser: Browser, sandbox: httpx.AsyncClient, given: str, chain: str, status: int, says: str
):
    await browser.sign_in("ada")
    answer = await parsed(browser, given, chain)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["message"]


async def made(sandbox: httpx.AsyncClient, chain: str, standard: str, name: str, slug: str) -> str:
    body = {"standard": standard, "name": name, "slug": slug}
    return (await sandbox.post(f"/control/chains/{chain}/deploy", json=body)).json()["contract"]


async def test_a_collection_on_another_chain_is_offered_there(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    name = f"Elsewhere {now():%H%M%S%f}"
    contract = await made(sandbox, "abstract", "ERC1155", name, f"elsewhere-{now():%H%M%S%f}")
    for chain, begin in [
        ("base", "There is no contract at"),
        ("solana", f"{contract[:6]}...{contract[-4:]} is not an address on"),
    ]:
        answer = await parsed(browser, contract, chain)
        assert answer.status_code == 404
        assert answer.json()["message"].startswith(begin)
        assert f"{name} on Abstract" in answer.json()["message"]
        assert answer.json()["offers"] == [{"name": name, "contractAddress": contract, "blockchain": "abstract"}]
    await sandbox.post("/control/faults", json={"target": "rpc:abstract", "kind": "down", "seconds": 60})
    await sandbox.post("/control/faults", json={"target": "rpc2:abstract", "kind": "down", "seconds": 60})
    unsure = await parsed(browser, contract, "base")
    assert unsure.json()["message"].endswith("Is it a wallet's address, or is it on Abstract?")


async def test_a_collection_of_several_contracts_lists_them(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    slug = f"both-{now():%H%M%S%f}"
    contracts = {chain: await made(sandbox, chain, "ERC721", "Both", slug) for chain in ("polygon", "optimism")}
    url = f"https://opensea.io/collection/{slug}"
    answer = await parsed(browser, url, "base")
    assert answer.status_code == 400
    assert all(contract in answer.json()["message"] for contract in contracts.values())
    assert {one["blockchain"]: one["contractAddress"] for one in answer.json()["offers"]} == contracts
    assert (await parsed(browser, url, "optimism")).json()["contractAddress"] == contracts["optimism"]
    page = await parsed(browser, f"https://magiceden.io/collections/polygon/{slug}", "base")
    assert page.json()["contractAddress"] == contracts["polygon"]


async def test_a_collection_on_solana_is_found_by_address_by_page_and_by_any_of_its_tokens(
    browser: Browser, sandbox: httpx.AsyncClient
):
    await browser.sign_in("ada")
    collection = await listed("solana")
    contract, slug, mint = collection["contract"], collection["slug"], collection["tokens"][0]["id"]
    expected = {"name": collection["name"], "contractAddress": contract, "blockchain": "solana"}
    for given in (
        contract, mint, f"https://opensea.io/collection/{slug}", f"https://opensea.io/item/solana/{mint}",
        f"{settings().opensea_url}/item/solana/{contract}/{mint}", f"https://magiceden.io/marketplace/{slug}",
        f"{settings().magiceden_url}/marketplace/{slug}", f"https://magiceden.us/item-details/{mint}",
    ):  # fmt: skip
        answer = await parsed(browser, given, "ethereum")
        assert (answer.status_code, answer.json()) == (200, expected), given
    await sandbox.post("/control/faults", json={"target": "magiceden", "kind": "500", "seconds": 60})
    busy = await parsed(browser, f"https://magiceden.io/marketplace/{slug}")
    assert (busy.status_code, "Magic Eden" in busy.json()["message"]) == (503, True)


async def test_solanas_traits_are_listed_and_told_by_its_tokens_where_opensea_is_silent(
    browser: Browser, sandbox: httpx.AsyncClient
):
    await browser.sign_in("ada")
    collection = await listed("solana")
    expected = sorted({kind for token in collection["tokens"] for kind in token["traits"]})
    path = f"/api/collection/{collection['contract']}/traits?blockchain=solana"
    for kind in (None, "empty", "500"):
        if kind:
            await sandbox.post("/control/faults", json={"target": "opensea", "kind": kind, "seconds": 60})
        assert (await browser.client.get(path)).json() == {"traitTypes": expected}, kind


async def test_where_opensea_lists_no_traits_the_tokens_tell_theirs(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    for standard, start in (("ERC721Enumerable", 2**200), ("ERC721", 1), ("ERC1155", 1)):
        contract = await made(sandbox, "arbitrum", standard, "Told", f"told-{standard.lower()}-{now():%H%M%S%f}")
        for number, traits in enumerate(({"Fur": "Gold", "Level": 12}, {"fur": "gold", "Level": 7}, {"Fur": "Ash"})):
            token = {"contract": contract, "token_id": str(start + number)}
            await sandbox.post("/control/chains/arbitrum/mint", json=token | {"to": PEOPLE_WALLET})
            await sandbox.post("/control/chains/arbitrum/traits", json=token | {"traits": traits})
        await parsed(browser, contract, "arbitrum")
        await sandbox.post("/control/faults", json={"target": "opensea", "kind": "empty", "seconds": 60})
        path = f"/api/collection/{contract}/traits"
        assert (await browser.client.get(f"{path}?blockchain=arbitrum")).json() == {"traitTypes": ["Fur", "Level"]}
        for kind, values in (("FUR", ["Ash", "Gold"]), ("Level", ["7", "12"])):
            answer = await browser.client.get(f"{path}/{kind}?blockchain=arbitrum")
            assert answer.json() == {"traitValues": values}, standard
        # If the contract lists its tokens, all were read; otherwise there may be more than were found.
        await sandbox.post("/control/faults", json={"target": "opensea", "kind": "500", "seconds": 60})
        status = (await browser.client.get(f"{path}?blockchain=arbitrum")).status_code
        assert status == (200 if standard == "ERC721Enumerable" else 503)
        await sandbox.delete("/control/faults")


async def test_a_collection_without_any_trait_says_so(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    contract = await made(sandbox, "arbitrum", "ERC721", "Bare", f"bare-{now():%H%M%S%f}")
    answer = await browser.client.get(f"/api/collection/{contract}/traits?blockchain=arbitrum")
    assert (answer.status_code, answer.json()["message"]) == (
        404, "OpenSea lists no traits for Bare, and its tokens have none.",
    )  # fmt: skip


async def test_nobody_looks_collections_up_without_signing_in(browser: Browser, product: None):
    assert (await parsed(browser, PEOPLE_WALLET)).status_code == 401
    assert (await browser.client.get(f"/api/collection/{PEOPLE_WALLET}/traits?blockchain=base")).status_code == 401


async def test_the_kinds_and_values_of_traits_are_those_of_the_tokens(browser: Browser, sandbox: httpx.AsyncClient):
    await browser.sign_in("ada")
    collection = await listed("apechain")
    path = f"/api/collection/{collection['contract']}/traits"
    kinds = await browser.client.get(path, params={"blockchain": "apechain"})
    expected: dict[str, set[str]] = {}
    for token in collection["tokens"]:
        for kind, value in token["traits"].items():
            expected.setdefault(kind, set()).add(value)
    assert kinds.json() == {"traitTypes": sorted(expected)}
    for kind, values in expected.items():
        answer = await browser.client.get(f"{path}/{kind}", params={"blockchain": "apechain"})
        assert answer.json() == {"traitValues": sorted(values, key=str.casefold)}


async def test_traits_that_cannot_be_fetched_are_a_message_and_never_an_empty_list(
    browser: Browser, sandbox: httpx.AsyncClient
):
    await browser.sign_in("ada")
    contract = (await listed("apechain"))["contract"]
    for path, chain, status, says in [
        (f"/api/collection/{contract}/traits/No%2FSuch", "apechain", 404, "No/Such"),
        (f"/api/collection/{PEOPLE_WALLET}/traits", "apechain", 404, "no contract"),
        ("/api/collection/any/traits", "apechain", 400, "42 characters"),
        (f"/api/collection/{contract}/traits", "", 400, "Blockchain is required"),
    ]:
        answer = await browser.client.get(path, params={"blockchain": chain})
        assert answer.status_code == status, answer.text
        assert says in answer.json()["message"]
    await parsed(browser, contract, "apechain")
    for kind in ("500", "429", "malformed"):
        await sandbox.post("/control/faults", json={"target": "opensea", "kind": kind, "seconds": 60})
        answer = await browser.client.get(f"/api/collection/{contract}/traits", params={"blockchain": "apechain"})
        assert answer.status_code == 503, kind
        assert "OpenSea" in answer.json()["message"]


async def test_a_collection_deployed_later_is_found_with_whatever_its_traits_are_called(
    browser: Browser, sandbox: httpx.AsyncClient
):
    await browser.sign_in("ada")
    slug = f"late-{now():%H%M%S%f}"
    made = await sandbox.post(
        "/control/chains/polygon/deploy", json={"standard": "ERC721", "name": "Late & <b>Loud</b>", "slug": slug}
    )
    contract = made.json()["contract"]
    traits = {"Fur / Hat?": "50% \u00e9", "Level": 7}
    for call, body in [("mint", {"to": PEOPLE_WALLET}), ("traits", {"traits": traits})]:
        body |= {"contract": contract, "token_id": "1"}
        assert (await sandbox.post(f"/control/chains/polygon/{call}", json=body)).status_code < 300
    for given in (contract, f"https://opensea.io/collection/{slug}", f"https://opensea.io/assets/matic/{contract}/1"):
        answer = await parsed(browser, given, "polygon")
        assert answer.json() == {
            "name": "Late & <b>Loud</b>", "contractAddress": contract.lower(), "blockchain": "polygon",
        }  # fmt: skip
    path = f"/api/collection/{contract}/traits"
    assert (await browser.client.get(f"{path}?blockchain=polygon")).json() == {"traitTypes": ["Fur / Hat?", "Level"]}
    for kind, values in [("Fur%20%2F%20Hat%3F", ["50% \u00e9"]), ("Level", [])]:
        answer = await browser.client.get(f"{path}/{kind}?blockchain=polygon")
        assert answer.json() == {"traitValues": values}, kind
