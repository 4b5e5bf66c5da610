"""OpenSea: a bio unchanged, a collection by its name, or an error that is never mistaken for an empty value."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateways.marketplaces.opensea import OpenSea
from gateways.marketplaces.types import CollectionFacts, ContractFacts
from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from tests.gateways.wire import Wire

ADDRESS = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045"
ACCOUNT = {"address": "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "username": "someuser", "bio": "holdfast:nelly"}


@pytest.fixture
async def opensea(server: Wire, patience: float) -> AsyncIterator[OpenSea]:
    client = OpenSea(server.url + "/", "https://opensea.io", "key-1", deadline=patience)
    yield client
    await client.close()


async def test_a_profile_has_the_address_the_answer_names(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response(ACCOUNT))
    profile = await opensea.profile(ADDRESS)
    assert (profile.address, profile.username, profile.bio) == (ADDRESS, "someuser", "holdfast:nelly")
    assert server.asked[0].path == f"/api/v2/accounts/{ADDRESS}"
    assert server.asked[0].headers["x-api-key"] == "key-1"
    assert opensea.profile_url(ADDRESS) == f"https://opensea.io/{ADDRESS}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.json_response({"errors": ["Account not found"]}, status=404), NotThere),
        (web.json_response({"errors": ["bad"]}, status=400), ProviderRefused),
        (web.json_response({"errors": ["key"]}, status=401), Unauthorized),
        (web.Response(status=500), ProviderDown),
        (web.Response(status=599), ProviderBusy),
        (web.json_response({"detail": "Request was throttled."}, status=429), ProviderBusy),
        ("close", ProviderDown),
        ("hang", ProviderDown),
        (web.Response(text='{"address": "0x'), ProviderConfused),
        (web.json_response([]), ProviderConfused),
        (web.json_response({"address": ADDRESS}), ProviderConfused),
        (web.json_response({"bio": "holdfast:nelly"}), ProviderConfused),
        (web.json_response({"address": "", "bio": "x"}), ProviderConfused),
        (web.json_response({"address": ADDRESS, "bio": None}), ProviderConfused),
        (web.Response(body=b"x" * 1_100_000), ProviderConfused),
        (web.Response(status=301, headers={"Location": "https://elsewhere.example"}), ProviderConfused),
        (web.Response(status=301, headers={"Location": "mailto:somebody"}), ProviderDown),
    ],
)
async def test_what_is_no_profile_is_an_error(
    opensea: OpenSea, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    with pytest.raises(ProviderError) as caught:
        await opensea.profile(ADDRESS)
    assert type(caught.value) is kind
    assert "key-1" not in str(caught.value)


async def test_a_header_that_is_no_ascii_changes_nothing(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response(ACCOUNT, headers={"X-Served-By": "Zürich ☃"}))
    assert (await opensea.profile(ADDRESS)).bio == "holdfast:nelly"


async def test_while_throttled_nothing_is_sent(opensea: OpenSea, server: Wire) -> None:
    server.says(web.Response(status=429, headers={"Retry-After": "120"}))
    with pytest.raises(ProviderBusy) as caught:
        await opensea.profile(ADDRESS)
    assert caught.value.retry_after == pytest.approx(120, abs=2)
    with pytest.raises(ProviderBusy):
        await opensea.profile(ADDRESS)
    assert len(server.asked) == 1


async def test_a_pause_that_a_marketplace_asks_for_while_it_is_down_is_kept(opensea: OpenSea, server: Wire) -> None:
    server.says(web.Response(status=503, headers={"Retry-After": "120"}), web.json_response(ACCOUNT))
    with pytest.raises(ProviderDown) as caught:
        await opensea.profile(ADDRESS)
    assert caught.value.retry_after == pytest.approx(120, abs=2)
    with pytest.raises(ProviderBusy) as later:
        await opensea.profile(ADDRESS)
    assert later.value.retry_after == pytest.approx(120, abs=5)
    assert len(server.asked) == 1


async def test_a_marketplace_that_is_down_and_asks_for_no_pause_is_asked_again(opensea: OpenSea, server: Wire) -> None:
    server.says(web.Response(status=503), web.json_response(ACCOUNT))
    with pytest.raises(ProviderDown):
        await opensea.profile(ADDRESS)
    assert (await opensea.profile(ADDRESS)).bio


async def test_the_last_allowed_answer_is_used_and_then_nothing_is_sent(opensea: OpenSea, server: Wire) -> None:
    limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 60)}
    server.says(web.json_response(ACCOUNT, headers=limits))
    assert (await opensea.profile(ADDRESS)).bio
    with pytest.raises(ProviderBusy) as caught:
        await opensea.profile(ADDRESS)
    assert caught.value.retry_after == pytest.approx(60, abs=3)


async def test_rules_that_are_throttled_do_not_keep_wallets_from_being_proved(opensea: OpenSea, server: Wire) -> None:
    server.says(web.Response(status=429, headers={"Retry-After": "120"}), web.json_response(ACCOUNT))
    for _ in range(2):
        with pytest.raises(ProviderBusy):
            await opensea.account_nfts("base", ADDRESS)
    assert (await opensea.profile(ADDRESS)).bio
    assert len(server.asked) == 2


COLLECTION = {
    "collection": "cats",
    "name": " Mellow\u202e\n Cats\x00 \U0001f431",
    "contracts": [
        {"address": ADDRESS.upper().replace("X", "x"), "chain": "ape_chain"},
        {"address": "Abc", "chain": "sei"},
    ],
}
CONTRACT = {
    "address": ADDRESS,
    "chain": "ape_chain",
    "collection": "cats",
    "contract_standard": "erc721",
    "name": "Cats",
}


async def test_a_collection_has_a_plain_name_and_its_contracts_by_our_chains(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response(COLLECTION))
    assert await opensea.collection("cats/../x") == CollectionFacts(
        "cats", "Mellow Cats \U0001f431", (("apechain", ADDRESS), ("sei", "Abc"))
    )
    assert server.asked[0].path == "/api/v2/collections/cats%2F..%2Fx"


async def test_a_contract_is_asked_for_by_openseas_name_of_the_chain(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response(CONTRACT))
    assert await opensea.contract("apechain", ADDRESS) == ContractFacts("cats", "Cats")
    assert server.asked[0].path == f"/api/v2/chain/ape_chain/contract/{ADDRESS}"
    with pytest.raises(ProviderConfused):
        await opensea.contract("apechain", "0x" + "11" * 20)


async def test_traits_are_the_values_of_texts_and_nothing_for_numbers(opensea: OpenSea, server: Wire) -> None:
    categories = {"face": "string", "level": "number"}
    counts = {"face": {"glasses": 4, "none": 2}, "level": {"min": 1, "max": 99}}
    server.says(web.json_response({"categories": categories, "counts": counts}))
    assert await opensea.traits("cats") == {"face": ("glasses", "none"), "level": ()}
    assert server.asked[0].path == "/api/v2/traits/cats"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.json_response({"errors": ["Collection not found"]}, status=404), NotThere),
        (web.json_response({}), ProviderConfused),
        (web.json_response({"collection": "cats", "name": "Cats", "contracts": [1]}), ProviderConfused),
        (web.json_response({"categories": {"face": "string"}, "counts": {}}), ProviderConfused),
        (web.Response(status=503), ProviderDown),
    ],
)
async def test_what_is_no_collection_is_an_error(
    opensea: OpenSea, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    for ask in (opensea.collection("cats"), opensea.contract("base", ADDRESS), opensea.traits("cats")):
        with pytest.raises(ProviderError) as caught:
            await ask
        assert type(caught.value) is kind
