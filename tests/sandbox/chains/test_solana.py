"""Solana in the sandbox: the effects of control calls, the answers of the node and the index, and their faults."""

import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.chains.otters import OTTERS, STRANGER, Otters, running

TOKEN, TOKEN_2022 = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
FIXTURES = json.loads(Path(__file__).with_name("das_asset.json").read_text())


@pytest.fixture
async def otters(tmp_path: Path) -> AsyncIterator[Otters]:
    async with running(tmp_path / "sandbox") as made:
        yield made


async def test_the_world_begins_with_a_collection_among_the_peoples_wallets(otters: Otters) -> None:
    world = await otters.world()
    chain, (collection, coin) = world["chains"]["solana"], world["chains"]["solana"]["collections"]
    assert (coin["standard"], coin["decimals"], coin["tokens"]) == ("SPL", 6, [])
    assert chain["rpc"].endswith("/solana")
    assert (collection["standard"], collection["slug"]) == ("Solana", OTTERS)
    wallets = {user["wallets"]["solana"] for user in world["users"]}
    owners = [next(iter(token["owners"])) for token in collection["tokens"]]
    assert len(owners) == 8
    assert wallets > set(owners) >= {await otters.wallet(name) for name in ("bob", "carol", "dave", "erin")}
    assert all(token["traits"].keys() == {"Background", "Mood", "Hat"} for token in collection["tokens"])


async def test_mint_transfer_and_burn_show_in_the_index_and_in_the_world(otters: Otters) -> None:
    bob = await otters.wallet("bob")
    minted = await otters.act("mint", contract=OTTERS, to=STRANGER)
    token = minted["token_id"]
    assert (await otters.rpc("getAsset", id=token))["ownership"]["owner"] == STRANGER
    moved = await otters.act("transfer", contract=OTTERS, token_id=token, to=bob)
    assert moved["block"] > minted["block"]
    assert await otters.owner(token) == bob
    assert [asset["id"] for asset in (await otters.rpc("getAssetsByOwner", ownerAddress=STRANGER))["items"]] == [
        "F9Lw3ki3hJ7PF9HQXsBzoY8GyE6sPoEZZdXJBsTTD2rk"
    ]
    await otters.act("burn", contract=OTTERS, token_id=token)
    assert await otters.owner(token) is None
    held = (await otters.rpc("getAssetsByOwner", ownerAddress=bob))["items"]
    assert [asset["burnt"] for asset in held if asset["id"] == token] == [True]
    assert token not in {asset["id"] for asset in await _searched(otters, ownerAddress=bob, burnt=False)}


async def test_a_token_is_named_by_its_address_or_by_its_number(otters: Otters) -> None:
    own = "1" * 31 + "2"
    assert (await otters.act("mint", contract=OTTERS, token_id=own, to=STRANGER))["token_id"] == own
    number = (await otters.act("mint", contract="Tidepool Otters", token_id="40", to=STRANGER))["token_id"]
    await otters.act("transfer", contract=OTTERS, token_id="40", to=own)
    assert await otters.owner(number) == own


async def test_a_collection_is_deployed_with_names_nobody_planned_for(otters: Otters) -> None:
    made = await otters.act("deploy", standard="Solana", name="Späte Gäste", slug="late-guests")
    token = (await otters.act("mint", contract=made["contract"], to=STRANGER))["token_id"]
    await otters.act("traits", contract="late-guests", token_id=token, traits={"Level": 7, "Coat": "Wool"})
    assert (await otters.collection("late-guests"))["tokens"] == [
        {"id": token, "owners": {STRANGER: "1"}, "traits": {"Level": 7, "Coat": "Wool"}}
    ]
    listed = await otters.rpc("getAssetsByGroup", groupKey="collection", groupValue=made["contract"])
    (asset,) = listed["items"]
    assert asset["content"]["metadata"]["attributes"] == [
        {"value": 7, "trait_type": "Level"}, {"value": "Wool", "trait_type": "Coat"},
    ]  # fmt: skip
    told = (await otters.http.get(httpx.URL(asset["content"]["json_uri"]).path)).json()
    assert told["attributes"] == [{"trait_type": "Level", "value": 7}, {"trait_type": "Coat", "value": "Wool"}]
    assert "<svg" in (await otters.http.get(httpx.URL(asset["content"]["links"]["image"]).path)).text
    parent = await otters.rpc("getAsset", id=made["contract"])
    assert (parent["content"]["metadata"]["name"], parent["grouping"]) == ("Späte Gäste", [])
    assert (await otters.refused("deploy", standard="Solana", name="x", slug="late-guests"))[0] == 409


async def test_an_asset_has_the_form_of_the_real_one(otters: Otters) -> None:
    """It is compared with an asset in the form of DAS (docs/facts.md#solana-das)."""
    listed = await otters.rpc("getAssetsByOwner", ownerAddress=STRANGER, page=1, limit=1000)
    assert listed.keys() == {"last_indexed_slot", "total", "limit", "page", "items"}
    asset = listed["items"][0]
    assert _form(asset) == _form(FIXTURES["asset"])
    assert asset["grouping"] == FIXTURES["asset"]["grouping"]


def _form(value: Any) -> Any:
    """Return the names and types of a value's fields, without list contents that differ from asset to asset."""
    if isinstance(value, dict):
        return {name: _form(one) for name, one in value.items()}
    return type(value).__name__ if not isinstance(value, list) else "list"


@pytest.mark.parametrize(
    ("special", "seen"),
    [
        ({"compressed": True}, {"interface": "V1_NFT"}),
        ({"interface": "MplCoreAsset"}, {"interface": "MplCoreAsset", "supply": None}),
        ({"interface": "V1_NFT", "frozen": True}, {"interface": "V1_NFT"}),
        ({"verified": False}, {"grouping": []}),
    ],
)
async def test_assets_can_be_special(otters: Otters, special: dict[str, Any], seen: dict[str, Any]) -> None:
    token = (await otters.act("mint", contract=OTTERS, to=STRANGER, **special))["token_id"]
    asset = await otters.rpc("getAsset", id=token)
    assert {name: asset[name] for name in seen} == seen
    assert asset["compression"]["compressed"] is special.get("compressed", False)
    assert asset["ownership"]["frozen"] is special.get("frozen", False)
    shown = await otters.rpc("getAsset", id=token, options={"showUnverifiedCollections": True})
    assert shown["grouping"][0]["verified"] is special.get("verified", True)


async def test_a_listed_token_stays_its_owners_until_it_is_sold(otters: Otters) -> None:
    token = (await otters.act("mint", contract=OTTERS, to=STRANGER))["token_id"]
    bob = await otters.wallet("bob")
    await otters.act("mark", contract=OTTERS, token_id=token, frozen=True, delegate=bob)
    ownership = (await otters.rpc("getAsset", id=token))["ownership"]
    assert (ownership["owner"], ownership["frozen"], ownership["delegate"]) == (STRANGER, True, bob)
    await otters.act("transfer", contract=OTTERS, token_id=token, to=bob)
    ownership = (await otters.rpc("getAsset", id=token))["ownership"]
    assert (ownership["owner"], ownership["frozen"], ownership["delegated"]) == (bob, False, False)


async def test_coins_are_no_nfts(otters: Otters) -> None:
    token = (await otters.act("mint", contract=OTTERS, to=STRANGER, interface="FungibleToken"))["token_id"]
    plain = await otters.rpc("getAssetsByOwner", ownerAddress=STRANGER)
    assert token not in {asset["id"] for asset in plain["items"]}
    with_coins = await otters.rpc("getAssetsByOwner", ownerAddress=STRANGER, options={"showFungible": True})
    assert token in {asset["id"] for asset in with_coins["items"]}
    assert token not in {asset["id"] for asset in await _searched(otters, ownerAddress=STRANGER)}
    assert await otters.owner(token) is None


async def test_a_slug_is_found_before_a_symbol_that_is_the_same(otters: Otters) -> None:
    await otters.act("deploy", standard="SPL", name=OTTERS, symbol=OTTERS, slug="odd")
    assert (await otters.act("mint", contract=OTTERS, to=STRANGER))["token_id"]
    await otters.act("mint", contract="odd", amount="1", to=STRANGER)


async def test_the_index_says_of_a_coin_what_its_mint_says(otters: Otters) -> None:
    made = await otters.act("deploy", standard="SPL2022", name="Young", slug="young", decimals=2)
    await otters.act("mint", contract=made["contract"], amount="700", to=STRANGER)
    shown = await otters.rpc("getAsset", id=made["contract"])
    assert shown["token_info"] == {"supply": 700, "decimals": 2, "token_program": TOKEN_2022, "symbol": "Y"}
    assert shown["content"]["metadata"]["symbol"] == "Y"
    single = (await otters.act("mint", contract=OTTERS, to=STRANGER, interface="FungibleToken"))["token_id"]
    info = (await otters.rpc("getAsset", id=single))["token_info"]
    assert info == {"supply": 1, "decimals": 0, "token_program": TOKEN}


async def _searched(otters: Otters, **criteria: Any) -> list[Any]:
    return (await otters.rpc("searchAssets", **{"tokenType": "nonFungible", **criteria}))["items"]


async def test_searches_name_a_token_type_and_narrow_by_collection(otters: Otters) -> None:
    carol, contract = await otters.wallet("carol"), (await otters.collection())["contract"]
    assert (await otters.error("searchAssets", ownerAddress=carol))[0] == -32602
    assert len(await _searched(otters, ownerAddress=carol, grouping=["collection", contract])) == 3
    assert len(await _searched(otters, ownerAddress=carol, tokenType="compressedNft")) == 1
    assert await _searched(otters, ownerAddress=carol, grouping=["collection", STRANGER]) == []
    assert {asset["ownership"]["frozen"] for asset in await _searched(otters, frozen=True)} == {True}


@pytest.mark.parametrize("way", ["page", "cursor", "after"])
async def test_lists_come_in_pages(otters: Otters, way: str) -> None:
    contract = (await otters.collection())["contract"]
    asked: dict[str, Any] = {"groupKey": "collection", "groupValue": contract, "limit": 3}
    found: list[str] = []
    for number in range(1, 10):
        more = {"page": number} if way == "page" else {}
        if way != "page" and found:
            more = {way: found[-1]}
        answer = await otters.rpc("getAssetsByGroup", **asked, **more)
        if not answer["items"]:
            break
        found += [asset["id"] for asset in answer["items"]]
        assert (answer["total"], answer["limit"]) == (len(answer["items"]), 3)
        assert answer.get("cursor") == (None if way == "page" else found[-1])
    assert sorted(found) == sorted(token["id"] for token in (await otters.collection())["tokens"])


async def test_what_the_index_cannot_do_it_refuses(otters: Otters) -> None:
    owner = {"ownerAddress": STRANGER}
    assert (await otters.error("getAssetsByOwner", **owner, limit=1001))[0] == -32602
    assert (await otters.error("getAssetsByOwner", **owner, page=0))[0] == -32602
    assert (await otters.error("getAssetsByOwner", **owner, page=1, after=STRANGER))[0] == -32602
    assert (await otters.error("getAssetsByOwner", ownerAddress="nobody"))[0] == -32602
    assert (await otters.error("getAsset", id="1" * 32))[0] == -32000
    assert await otters.rpc("getAssetBatch", ids=["1" * 32]) == [None]
    assert (await otters.error("getLargestAccounts"))[0] == -32601


async def test_slots_grow_by_themselves_and_leap_with_every_deed(otters: Otters) -> None:
    before = await otters.rpc("getSlot", {"commitment": "confirmed"})
    done = await otters.act("send", **{"from": STRANGER}, memo="hello")
    assert done["block"] > before
    assert await otters.rpc("getSlot", {"commitment": "finalized"}) >= done["block"]
    assert abs(await otters.rpc("getBlockTime", done["block"]) - time.time()) < 5
    assert (await otters.act("mine", blocks="100"))["block"] >= done["block"] + 100
    assert (await otters.error("getBlockTime", 2**50))[0] == -32004
    assert await otters.rpc("getHealth") == "ok"
    assert await otters.rpc("getGenesisHash") == "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
    latest = await otters.rpc("getLatestBlockhash")
    assert latest["value"]["lastValidBlockHeight"] > await otters.rpc("getBlockHeight")


async def test_a_memo_is_signed_by_its_sender_alone(otters: Otters) -> None:
    carol = await otters.wallet("carol")
    sent = await otters.act("send", **{"from": STRANGER}, to=carol, value_wei="5", memo="héllo")
    options = {"encoding": "jsonParsed", "maxSupportedTransactionVersion": 0}
    found = await otters.rpc("getTransaction", sent["hash"], options)
    message = found["transaction"]["message"]
    assert [key["pubkey"] for key in message["accountKeys"] if key["signer"]] == [STRANGER]
    assert [one["parsed"] for one in message["instructions"] if one.get("program") == "spl-memo"] == ["héllo"]
    assert (found["slot"], found["meta"]["err"]) == (sent["block"], None)
    compiled = await otters.rpc("getTransaction", sent["hash"], {**options, "encoding": "json"})
    assert compiled["transaction"]["message"]["accountKeys"][0] == STRANGER
    for address in (STRANGER, carol):
        (listed,) = await otters.rpc("getSignaturesForAddress", address, {"limit": 1})
        assert (listed["signature"], listed["memo"], listed["confirmationStatus"]) == (
            sent["hash"], "[6] héllo", "finalized",
        )  # fmt: skip
    assert (await otters.error("getTransaction", sent["hash"]))[0] == -32015
    assert await otters.rpc("getTransaction", "1" * 64, options) is None


async def test_signatures_are_listed_newest_first_between_two_others(otters: Otters) -> None:
    sent = [(await otters.act("send", **{"from": STRANGER}, memo=str(n)))["hash"] for n in range(5)]

    async def listed(**options: Any) -> list[str]:
        found = await otters.rpc("getSignaturesForAddress", STRANGER, options)
        return [one["signature"] for one in found]

    assert await listed() == sent[::-1]
    assert await listed(until=sent[2]) == [sent[4], sent[3]]
    assert await listed(before=sent[3], limit=2) == [sent[2], sent[1]]
    assert (await otters.error("getSignaturesForAddress", STRANGER, {"limit": 1001}))[0] == -32602
    assert (await otters.error("getSignaturesForAddress", STRANGER, {"commitment": "processed"}))[0] == -32602


async def test_a_transaction_may_fail_or_not_be_final_yet(otters: Otters) -> None:
    failed = await otters.act("send", **{"from": STRANGER}, memo="x", fail=True)
    early = await otters.act("send", **{"from": STRANGER}, memo="y", final=False)
    options = {"encoding": "jsonParsed", "maxSupportedTransactionVersion": 0}
    assert (await otters.rpc("getTransaction", failed["hash"], options))["meta"]["err"] is not None
    assert await otters.rpc("getTransaction", early["hash"], options) is None
    assert await otters.rpc("getTransaction", early["hash"], {**options, "commitment": "confirmed"}) is not None
    statuses = (await otters.rpc("getSignatureStatuses", [failed["hash"], early["hash"], "1" * 64]))["value"]
    assert [status and status["confirmationStatus"] for status in statuses] == ["finalized", "confirmed", None]
    await otters.act("mine", blocks="40")
    assert await otters.rpc("getTransaction", early["hash"], options) is not None


async def test_money_and_accounts_can_be_looked_at(otters: Otters) -> None:
    carol = await otters.wallet("carol")
    before = (await otters.rpc("getBalance", carol))["value"]
    await otters.act("send", **{"from": STRANGER}, to=carol, value_wei="77")
    assert (await otters.rpc("getBalance", carol))["value"] == before + 77
    assert (await otters.rpc("getAccountInfo", "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"))["value"]["executable"]
    program = {"programId": "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"}
    accounts = (await otters.rpc("getTokenAccountsByOwner", carol, program, {"encoding": "jsonParsed"}))["value"]
    assert len(accounts) == 3  # the third token is compressed; a coin has an account too
    assert accounts[0]["account"]["data"]["parsed"]["info"]["tokenAmount"]["amount"] == "1"


async def test_accounts_come_in_the_encoding_that_was_asked_for(otters: Otters) -> None:
    carol, program = await otters.wallet("carol"), {"programId": TOKEN}
    accounts = (await otters.rpc("getTokenAccountsByOwner", carol, program, {"encoding": "base64"}))["value"]
    assert {len(b64decode(one["account"]["data"][0])) for one in accounts} == {165}
    code, message = await otters.error("getTokenAccountsByOwner", carol, program)
    assert (code, "base 58" in message) == (-32600, True), "the usual encoding is for short accounts"
    made = (await otters.act("deploy", standard="SPL2022", name="Young", slug="young", decimals=2))["contract"]
    mint = (await otters.rpc("getAccountInfo", made, {"encoding": "base64"}))["value"]
    assert (mint["owner"], len(b64decode(mint["data"][0]))) == (TOKEN_2022, 82)
    assert isinstance((await otters.rpc("getAccountInfo", made))["value"]["data"], str)
    assert (await otters.error("getAccountInfo", carol, {"encoding": "base65"}))[0] == -32602


async def test_a_coin_tells_its_supply_and_what_an_account_has_of_it(otters: Otters) -> None:
    coin = (await otters.world())["chains"]["solana"]["collections"][1]["contract"]
    supply = (await otters.rpc("getTokenSupply", coin))["value"]
    assert supply == {"amount": "1270000000", "decimals": 6, "uiAmount": 1270.0, "uiAmountString": "1270"}
    largest = (await otters.rpc("getTokenLargestAccounts", coin))["value"][0]
    balance = (await otters.rpc("getTokenAccountBalance", largest.pop("address")))["value"]
    assert balance == largest
    for method in ("getTokenSupply", "getTokenAccountBalance"):
        assert (await otters.error(method, await otters.wallet("carol")))[0] == -32602
    await otters.fault("zero")
    assert (await otters.rpc("getTokenSupply", coin))["value"]["amount"] == "0"


@pytest.mark.parametrize(
    ("kind", "status"), [("500", 500), ("429", 429), ("malformed", 200), ("empty", 200), ("zero", 200)]
)
async def test_faults_are_the_endpoints_own(otters: Otters, kind: str, status: int) -> None:
    carol = await otters.wallet("carol")
    await otters.fault(kind)
    answer = await otters.ask("getAssetsByOwner", {"ownerAddress": carol})
    assert answer.status_code == status
    if kind == "429":
        assert (answer.headers["Retry-After"], answer.json()["error"]["code"]) == ("1", -32429)
    if kind == "malformed":
        with pytest.raises(json.JSONDecodeError):
            answer.json()
    if kind in ("empty", "zero"):
        assert answer.json()["result"]["items"] == []
        assert (await otters.rpc("getBalance", carol))["value"] == 0
        assert await otters.rpc("getSlot") > 0
    if kind == "empty":
        assert await otters.rpc("getAsset", id=(await otters.collection())["contract"]) is None
        assert await otters.rpc("getSignaturesForAddress", carol) == []
        assert await otters.rpc("getAssetBatch", ids=[carol]) == [None]
        assert (await otters.error("getAssetBatch", ids=5))[0] == -32602


async def test_an_endpoint_that_is_down_closes_without_an_answer(otters: Otters) -> None:
    await otters.fault("down")
    with pytest.raises(httpx.RemoteProtocolError):
        await otters.ask("getSlot")


async def test_a_stale_endpoint_stops_with_its_head(otters: Otters) -> None:
    bob, token = await otters.wallet("bob"), (await otters.collection())["tokens"][0]["id"]
    owner = await otters.owner(token)
    await otters.fault("stale")
    head = await otters.rpc("getSlot", {"commitment": "confirmed"})
    moved = await otters.act("transfer", contract=OTTERS, token_id=token, to=bob)
    assert await otters.rpc("getSlot", {"commitment": "confirmed"}) == head < moved["block"]
    assert (await otters.rpc("getAsset", id=token))["ownership"]["owner"] == owner
    assert await otters.rpc("getSignaturesForAddress", bob) == []
    await otters.fault("500", 0.01)
    assert await otters.owner(token) == bob


async def test_one_name_stands_for_a_wallet(otters: Otters) -> None:
    found = await otters.http.get("/solana/names/resolve/Carol")
    assert (found.status_code, found.json()) == (200, {"s": "ok", "result": await otters.wallet("carol")})
    missing = await otters.http.get("/solana/names/resolve/nobody")
    assert (missing.status_code, missing.json()) == (404, {"s": "error", "result": "Domain not found"})
    await otters.fault("500")
    assert (await otters.http.get("/solana/names/resolve/carol")).status_code == 500


async def test_people_sign_memos_in_the_console(otters: Otters) -> None:
    tool = await otters.http.get("/console", params={"as": "carol", "panel": "chains", "at": "solana"})
    assert "Sign a memo" in tool.text
    carol = await otters.wallet("carol")
    done = await otters.http.post("/console/do/chains/solana/send", data={"from": carol, "memo": "by hand"})
    assert "said=Done." in done.headers["location"]
    assert (await otters.rpc("getSignaturesForAddress", carol))[0]["memo"] == "[7] by hand"


async def test_every_call_is_logged_by_its_method(otters: Otters) -> None:
    asked = [{"jsonrpc": "2.0", "id": n, "method": name, "params": []} for n, name in enumerate(("getSlot", "what"))]
    answers = (await otters.http.post("/solana", json=asked)).json()
    assert [("result" in answer, answer["id"]) for answer in answers] == [(True, 0), (False, 1)]
    logged = (await otters.http.get("/control/requests")).json()["requests"]
    assert [(one["target"], one["rpc_method"]) for one in logged] == [("solana", "getSlot"), ("solana", "what")]


async def test_what_cannot_be_done_is_refused_with_a_sentence(otters: Otters) -> None:
    bob = await otters.wallet("bob")
    assert (await otters.refused("mint", contract="nothing-here", to=bob))[0] == 404
    assert (await otters.refused("mint", contract=OTTERS, token_id="1", to=bob))[0] == 409
    assert (await otters.refused("mint", contract=OTTERS, token_id="#1", to=bob))[0] == 400
    assert (await otters.refused("mint", contract=OTTERS, to="0x" + "5e" * 20))[0] == 400
    assert (await otters.refused("transfer", contract=OTTERS, token_id="1", to=bob, **{"from": bob}))[0] == 409
    assert (await otters.refused("transfer", contract=OTTERS, token_id="999", to=bob))[0] == 404
    assert (await otters.refused("deploy", standard="ERC721", name="x", slug="x"))[0] == 400
    assert (await otters.refused("reorg", depth="1"))[0] == 404


async def test_nothing_is_lost_by_a_restart_and_a_reset_leads_back(tmp_path: Path) -> None:
    async with running(tmp_path / "sandbox") as otters:
        seeded = (await otters.world())["chains"]["solana"]["collections"]
        await otters.act("deploy", standard="Solana", name="Late Show", slug="late-show")
        token = (await otters.act("mint", contract="late-show", to=STRANGER, frozen=True))["token_id"]
        await otters.act("traits", contract="late-show", token_id=token, traits={"Row": 3})
        sent = await otters.act("send", **{"from": STRANGER}, memo="kept")
        slot = (await otters.act("mine", blocks="400"))["block"]
        changed = (await otters.world())["chains"]["solana"]["collections"]
    # The journal is written as things happen: stopping adds nothing that a kill would lose.
    async with running(tmp_path / "sandbox") as otters:
        assert (await otters.world())["chains"]["solana"]["collections"] == changed
        assert await otters.rpc("getSlot", {"commitment": "confirmed"}) >= slot
        options = {"maxSupportedTransactionVersion": 0}
        assert (await otters.rpc("getTransaction", sent["hash"], options))["slot"] == sent["block"]
        slot = await otters.rpc("getSlot", {"commitment": "confirmed"})
        assert (await otters.http.post("/control/reset")).status_code == 200
        assert (await otters.world())["chains"]["solana"]["collections"] == seeded
        assert await otters.rpc("getSlot") > slot
        assert await otters.rpc("getTransaction", sent["hash"], options) is not None
        again = await otters.act("deploy", standard="Solana", name="Late Show", slug="late-show")
        slot = again["block"]
    async with running(tmp_path / "sandbox") as otters:
        assert [one["slug"] for one in (await otters.world())["chains"]["solana"]["collections"]] == [
            OTTERS, "late-show", "reef-dollar",
        ]  # fmt: skip
        assert await otters.rpc("getSlot") >= slot


async def test_a_trait_beyond_all_numbers_is_refused_and_the_world_stays_json(otters: Otters) -> None:
    token = (await otters.collection())["tokens"][0]["id"]
    body = f'{{"contract": "{OTTERS}", "token_id": "{token}", "traits": {{"Odds": 1e400}}}}'
    refused = await otters.http.post("/control/chains/solana/traits", content=body)
    assert "Infinity" not in (await otters.http.get("/control/world")).text
    assert (refused.status_code, refused.json()["message"]) == (400, "The body is not JSON.")
