"""The marketplaces: accounts, their holdings, pages and faults."""

from typing import Any

import httpx
import pytest

from tests.sandbox.chains.nodes import MELLOW_CATS, STRANGER, Nodes

API = "/opensea/api/v2"


def ask(nodes: Nodes, path: str, **query: Any) -> httpx.Response:
    return nodes.http.get(API + path, params=query, headers={"X-API-KEY": "sandbox-opensea-key"})


def test_people_have_their_names_and_an_empty_bio(nodes: Nodes):
    carol = nodes.wallet("carol")
    for who in (carol, carol.upper().replace("0X", "0x"), "carol"):
        account = ask(nodes, f"/accounts/{who}").json()
        assert (account["address"], account["username"], account["bio"]) == (carol, "carol", "")
    names = {"username": "carol", "ens_name": "carol.eth"}
    for who in ("carol", "Carol.eth", carol):
        assert ask(nodes, f"/accounts/resolve/{who}").json() == {"address": carol, **names}
    assert ask(nodes, "/accounts/carol.eth").status_code == 404, "an account has an address or a username"
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


@pytest.mark.parametrize("name", [STRANGER.replace("ace00", "bad00"), "86xCnPeV69n6t3DnyGvkKobf9FdN2H9oiVDdaMpo2MMY"])
def test_nobody_is_called_like_an_address(nodes: Nodes, name: str):
    """An account of that name would be the answer about the address."""
    refused = nodes.http.put(f"/control/opensea/accounts/{nodes.wallet('mallory')}", json={"username": name})
    assert refused.status_code == 400
    assert ask(nodes, f"/accounts/{name}").status_code == 404


def test_a_refused_link_changes_nothing(nodes: Nodes):
    bob = nodes.wallet("bob")
    linked = {"bio": "other", "linked_to": bob}
    assert nodes.http.put(f"/control/opensea/accounts/{bob}", json=linked).status_code == 400
    assert ask(nodes, f"/accounts/{bob}").json()["bio"] == ""


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
    assert nodes.http.get("/magiceden/v2/wallets/erin").status_code == 400, "only OpenSea knows people by their names"


def test_a_wallet_that_is_linked_to_another_profile_is_answered_with_that_one(nodes: Nodes):
    main, linked = "0x" + "1a" * 20, "0x" + "2b" * 20

    def put(address: str, **body: Any) -> httpx.Response:
        return nodes.http.put(f"/control/opensea/accounts/{address}", json=body)

    assert put(main, username="mainly", bio="hello").status_code == 200
    assert put(linked, bio="mine", linked_to=main).json() == {
        "address": linked, "username": "", "bio": "mine", "linked_to": main,
    }  # fmt: skip
    answer = ask(nodes, f"/accounts/{linked}").json()
    assert (answer["address"], answer["username"], answer["bio"]) == (main, "mainly", "hello")
    assert ask(nodes, f"/accounts/resolve/{linked}").json()["address"] == main
    assert main in nodes.http.get(f"/opensea/{linked}").text
    assert nodes.world()["accounts"][linked] == {"username": "", "bio": "mine", "linked_to": main}
    assert put(main, linked_to=linked).status_code == 400
    assert put(main, linked_to=main).status_code == 400
    nodes.kill()
    nodes.start()
    assert ask(nodes, f"/accounts/{linked}").json()["address"] == main
    assert put(linked, linked_to="").json() == {"address": linked, "username": "", "bio": "mine"}
    assert ask(nodes, f"/accounts/{linked}").json()["bio"] == "mine"


REQUIRED = {
    "account": {
        "address": str, "bio": str, "follower_count": int, "following_count": int, "is_verified": bool,
        "joined_date": str, "social_media_accounts": list,
    },
    "nft_pfp": {"contract_address": str, "token_id": str, "chain": str, "image_url": str, "is_verified": bool},
    "chain": {
        "chain": str, "name": str, "symbol": str, "supports_swaps": bool, "block_explorer": str,
        "block_explorer_url": str,
    },
    "collection": {
        "collection": str, "name": str, "opensea_url": str, "safelist_status": str, "created_date": str,
        "contracts": list, "editors": list, "fees": list, "is_disabled": bool, "is_nsfw": bool,
        "trait_offers_enabled": bool, "collection_offers_enabled": bool, "total_supply": int,
        "unique_item_count": int, "pricing_currencies": dict,
    },
    "rarity": {
        "strategy_id": str, "strategy_version": str, "calculated_at": str, "max_rank": int, "total_supply": int,
    },
    "coin": {
        "symbol": str, "address": str, "chain": str, "image": str, "name": str, "decimals": int, "eth_price": str,
        "usd_price": str,
    },
    "nft": {
        "identifier": str, "collection": str, "contract": str, "token_standard": str, "opensea_url": str,
        "updated_at": str, "is_disabled": bool, "is_nsfw": bool, "traits": list,
    },
}  # fmt: skip
"""The fields that OpenSea's own description of its API (ProjectOpenSea/api-types, 2.0.0) requires, with their types."""


def complete(kind: str, answer: dict[str, Any]) -> None:
    """Check that every required field is there and none is null: the description has no nullable field."""
    wrong = {name: type_ for name, type_ in REQUIRED[kind].items() if not isinstance(answer.get(name), type_)}
    assert not wrong, (kind, wrong)
    nulls = [name for name, value in answer.items() if value is None]
    assert not nulls, (kind, nulls)


def test_answers_are_complete_by_openseas_description(nodes: Nodes):
    account = ask(nodes, "/accounts/carol").json()
    complete("account", account)
    complete("nft_pfp", account["nft_pfp"])
    assert account["ens_name"] == "carol.eth"
    complete("account", ask(nodes, "/accounts/bob").json())
    chains = ask(nodes, "/chains").json()["chains"]
    for chain in chains:
        complete("chain", chain)
    assert {"ethereum", "ape_chain", "solana"} <= {chain["chain"] for chain in chains}
    for slug in (MELLOW_CATS, "tidepool-otters"):
        collection = ask(nodes, f"/collections/{slug}").json()
        complete("collection", collection)
        complete("rarity", collection["rarity"])
        for currency in ("listing_currency", "offer_currency"):
            complete("coin", collection["pricing_currencies"][currency])
            assert collection["pricing_currencies"][currency]["chain"] == collection["contracts"][0]["chain"]
    contract = nodes.collection(MELLOW_CATS)["contract"]
    lists = (
        f"/chain/base/contract/{contract}/nfts", f"/collection/{MELLOW_CATS}/nfts",
        f"/chain/base/account/{nodes.wallet('carol')}/nfts",
    )  # fmt: skip
    one = ask(nodes, f"/chain/base/contract/{contract}/nfts/1").json()["nft"]
    for nft in [one, *(nft for path in lists for nft in ask(nodes, path).json()["nfts"])]:
        complete("nft", nft)
        for trait in nft["traits"]:
            assert set(trait) == {"trait_type", "value"}


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


def test_what_is_deployed_minted_and_given_traits_later_is_everywhere_at_once(nodes: Nodes):
    for chain, opensea in (("abstract", "abstract"), ("apechain", "ape_chain")):
        for standard, slug in (("ERC721", "late-721"), ("ERC721Enumerable", "late-enum"), ("ERC1155", "late-1155")):
            contract = nodes.act("deploy", chain, standard=standard, name=f"Late & <i>{chain}</i>", slug=slug)[
                "contract"
            ]
            token, amount = str(2**200 + 7), "3" if standard == "ERC1155" else "1"
            nodes.act("mint", chain, contract=contract, token_id=token, to=STRANGER, amount=amount)
            nodes.act(
                "traits", chain, contract=contract, token_id=token, traits={"Fur / Hat?": "50% \u00e9", "Level": 7}
            )
            place = f"/chain/{opensea}/contract/{contract}/nfts/{token}"
            nft = ask(nodes, place).json()["nft"]
            assert {trait["trait_type"]: trait["value"] for trait in nft["traits"]} == {
                "Fur / Hat?": "50% \u00e9",
                "Level": 7,
            }
            assert nft["owners"] == [{"address": STRANGER, "quantity": int(amount), "quantity_string": amount}]
            mine = ask(nodes, f"/chain/{opensea}/account/{STRANGER}/nfts", collection=slug).json()["nfts"]
            assert [(item["contract"], item["identifier"]) for item in mine] == [(contract, token)]
            metadata = nodes.http.get(f"/metadata/{chain}/{contract}/{token}").json()
            assert metadata["attributes"] == [
                {"trait_type": "Fur / Hat?", "value": "50% \u00e9"}, {"trait_type": "Level", "value": 7},
            ]  # fmt: skip
            assert ask(nodes, place + "/collection").json()["collection"] == slug
            for page in (nft["opensea_url"], f"/magiceden/item-details/{chain}/{contract}/{token}"):
                shown = nodes.http.get(page)
                assert "Late &amp; &lt;i&gt;" in shown.text, page
    both = ask(nodes, "/collections/late-721").json()
    assert {one["chain"] for one in both["contracts"]} == {"abstract", "ape_chain"}
    assert both["unique_item_count"] == 2
    kinds = ask(nodes, "/traits/late-721").json()
    assert kinds == {
        "categories": {"Fur / Hat?": "string", "Level": "number"},
        "counts": {"Fur / Hat?": {"50% \u00e9": 2}, "Level": {"min": 7, "max": 7}},
    }


def test_an_indexer_that_stopped_knows_nothing_of_what_came_later(nodes: Nodes):
    contract = nodes.collection("copper-owls", "polygon")["contract"]
    place = f"/chain/polygon/contract/{contract}/nfts/1"
    before = ask(nodes, place).json()["nft"]["traits"]
    with nodes.fault("opensea", "stale"):
        nodes.act("traits", "polygon", contract=contract, token_id="1", traits={"Mood": "New"})
        later = nodes.act("deploy", "polygon", standard="ERC721", name="Later", slug="later-ones")["contract"]
        assert ask(nodes, place).json()["nft"]["traits"] == before
        assert ask(nodes, f"/chain/polygon/contract/{later}").status_code == 404
        assert ask(nodes, "/collections/later-ones").status_code == 404
    assert [trait["value"] for trait in ask(nodes, place).json()["nft"]["traits"]] == ["New"]
    assert ask(nodes, "/collections/later-ones").status_code == 200


def test_tokens_and_collections_can_be_asked_for_in_batches(nodes: Nodes):
    def post(path: str, body: Any) -> httpx.Response:
        return nodes.http.post(API + path, json=body, headers={"X-API-KEY": "sandbox-opensea-key"})

    contract = nodes.collection(MELLOW_CATS)["contract"]
    wanted = [
        {"chain": "base", "contract_address": contract.upper().replace("X", "x"), "token_id": t}
        for t in ("1", "99", "x", "2")
    ]
    wanted.append({"chain": "polygon", "contract_address": contract, "token_id": "1"})
    assert [nft["identifier"] for nft in post("/nfts/batch", {"identifiers": wanted}).json()["nfts"]] == ["1", "2"]
    slugs = post("/collections/batch", {"slugs": [MELLOW_CATS, "no-such-thing"]}).json()["collections"]
    assert [one["collection"] for one in slugs] == [MELLOW_CATS]
    for path, body in (("/nfts/batch", {"identifiers": [1]}), ("/nfts/batch", []), ("/collections/batch", {})):
        assert post(path, body).status_code == 400
    with nodes.fault("opensea", "empty"):
        assert post("/nfts/batch", {"identifiers": wanted}).json() == {"nfts": []}
    assert nodes.http.post(API + "/nfts/batch", json={"identifiers": []}).status_code == 401


def test_a_collection_lists_its_holders_and_the_tokens_with_a_trait(nodes: Nodes):
    holders = ask(nodes, f"/collections/{MELLOW_CATS}/holders", limit=2).json()
    assert holders["holders"][0]["address"] == nodes.wallet("carol")
    assert "next" in holders
    hat = ask(nodes, f"/traits/{MELLOW_CATS}").json()["counts"]["Hat"]
    value, count = next(iter(hat.items()))
    asked = f'[{{"traitType": "Hat", "value": "{value}"}}]'
    assert len(ask(nodes, f"/collection/{MELLOW_CATS}/nfts", traits=asked).json()["nfts"]) == count
    assert ask(nodes, f"/collection/{MELLOW_CATS}/nfts", traits="nonsense").status_code == 400


def test_a_page_of_owners_or_holders_has_twenty_unless_more_are_asked_for(nodes: Nodes):
    contract = nodes.act("deploy", "base", standard="ERC1155", name="Crowd", slug="crowd")["contract"]
    for number in range(21):
        nodes.act("mint", "base", contract=contract, token_id="1", to=f"0x{number + 1:040x}")
    for path, name in ((f"/chain/base/contract/{contract}/nfts/1/owners", "owners"),
                       ("/collections/crowd/holders", "holders")):  # fmt: skip
        first, all_of_them = ask(nodes, path).json(), ask(nodes, path, limit=100).json()
        assert (len(first[name]), "next" in first) == (20, True)
        assert (len(all_of_them[name]), "next" in all_of_them) == (21, False)
        assert ask(nodes, path, limit=101).status_code == 400


def test_collections_have_pages_for_people_at_both_marketplaces(nodes: Nodes):
    contract = nodes.collection(MELLOW_CATS)["contract"]
    item = f"base/{contract}/1"
    opensea = (f"collection/{MELLOW_CATS}", f"collection/{MELLOW_CATS}/overview", f"assets/base/{contract}")
    magic_eden = (f"collections/base/{contract}", f"collections/base/{MELLOW_CATS}", f"item-details/{item}")
    pages = [f"/opensea/{page}" for page in (*opensea, f"item/{item}", f"assets/{item}")]
    for page in (*pages, *(f"/magiceden/{page}" for page in magic_eden)):
        shown = nodes.http.get(page)
        assert (shown.status_code, "Mellow Cats" in shown.text) == (200, True), page
    for page in (
        "/opensea/collection/none",
        f"/opensea/item/base/{contract}/99",
        f"/magiceden/collections/polygon/{contract}",
    ):
        assert nodes.http.get(page).status_code == 404, page


def test_every_request_is_in_the_log(nodes: Nodes):
    since = nodes.http.get("/control/requests").json()["next"]
    ask(nodes, "/accounts/bob")
    nodes.http.get("/magiceden/v2/wallets/nobody")
    nodes.http.get("/opensea/bob")
    noted = nodes.http.get("/control/requests", params={"since": since}).json()["requests"]
    assert [(note["target"], note["status"]) for note in noted] == [("opensea", 200), ("magiceden", 400)]


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        (f"/opensea/{STRANGER}", "multipart/form-data", 400),
        (f"/opensea/{STRANGER}", "application/x-www-form-urlencoded; charset=none", 400),
        # JSON is UTF-8, whatever charset a client names: RFC 8259 section 8.1
        (API + "/nfts/batch", "application/json; charset=none", 200),
    ],
)
def test_a_body_of_an_unknown_charset_or_without_a_boundary(nodes: Nodes, path: str, kind: str, status: int):
    headers = {"Content-Type": kind, "X-API-KEY": "sandbox-opensea-key"}
    answer = nodes.http.post(path, content=b'{"identifiers": []}', headers=headers)
    assert answer.status_code == status, answer.text


def test_an_ens_name_is_found_in_any_case(nodes: Nodes):
    erin = nodes.wallet("erin")
    named = nodes.http.put(f"/control/opensea/accounts/{erin}", json={"ens_name": "Erin.eth"})
    assert named.status_code == 200, named.text
    for name in ("Erin.eth", "erin.eth"):
        found = ask(nodes, f"/accounts/resolve/{name}")
        assert found.status_code == 200, name
        assert found.json()["address"] == erin
    nodes.http.put(f"/control/opensea/accounts/{erin}", json={"ens_name": ""})
