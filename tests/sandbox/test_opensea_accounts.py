"""The marketplaces: accounts, what they hold, their pages, their faults."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.sandbox.nodes import MELLOW_CATS, STRANGER, Nodes, running

API = "/opensea/api/v2"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("opensea") / "sandbox") as nodes:
        yield nodes


def ask(nodes: Nodes, path: str, **query: Any) -> httpx.Response:
    return nodes.http.get(API + path, params=query, headers={"X-API-KEY": "sandbox-opensea-key"})


def test_people_have_their_names_and_an_empty_bio(nodes: Nodes):
    carol = nodes.wallet("carol")
    for who in (carol, carol.upper().replace("0X", "0x"), "carol"):
        account = ask(nodes, f"/accounts/{who}").json()
        assert (account["address"], account["username"], account["bio"]) == (carol, "carol", "")
    assert ask(nodes, "/accounts/resolve/carol").json() == {"address": carol, "username": "carol"}
    assert nodes.world()["accounts"][carol] == {"username": "carol", "bio": ""}


def test_the_key_is_needed_and_unknown_accounts_are_not_found(nodes: Nodes):
    assert nodes.http.get(f"{API}/accounts/carol").status_code == 401
    assert nodes.http.get(f"{API}/accounts/carol", headers={"x-api-key": "wrong"}).status_code == 401
    missing = ask(nodes, f"/accounts/{STRANGER}")
    assert (missing.status_code, missing.json()) == (404, {"errors": ["Account not found"]})


def test_a_person_edits_the_bio_on_the_page(nodes: Nodes):
    dave = nodes.wallet("dave")
    page = nodes.http.get(f"/opensea/{dave}")
    assert '<textarea id="bio" name="bio"' in page.text
    assert "Mellow Cats #4" in page.text
    saved = nodes.http.post(f"/opensea/{dave}", data={"bio": "<b>code</b>\r\nline"})
    assert saved.status_code == 303
    shown = nodes.http.get(saved.headers["location"]).text
    assert "Your bio is saved." in shown
    assert "&lt;b&gt;code&lt;/b&gt;" in shown
    assert ask(nodes, "/accounts/dave").json()["bio"] == "<b>code</b>\nline"
    assert nodes.http.post(f"/opensea/{dave}", data={"bio": "x" * 501}).status_code == 400


def test_a_control_call_opens_an_account_at_one_marketplace_only(nodes: Nodes):
    address = "0x" + "ab" * 20
    put = nodes.http.put(f"/control/opensea/accounts/{address}", json={"bio": "hello", "username": "newcomer"})
    assert put.json() == {"address": address, "username": "newcomer", "bio": "hello"}
    assert ask(nodes, "/accounts/newcomer").json()["bio"] == "hello"
    assert nodes.http.get(f"/magiceden/v2/wallets/{address}").status_code == 400
    taken = nodes.http.put(f"/control/opensea/accounts/{address}", json={"username": "carol"})
    assert taken.status_code == 409
    nodes.http.put(f"/control/magiceden/accounts/{nodes.wallet('erin')}", json={"bio": "gm"})
    wallet = nodes.http.get(f"/magiceden/v2/wallets/{nodes.wallet('erin')}").json()
    assert wallet == {"walletAddress": nodes.wallet("erin"), "displayName": "erin", "bio": "gm"}


def test_collections_tokens_and_traits_follow_the_chain(nodes: Nodes):
    contract = nodes.collection(MELLOW_CATS)["contract"]
    assert ask(nodes, f"/collections/{MELLOW_CATS}").json()["contracts"] == [{"address": contract, "chain": "base"}]
    described = ask(nodes, f"/chain/base/contract/{contract}").json()
    assert (described["collection"], described["contract_standard"]) == (MELLOW_CATS, "erc721")
    first = ask(nodes, f"/chain/base/contract/{contract}/nfts", limit=5).json()
    rest = ask(nodes, f"/chain/base/contract/{contract}/nfts", limit=5, next=first["next"]).json()
    assert [nft["identifier"] for nft in first["nfts"] + rest["nfts"]] == [str(token) for token in range(1, 9)]
    assert "next" not in rest
    nft = ask(nodes, f"/chain/base/contract/{contract}/nfts/1").json()["nft"]
    assert nft["owners"] == [{"address": nodes.wallet("carol"), "quantity": 1, "quantity_string": "1"}]
    mine = ask(nodes, f"/chain/ape_chain/account/{nodes.wallet('carol')}/nfts").json()["nfts"]
    assert {item["collection"] for item in mine} == {"mangrove-postmen", "jungle-radios", "canopy-tickets"}
    counts = ask(nodes, f"/traits/{MELLOW_CATS}").json()["counts"]["Hat"]
    assert sum(counts.values()) == 8
    assert ask(nodes, "/collections/no-such-thing").status_code == 404


def test_faults_have_opensea_s_own_manner(nodes: Nodes):
    nodes.http.put("/control/opensea/accounts/" + nodes.wallet("bob"), json={"bio": "before"})
    with nodes.fault("opensea", "429"):
        throttled = ask(nodes, "/accounts/bob")
        assert (throttled.status_code, throttled.headers["retry-after"]) == (429, "1")
        assert "throttled" in throttled.json()["errors"][0]
    with nodes.fault("opensea", "500"):
        assert ask(nodes, "/accounts/bob").json() == {"errors": ["Internal server error"]}
    with nodes.fault("opensea", "empty"):
        empty = ask(nodes, f"/accounts/{nodes.wallet('bob')}").json()
        assert (empty["address"], empty["bio"]) == (nodes.wallet("bob"), "")
        assert ask(nodes, f"/chain/base/account/{nodes.wallet('bob')}/nfts").json() == {"nfts": []}
    with nodes.fault("opensea", "stale"):
        nodes.http.put("/control/opensea/accounts/" + nodes.wallet("bob"), json={"bio": "after"})
        assert ask(nodes, "/accounts/bob").json()["bio"] == "before"
    assert ask(nodes, "/accounts/bob").json()["bio"] == "after"
    with nodes.fault("opensea", "malformed"), pytest.raises(ValueError):
        ask(nodes, "/accounts/bob").json()
    with nodes.fault("opensea", "down"), pytest.raises(httpx.RemoteProtocolError):
        ask(nodes, "/accounts/bob")


def test_every_request_is_in_the_log(nodes: Nodes):
    since = nodes.http.get("/control/requests").json()["next"]
    ask(nodes, "/accounts/bob")
    nodes.http.get("/magiceden/v2/wallets/nobody")
    nodes.http.get("/opensea/bob")
    noted = nodes.http.get("/control/requests", params={"since": since}).json()["requests"]
    assert [(note["target"], note["status"]) for note in noted] == [("opensea", 200), ("magiceden", 400)]
