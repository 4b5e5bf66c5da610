"""Magic Eden in the sandbox: its answers about Solana, and its faults."""

from typing import Any

import httpx
import pytest

from tests.sandbox.chains.nodes import Nodes

API = "/magiceden/v2"
OTTERS = "tidepool-otters"


def ask(nodes: Nodes, path: str, **query: Any) -> httpx.Response:
    return nodes.http.get(API + path, params=query)


def solana_wallet(nodes: Nodes, username: str) -> str:
    return next(user["wallets"]["solana"] for user in nodes.world()["users"] if user["username"] == username)


def test_a_wallets_tokens_are_those_of_the_chain(nodes: Nodes):
    carol, otters = solana_wallet(nodes, "carol"), nodes.collection(OTTERS, "solana")
    held = {token["id"]: token["traits"] for token in otters["tokens"] if carol in token["owners"]}
    have = ask(nodes, f"/wallets/{carol}/tokens").json()
    shown = {one["mintAddress"]: {trait["trait_type"]: trait["value"] for trait in one["attributes"]} for one in have}
    assert shown == held
    assert {one["collection"] for one in have} == {OTTERS}
    assert len(ask(nodes, f"/wallets/{carol}/tokens", limit=2, offset=1).json()) == 2
    assert ask(nodes, f"/wallets/{carol}/tokens", mcc_address="none").json() == []
    assert ask(nodes, f"/wallets/{carol}/tokens", limit=501).status_code == 400
    mint = next(iter(held))
    assert ask(nodes, f"/tokens/{mint}").json()["owner"] == carol
    assert ask(nodes, "/tokens/nothing").status_code == 400


def test_a_collection_is_found_by_its_symbol_and_never_by_its_address(nodes: Nodes):
    otters = nodes.collection(OTTERS, "solana")
    ids = {token["id"] for token in otters["tokens"]}
    assert {one["symbol"] for one in ask(nodes, "/collections").json()} == {OTTERS}
    assert {one["tokenMint"] for one in ask(nodes, f"/collections/{OTTERS}/activities").json()} == ids
    assert {one["tokenMint"] for one in ask(nodes, f"/collections/{OTTERS}/listings").json()} == ids
    results = ask(nodes, f"/collections/{OTTERS}/attributes").json()["results"]
    assert sum(one["count"] for one in results["availableAttributes"]) == sum(
        len(t["traits"]) for t in otters["tokens"]
    )
    assert ask(nodes, f"/collections/{OTTERS}/stats").json()["symbol"] == OTTERS
    assert ask(nodes, f"/collections/{OTTERS}/holder_stats").json()["totalSupply"] == len(ids)
    for path in (f"/collections/{otters['contract']}/stats", "/collections/none/activities"):
        assert ask(nodes, path).status_code == 404
    assert ask(nodes, f"/collections/{OTTERS}").status_code == 404


def test_opensea_lists_solana_too_and_both_have_pages(nodes: Nodes):
    otters = nodes.collection(OTTERS, "solana")
    mint = otters["tokens"][0]["id"]
    opensea = nodes.http.get(f"/opensea/api/v2/collections/{OTTERS}", headers={"x-api-key": "sandbox-opensea-key"})
    assert opensea.json()["contracts"] == [{"address": otters["contract"], "chain": "solana"}]
    for page in (
        f"/opensea/collection/{OTTERS}", f"/opensea/item/solana/{otters['contract']}/{mint}",
        f"/magiceden/marketplace/{OTTERS}", f"/magiceden/item-details/{mint}",
    ):  # fmt: skip
        shown = nodes.http.get(page)
        assert (shown.status_code, "Tidepool Otters" in shown.text) == (200, True), page


def test_what_is_minted_and_given_traits_later_is_there_and_not_for_an_indexer_that_stopped(nodes: Nodes):
    owner = solana_wallet(nodes, "bob")
    with nodes.fault("magiceden", "stale"):
        minted = nodes.act("mint", "solana", contract=OTTERS, to=owner)["token_id"]
        nodes.act("traits", "solana", contract=OTTERS, token_id=minted, traits={"Mood": "Late"})
        assert ask(nodes, f"/tokens/{minted}").status_code == 400
    assert ask(nodes, f"/tokens/{minted}").json()["attributes"] == [{"trait_type": "Mood", "value": "Late"}]


def test_faults_are_its_own(nodes: Nodes):
    carol = solana_wallet(nodes, "carol")
    with nodes.fault("magiceden", "429"):
        assert ask(nodes, f"/wallets/{carol}/tokens").status_code == 429
    with nodes.fault("magiceden", "500"):
        assert ask(nodes, f"/collections/{OTTERS}/activities").status_code == 500
    with nodes.fault("magiceden", "empty"):
        assert ask(nodes, f"/wallets/{carol}/tokens").json() == []
        assert ask(nodes, f"/collections/{OTTERS}/attributes").json()["results"]["availableAttributes"] == []
        assert ask(nodes, f"/wallets/{carol}").json()["bio"] == ""
    with nodes.fault("magiceden", "malformed"), pytest.raises(ValueError):
        ask(nodes, f"/tokens/{carol}").json()
    with nodes.fault("magiceden", "down"), pytest.raises(httpx.RemoteProtocolError):
        ask(nodes, "/collections")
