"""What a Solana node refuses to say of accounts: mints and programs that are none, slots that it has not reached."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.chains.otters import STRANGER, Otters, running

TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
PARSED = {"encoding": "jsonParsed"}


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
