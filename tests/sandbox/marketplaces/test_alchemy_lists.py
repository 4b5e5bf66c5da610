"""Alchemy's list of an account's tokens: which collections it is asked for."""

from typing import Any

import httpx

from sandbox.marketplaces.alchemy import KEY
from tests.sandbox.chains.nodes import MELLOW_CATS, STRANGER, Nodes


def ask(nodes: Nodes, *contracts: str, **query: Any) -> httpx.Response:
    asked = {"owner": nodes.wallet("carol"), "withMetadata": "false", "contractAddresses[]": contracts, **query}
    return nodes.http.get(f"/alchemy/base-mainnet/nft/v3/{KEY}/getNFTsForOwner", params=asked)


def test_an_account_is_listed_for_the_collections_that_are_named(nodes: Nodes) -> None:
    cats = nodes.collection(MELLOW_CATS)["contract"]
    everything = ask(nodes).json()
    contracts = {token["contractAddress"] for token in everything["ownedNfts"]}
    assert contracts > {cats}
    for named in ((cats,), (cats.upper().replace("0X", "0x"),), (STRANGER, cats)):
        found = ask(nodes, *named).json()
        assert found["ownedNfts"] == [one for one in everything["ownedNfts"] if one["contractAddress"] == cats]
        assert found["totalCount"] == len(found["ownedNfts"])
    assert ask(nodes, STRANGER).json()["ownedNfts"] == []


def test_more_than_45_collections_are_refused_and_so_is_what_is_no_address(nodes: Nodes) -> None:
    contracts = [f"0x{number:040x}" for number in range(1, 47)]
    assert ask(nodes, *contracts[:45]).status_code == 200
    assert ask(nodes, *contracts).status_code == 400
    for odd in ("mellow-cats", f"0x{'z' * 40}", f"0x{'²' * 40}"):
        assert ask(nodes, odd).status_code == 400, odd
        assert ask(nodes, owner=odd).status_code == 400, odd


def test_a_token_tells_its_standard_as_alchemy_names_it(nodes: Nodes) -> None:
    """`tokenType` of a contract is ERC721, ERC1155, NO_SUPPORTED_NFT_STANDARD or NOT_A_CONTRACT."""
    listed = {one["contract"]["tokenType"] for one in ask(nodes, withMetadata="true").json()["ownedNfts"]}
    standards = {one["standard"] for one in nodes.world()["chains"]["base"]["collections"]}
    assert "ERC721Enumerable" in standards
    assert listed == {"ERC721", "ERC1155"}
