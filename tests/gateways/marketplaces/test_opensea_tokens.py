"""OpenSea's tokens: traits of one or many, and the complete list of an account, or an error."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web

from gateways.chains.metadata_traits import Trait, TraitList
from gateways.marketplaces import opensea as module
from gateways.marketplaces.opensea import OpenSea
from gateways.marketplaces.types import AccountItem
from gateways.transport.errors import NotThere, ProviderBusy, ProviderConfused, ProviderDown, ProviderError
from tests.gateways.wire import Wire

CATS, DOGS = "0x" + "ca" * 20, "0x" + "d0" * 20
OWNER = "0x" + "0e" * 20


@pytest.fixture
async def opensea(server: Wire) -> AsyncIterator[OpenSea]:
    client = OpenSea(server.url, "https://opensea.io", "key-1", deadline=10.0)
    yield client
    await client.close()


def nft(contract: str = CATS, token_id: str = "1", **traits: Any) -> dict[str, Any]:
    listed = [{"trait_type": kind, "display_type": None, "value": value} for kind, value in traits.items()]
    return {"contract": contract, "identifier": token_id, "traits": listed}


async def test_a_tokens_traits_are_read_with_numbers_as_numbers(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response({"nft": nft(CATS.upper().replace("X", "x"), "7", Fur="Gold", Level=3)}))
    assert await opensea.nft("apechain", CATS, "7") == TraitList((Trait("Fur", "Gold"), Trait("Level", 3)))
    assert server.asked[0].path == f"/api/v2/chain/ape_chain/contract/{CATS}/nfts/7"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"nft": nft(DOGS, "7")}, ProviderConfused),
        ({"nft": nft(CATS, "8")}, ProviderConfused),
        ({"nft": nft(CATS, "7") | {"traits": "Gold"}}, ProviderConfused),
        ({"nft": nft(CATS, "7") | {"traits": ["odd"]}}, ProviderConfused),
        ({"nft": {}}, ProviderConfused),
        ({}, ProviderConfused),
    ],
)
async def test_what_is_not_about_the_token_is_an_error(
    opensea: OpenSea, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(web.json_response(answer))
    with pytest.raises(kind):
        await opensea.nft("base", CATS, "7")


async def test_many_tokens_are_read_in_batches_and_what_is_not_known_is_left_out(
    opensea: OpenSea, server: Wire
) -> None:
    last = nft(DOGS, "40", Fur="Last")
    server.says(
        web.json_response({"nfts": [nft(CATS, "1", Fur="Gold"), nft(CATS, "2"), nft(DOGS, "1", Fur="Other")]}),
        web.json_response({"nfts": [last]}),
    )
    asked = [(CATS.upper().replace("X", "x"), str(number)) for number in range(1, 31)] + [(DOGS, "40")]
    assert await opensea.nfts("base", asked) == {
        asked[0]: TraitList((Trait("Fur", "Gold"),)),
        asked[1]: TraitList(()),
        asked[30]: TraitList((Trait("Fur", "Last"),)),
    }
    assert [(one.method, one.path) for one in server.asked] == [("POST", "/api/v2/nfts/batch")] * 2
    first = orjson.loads(server.asked[0].body)["identifiers"]
    assert (len(first), first[0]) == (30, {"chain": "base", "contract_address": CATS, "token_id": "1"})


@pytest.mark.parametrize("odd", [None, "Gold", ["odd"], [{"trait_type": "Fur", "value": {"a": 1}}]])
async def test_a_token_with_odd_traits_hides_no_other_of_its_batch(opensea: OpenSea, server: Wire, odd: Any) -> None:
    server.says(web.json_response({"nfts": [nft(CATS, "1") | {"traits": odd}, nft(CATS, "2", Fur="Gold")]}))
    found = await opensea.nfts("base", [(CATS, "1"), (CATS, "2")])
    assert isinstance(found[CATS, "1"], ProviderConfused)
    assert found[CATS, "2"] == TraitList((Trait("Fur", "Gold"),))


async def test_an_account_is_listed_to_its_last_page(opensea: OpenSea, server: Wire) -> None:
    server.says(
        web.json_response({"nfts": [nft(CATS, "1"), nft(DOGS, str(2**255))], "next": "a&b=="}),
        web.json_response({"nfts": [nft(CATS, "1"), nft(CATS, "2")], "next": "c"}),
        web.json_response({"nfts": [], "next": None}),
    )
    found = await opensea.account_nfts("polygon", OWNER)
    assert found.items == (AccountItem(CATS, "1"), AccountItem(DOGS, str(2**255)), AccountItem(CATS, "2"))
    assert (found.chain, found.address, found.source) == ("polygon", OWNER, "OpenSea")
    assert [one.path for one in server.asked] == [
        f"/api/v2/chain/polygon/account/{OWNER}/nfts?limit=200{more}" for more in ("", "&next=a%26b%3D%3D", "&next=c")
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.Response(status=500), ProviderDown),
        (web.Response(status=429), ProviderBusy),
        (web.Response(status=404), NotThere),
        ("close", ProviderDown),
        (web.Response(text='{"nfts": [{'), ProviderConfused),
        (web.json_response({}), ProviderConfused),
        (web.json_response({"nfts": [{"contract": CATS}]}), ProviderConfused),
        (web.json_response({"nfts": [], "next": 7}), ProviderConfused),
        (web.json_response({"nfts": [], "next": "a"}), ProviderConfused),
    ],
)
async def test_a_page_that_fails_spoils_the_whole_list(
    opensea: OpenSea, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(web.json_response({"nfts": [nft(CATS, "1")], "next": "a"}), answer)
    with pytest.raises(ProviderError) as caught:
        await opensea.account_nfts("base", OWNER)
    assert type(caught.value) is kind


async def test_a_list_without_end_is_not_read_to_its_end(
    opensea: OpenSea, server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 3)
    server.says(*(web.json_response({"nfts": [nft(CATS, str(n))], "next": str(n)}) for n in range(9)))
    with pytest.raises(ProviderConfused, match="more than"):
        await opensea.account_nfts("base", OWNER)
    assert len(server.asked) == 3
