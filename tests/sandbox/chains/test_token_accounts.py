"""What a Solana node says of accounts and their lamports, and what it refuses to say."""

from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.solana.assets import AIRDROP, FEE
from tests.sandbox.chains.otters import OTTERS, STRANGER, Otters, running

TOKEN, TOKEN_2022 = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
PARSED = {"encoding": "jsonParsed"}
WHOLE = {**PARSED, "maxSupportedTransactionVersion": 0}
PAUPER = "1" * 31 + "9"


@pytest.fixture
async def otters(tmp_path: Path) -> AsyncIterator[Otters]:
    async with running(tmp_path / "sandbox") as made:
        yield made


async def test_token_accounts_are_listed_for_one_mint_or_token_program_that_exists(otters: Otters) -> None:
    carol, chain = await otters.wallet("carol"), (await otters.world())["chains"]["solana"]
    collection, coin = chain["collections"]
    for mint in (coin["contract"], collection["tokens"][0]["id"], WRAPPED_SOL):
        await otters.rpc("getTokenAccountsByOwner", carol, {"mint": mint}, PARSED)
    for wanted, said in (
        ({"mint": STRANGER}, "Invalid param: could not find mint"),
        ({"programId": STRANGER}, "Invalid param: unrecognized Token program id"),
        ({"mint": "no address"}, "Invalid param: Invalid"),
    ):
        assert await otters.error("getTokenAccountsByOwner", carol, wanted, PARSED) == (-32602, said)
    both = {"mint": coin["contract"], "programId": TOKEN}
    assert (await otters.error("getTokenAccountsByOwner", carol, both, PARSED))[0] == -32602


async def test_a_slot_that_the_node_has_not_reached_is_refused(otters: Otters) -> None:
    carol, slot = await otters.wallet("carol"), await otters.rpc("getSlot")
    assert (await otters.rpc("getBalance", carol, {"minContextSlot": slot}))["value"]
    for method in ("getBalance", "getSignaturesForAddress"):
        assert (await otters.error(method, carol, {"minContextSlot": slot + 1_000_000}))[0] == -32016
        assert (await otters.error(method, carol, {"minContextSlot": "soon"}))[0] == -32602


@pytest.mark.parametrize("name", ["before", "until"])
async def test_a_bound_of_a_list_that_is_no_signature_is_refused(otters: Otters, name: str) -> None:
    carol = await otters.wallet("carol")
    assert (await otters.error("getSignaturesForAddress", carol, {name: "no signature"}))[0] == -32602


async def lamports(otters: Otters, address: str) -> int:
    return (await otters.rpc("getBalance", address))["value"]


async def test_an_address_that_nobody_paid_has_no_account(otters: Otters) -> None:
    carol = await otters.wallet("carol")
    assert await lamports(otters, carol) == AIRDROP
    assert await lamports(otters, PAUPER) == 0
    assert (await otters.rpc("getAccountInfo", PAUPER))["value"] is None
    shown = (await otters.rpc("getMultipleAccounts", [PAUPER, carol, TOKEN]))["value"]
    assert [account and (account["lamports"] > 0, account["executable"]) for account in shown] == [
        None, (True, False), (True, True),
    ]  # fmt: skip
    await otters.act("send", **{"from": carol}, to=PAUPER, value_wei="1000000")
    assert (await otters.rpc("getAccountInfo", PAUPER))["value"]["lamports"] == 1_000_000
    assert await lamports(otters, carol) == AIRDROP - FEE - 1_000_000


async def test_a_sender_is_funded_and_keeps_what_comes_later(otters: Otters) -> None:
    carol = await otters.wallet("carol")
    await otters.act("send", **{"from": STRANGER}, to=carol, value_wei=str(2 * AIRDROP))
    assert (await lamports(otters, STRANGER), await lamports(otters, carol)) == (0, 3 * AIRDROP)
    await otters.act("send", **{"from": carol}, to=STRANGER, value_wei="5000000")
    assert await lamports(otters, STRANGER) == 5_000_000
    assert (await otters.http.post("/control/reset")).status_code == 200
    assert (await lamports(otters, STRANGER), await lamports(otters, carol)) == (0, AIRDROP)


async def test_nobody_receives_more_lamports_than_64_bits(otters: Otters) -> None:
    most = {"from": STRANGER, "to": PAUPER, "value_wei": str(2**64 - 1)}
    await otters.act("send", **most)
    assert (await otters.refused("send", **most))[0] == 409
    assert await lamports(otters, PAUPER) == 2**64 - 1


async def test_a_transaction_shows_what_its_accounts_had_before_and_after(otters: Otters) -> None:
    carol = await otters.wallet("carol")
    sent = await otters.act("send", **{"from": carol}, to=PAUPER, value_wei="1000000")
    found = await otters.rpc("getTransaction", sent["hash"], WHOLE)
    keys = [key["pubkey"] for key in found["transaction"]["message"]["accountKeys"]]
    before, after = (dict(zip(keys, found["meta"][f"{when}Balances"], strict=True)) for when in ("pre", "post"))
    assert (before[carol], after[carol]) == (AIRDROP, AIRDROP - FEE - 1_000_000)
    assert (before[PAUPER], after[PAUPER]) == (0, 1_000_000)


async def test_a_failed_transaction_has_the_same_error_everywhere(otters: Otters) -> None:
    failed = (await otters.act("send", **{"from": STRANGER}, memo="x", fail=True))["hash"]
    whole = await otters.rpc("getTransaction", failed, WHOLE)
    (listed,) = await otters.rpc("getSignaturesForAddress", STRANGER)
    (status,) = (await otters.rpc("getSignatureStatuses", [failed]))["value"]
    assert whole["meta"]["err"] == listed["err"] == status["err"] == status["status"]["Err"]


@pytest.mark.parametrize("burnt", [False, True])
async def test_an_nft_of_the_token_program_is_a_coin_of_which_there_is_one(otters: Otters, burnt: bool) -> None:
    delegate = await otters.wallet("bob")
    mint = (await otters.act("mint", contract=OTTERS, to=STRANGER, delegate=delegate))["token_id"]
    of_mint = {"mint": mint}
    (before,) = (await otters.rpc("getTokenAccountsByOwner", STRANGER, of_mint, PARSED))["value"]
    assert before["account"]["data"]["parsed"]["info"]["delegate"] == delegate
    if burnt:
        await otters.act("burn", contract=OTTERS, token_id=mint)
    assert (await otters.rpc("getTokenSupply", mint))["value"]["amount"] == str(int(not burnt))
    largest = (await otters.rpc("getTokenLargestAccounts", mint))["value"]
    assert [(one["address"], one["amount"]) for one in largest] == ([] if burnt else [(before["pubkey"], "1")])
    account = (await otters.rpc("getAccountInfo", before["pubkey"], PARSED))["value"]
    shown = (await otters.rpc("getAccountInfo", mint, PARSED))["value"]["data"]["parsed"]["info"]
    assert (shown["decimals"], shown["supply"]) == (0, str(int(not burnt)))
    if burnt:
        assert account is None
        assert (await otters.error("getTokenAccountBalance", before["pubkey"]))[0] == -32602
    else:
        assert account["data"]["parsed"]["info"]["owner"] == STRANGER
        assert (await otters.rpc("getTokenAccountBalance", before["pubkey"]))["value"]["uiAmountString"] == "1"


async def test_a_node_that_says_zero_says_so_in_every_encoding(otters: Otters) -> None:
    mint = (await otters.collection("reef-dollar"))["contract"]
    largest = (await otters.rpc("getTokenLargestAccounts", mint))["value"]
    await otters.fault("zero")
    asked = [mint, largest[0]["address"]]
    parsed = (await otters.rpc("getMultipleAccounts", asked, PARSED))["value"]
    supply, account = (one["data"]["parsed"]["info"] for one in parsed)
    assert (supply["supply"], account["tokenAmount"]["amount"]) == ("0", "0")
    bare = (await otters.rpc("getMultipleAccounts", asked))["value"]
    contents = [b64decode(one["data"][0]) for one in bare]
    assert (contents[0][36:44], contents[1][64:72]) == (bytes(8), bytes(8))


async def test_an_account_is_shown_in_a_frame_of_zstd(otters: Otters) -> None:
    """One raw block in one segment, with its size in four bytes (RFC 8878 section 3.1.1)."""
    mint = (await otters.collection("reef-dollar"))["contract"]
    for part in ({}, {"dataSlice": {"offset": 36, "length": 8}}, {"dataSlice": {"offset": 0, "length": 0}}):
        plain = (await otters.rpc("getAccountInfo", mint, {"encoding": "base64", **part}))["value"]["data"]
        packed = (await otters.rpc("getAccountInfo", mint, {"encoding": "base64+zstd", **part}))["value"]["data"]
        assert packed[1] == "base64+zstd"
        content, frame = b64decode(plain[0]), b64decode(packed[0])
        assert frame[:5] == b"\x28\xb5\x2f\xfd\xa0"
        size, block = int.from_bytes(frame[5:9], "little"), int.from_bytes(frame[9:12], "little")
        assert (size, block, frame[12:]) == (len(content), len(content) << 3 | 1, content)


async def test_the_earliest_slot_counts_where_the_node_reads_one(otters: Otters) -> None:
    coin = (await otters.collection("reef-dollar"))["contract"]
    sent, late = (await otters.act("send", **{"from": STRANGER}))["hash"], await otters.rpc("getSlot") + 1_000_000
    refused = (await otters.ask("getBalance", [STRANGER, {"minContextSlot": late}])).json()["error"]
    assert refused["code"] == -32016
    assert refused["data"]["contextSlot"] < late
    assert await otters.rpc("getTransaction", sent, {**WHOLE, "minContextSlot": late}) is not None
    assert (await otters.rpc("getTokenSupply", coin, {"minContextSlot": late}))["value"]["decimals"] == 6


async def test_signatures_are_listed_from_any_transaction_on(otters: Otters) -> None:
    first = (await otters.act("send", **{"from": STRANGER}, memo="1"))["hash"]
    between = (await otters.act("send", **{"from": await otters.wallet("bob")}, memo="2"))["hash"]
    last = (await otters.act("send", **{"from": STRANGER}, memo="3"))["hash"]
    for bound, wanted in (("before", [first]), ("until", [last])):
        listed = await otters.rpc("getSignaturesForAddress", STRANGER, {bound: between})
        assert [one["signature"] for one in listed] == wanted
    assert await otters.rpc("getSignaturesForAddress", STRANGER, {"before": "1" * 64}) == []


async def test_a_filter_is_read_at_once_however_long_it_is(otters: Otters) -> None:
    filters = [{"dataSize": 165}, {"memcmp": {"offset": 0, "bytes": "z" * 10**6}}]
    refused = await otters.error("getProgramAccounts", TOKEN, {"encoding": "base64", "filters": filters})
    assert refused == (-32602, "Invalid param: data too large")


def of_mint(mint: str, **more: Any) -> dict[str, Any]:
    """Return filters for the token accounts of a mint."""
    return {"filters": [more or {"dataSize": 165}, {"memcmp": {"offset": 0, "bytes": mint}}], "encoding": "base64"}


async def test_a_program_lists_the_accounts_of_a_mint(otters: Otters) -> None:
    coin = (await otters.world())["chains"]["solana"]["collections"][1]
    options = of_mint(coin["contract"]) | {"dataSlice": {"offset": 64, "length": 8}, "withContext": True}
    answer = await otters.rpc("getProgramAccounts", TOKEN, options)
    amounts = [b64decode(one["account"]["data"][0]) for one in answer["value"]]
    assert sorted(int.from_bytes(one, "little") for one in amounts) == sorted(map(int, coin["holders"].values()))
    assert answer["context"]["slot"] > 0
    assert {one["account"]["space"] for one in answer["value"]} == {165}
    assert isinstance(await otters.rpc("getProgramAccounts", TOKEN, of_mint(coin["contract"])), list)
    assert await otters.rpc("getProgramAccounts", TOKEN_2022, of_mint(coin["contract"])) == []
    mint = (await otters.rpc("getMultipleAccounts", [coin["contract"]], {"encoding": "base64"}))["value"][0]
    content = b64decode(mint["data"][0])
    assert (mint["owner"], len(content), content[44]) == (TOKEN, 82, 6)
    assert int.from_bytes(content[36:44], "little") == sum(map(int, coin["holders"].values()))


async def test_accounts_of_the_younger_program_have_an_extension_and_another_size(otters: Otters) -> None:
    made = await otters.act("deploy", standard="SPL2022", name="Young", slug="young", decimals=2)
    await otters.act("mint", contract=made["contract"], amount="7", to=STRANGER)
    assert await otters.rpc("getProgramAccounts", TOKEN_2022, of_mint(made["contract"])) == []
    marked = of_mint(made["contract"], memcmp={"offset": 165, "bytes": "3"})
    (found,) = await otters.rpc("getProgramAccounts", TOKEN_2022, marked)
    assert (found["account"]["space"], found["account"]["owner"]) == (170, TOKEN_2022)


async def test_a_program_is_never_gone_through_without_an_index(otters: Otters) -> None:
    mint = (await otters.world())["chains"]["solana"]["collections"][1]["contract"]
    of_its_mint = {"memcmp": {"offset": 0, "bytes": mint}}
    for filters in (
        None,
        [of_its_mint],
        [{"dataSize": 165}],
        [{"dataSize": 165}, {"memcmp": {"offset": 64, "bytes": mint}}],
    ):
        code, message = await otters.error("getProgramAccounts", TOKEN, {"encoding": "base64", "filters": filters})
        assert (code, "secondary indexes" in message) == (-32010, True)
    whole = of_mint(mint)
    assert (await otters.error("getProgramAccounts", TOKEN, whole | {"encoding": "base58"}))[0] == -32600
    assert (await otters.error("getProgramAccounts", TOKEN, whole | {"filters": [{"dataSize": 165}] * 5}))[0] == -32602
    assert (await otters.error("getProgramAccounts", TOKEN, whole | {"dataSlice": {"offset": 3}}))[0] == -32602
    await otters.fault("empty")
    assert await otters.rpc("getProgramAccounts", TOKEN, whole) == []
    assert (await otters.rpc("getProgramAccounts", TOKEN, whole | {"withContext": True}))["value"] == []
