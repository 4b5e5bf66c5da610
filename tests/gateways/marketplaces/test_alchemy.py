"""Alchemy's lists of accounts' tokens in the sandbox: complete or an error, and never proof of holding nothing."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import Listed, listing
from gateways.marketplaces.alchemy import Alchemy
from gateways.marketplaces.types import AccountItem
from gateways.transport.errors import (
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from tests.gateways.wire import Wire

OWNER, CATS = "0x" + "0e" * 20, "0x" + "ca" * 20


@pytest.fixture
async def alchemy(server: Wire) -> AsyncIterator[Alchemy]:
    client = Alchemy(server.url + "/{network}/nft/v3", "key/1", deadline=10.0)
    yield client
    await client.close()


def page(*ids: str, key: str | None = None) -> web.Response:
    tokens = [{"contractAddress": CATS, "tokenId": one, "balance": "1"} for one in ids]
    return web.json_response({"ownedNfts": tokens, "totalCount": 9, "pageKey": key})


def test_every_evm_chain_has_its_network() -> None:
    assert {key for key, chain in CHAINS.items() if chain.alchemy} == {
        key for key, chain in CHAINS.items() if chain.family == "evm"
    }


async def test_the_list_is_read_page_by_page(alchemy: Alchemy, server: Wire) -> None:
    answers = [page("1", "2", key="a=/b"), page("3")]
    server.says(lambda: answers.pop(0))
    found = await alchemy.account_nfts("base", OWNER)
    assert found.items == tuple(AccountItem(CATS, one) for one in "123")
    assert server.asked[0].path.split("?")[0] == "/base-mainnet/nft/v3/key%2F1/getNFTsForOwner"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.json_response({}), ProviderConfused),
        (web.json_response({"ownedNfts": [{}]}), ProviderConfused),
        (web.json_response({"ownedNfts": None}), ProviderConfused),
        (web.json_response({"ownedNfts": [], "pageKey": "again"}), ProviderConfused),
        (web.json_response({"error": {"message": "no"}}, status=401), Unauthorized),
        (web.json_response({"error": {"message": "App is inactive"}}, status=403), Unauthorized),
        (web.json_response({"error": {"message": "no"}}, status=429), ProviderBusy),
        (web.json_response({"error": {"message": "no"}}, status=500), ProviderDown),
    ],
)
async def test_what_is_no_list_is_an_error(
    alchemy: Alchemy, server: Wire, answer: web.Response, kind: type[ProviderError]
) -> None:
    told = answer.body
    assert isinstance(told, bytes)
    server.says(lambda: web.Response(body=told, status=answer.status, content_type="application/json"))
    with pytest.raises(kind) as raised:
        await alchemy.account_nfts("base", OWNER)
    assert "key" not in str(raised.value).replace("API key", "")


def owners(*held: tuple[str, ...], key: str | None = None) -> web.Response:
    listed = [
        {"ownerAddress": OWNER, "tokenBalances": [{"tokenId": one, "balance": "1"} for one in ids]} for ids in held
    ]
    return web.json_response({"owners": listed, "pageKey": key})


async def test_a_collections_tokens_are_read_page_by_page(alchemy: Alchemy, server: Wire) -> None:
    answers = [owners(("1", "0x2"), ("0003",), key="a=/b"), owners(("4",), ())]
    server.says(lambda: answers.pop(0))
    assert await alchemy.contract_tokens("base", CATS, 4) == {1, 2, 3, 4}
    assert [one.path.partition("&pageKey=")[::2] for one in server.asked] == [
        (f"/base-mainnet/nft/v3/key%2F1/getOwnersForContract?contractAddress={CATS}&withTokenBalances=true", end)
        for end in ("", "a%3D%2Fb")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        web.json_response({}),
        web.json_response({"owners": ["0x00"], "pageKey": None}),
        web.json_response({"owners": [{"ownerAddress": OWNER}], "pageKey": None}),
        owners(("cat",)),
        owners(("-1",)),
        owners(("0x1" + 64 * "0",)),
        owners(("1", "2", "3")),
        owners(("1",), key="again"),
    ],
    ids=["nothing", "no balances", "no tokens", "no number", "negative", "too large", "too many", "no end"],
)
async def test_a_list_of_owners_that_cannot_be_read_is_an_error(
    alchemy: Alchemy, server: Wire, answer: web.Response
) -> None:
    told = answer.body
    assert isinstance(told, bytes)
    server.says(lambda: web.Response(body=told, content_type="application/json"))
    with pytest.raises(ProviderConfused):
        await alchemy.contract_tokens("base", CATS, 2)
    assert len(server.asked) <= 20


async def test_a_chain_without_the_index_has_no_list_of_owners(alchemy: Alchemy, server: Wire) -> None:
    with pytest.raises(ProviderRefused):
        await alchemy.contract_tokens("solana", CATS, 2)
    assert server.asked == []


async def test_a_month_that_is_used_up_is_no_wrong_key_and_is_not_asked_for_again_and_again(
    alchemy: Alchemy, server: Wire
) -> None:
    body = {"error": {"message": "Monthly capacity limit exceeded. Visit the dashboard to upgrade."}}
    server.says(web.json_response(body, status=403))
    for _ in range(3):
        with pytest.raises(ProviderBusy) as raised:
            await alchemy.account_nfts("base", OWNER)
        assert (raised.value.retry_after or 0) > 60
    assert len(server.asked) == 1


async def test_a_chain_that_it_does_not_have_is_not_asked_for(alchemy: Alchemy, server: Wire) -> None:
    with pytest.raises(ProviderRefused):
        await alchemy.account_nfts("solana", OWNER)
    assert server.asked == []


@dataclass
class Lists:
    """An indexer that lists these tokens, or fails."""

    ids: tuple[str, ...] | None = ()
    source: str = "An indexer"

    async def account_nfts(self, chain: str, address: str) -> "Lists":
        if self.ids is None:
            raise ProviderDown("An indexer", "no answer")
        return self

    @property
    def items(self) -> list[AccountItem]:
        return [AccountItem(CATS, one) for one in self.ids or ()]


@pytest.mark.parametrize(
    ("lists", "ids", "whole", "alone"),
    [
        ((Lists(), Lists()), [], True, ""),
        ((Lists(("1",)), Lists(("1", "2"))), [1, 2], True, ""),
        ((Lists(("1",)), Lists(None)), [1], False, ""),
        ((Lists(), Lists(None)), None, False, ""),
        ((Lists(None), Lists()), None, False, ""),
        ((Lists(None), Lists(("2",))), [2], False, ""),
        ((Lists(),), [], True, "An indexer"),
        ((Lists(("2",)),), [2], True, "An indexer"),
        ((Lists(None),), None, False, ""),
        ((), None, False, ""),
    ],
)
async def test_lists_add_up_and_neither_a_failure_nor_a_single_list_is_a_nothing(
    lists: tuple[Lists, ...], ids: list[int] | None, whole: bool, alone: str
) -> None:
    found = await listing(lists, "base", OWNER)
    if ids is None:
        assert isinstance(found, str)
    else:
        assert found == Listed(tuple((bytes.fromhex(CATS[2:]), one) for one in ids), whole, alone)


async def test_the_sandbox_lists_what_its_people_have(sandbox_url: str) -> None:
    client = Alchemy(f"{sandbox_url}/alchemy/{{network}}/nft/v3", "sandbox-alchemy-key", deadline=5.0)
    stranger = Alchemy(f"{sandbox_url}/alchemy/{{network}}/nft/v3", "another", deadline=5.0)
    async with httpx.AsyncClient(base_url=sandbox_url, timeout=30) as control:
        world: dict[str, Any] = (await control.get("/control/world")).json()
        dave = next(one for one in world["users"] if one["username"] == "dave")["wallets"]["evm"].lower()
        held = {
            (one["contract"].lower(), token["id"])
            for one in world["chains"]["polygon"]["collections"]
            # A token listed under a staking contract is not one of its own tokens.
            if not one["standard"].startswith("Staking:")
            for token in one["tokens"]
            if dave in token["owners"]
        }
        found = await client.account_nfts("polygon", dave)
        assert held
        assert held <= {(one.contract, one.token_id) for one in found.items}
        with pytest.raises(Unauthorized):
            await stranger.account_nfts("polygon", dave)
        for kind, fault in (("429", ProviderBusy), ("malformed", ProviderConfused)):
            await control.post("/control/faults", json={"target": "alchemy", "kind": kind, "seconds": 60})
            one = Alchemy(f"{sandbox_url}/alchemy/{{network}}/nft/v3", "sandbox-alchemy-key", deadline=5.0)
            with pytest.raises(fault):
                await one.account_nfts("polygon", dave)
            await one.close()
        await control.post("/control/faults", json={"target": "alchemy", "kind": "empty", "seconds": 60})
        assert (await client.account_nfts("polygon", dave)).items == ()
        await control.delete("/control/faults")
    await client.close()
    await stranger.close()
