"""Token metadata: from the contract's link to the traits, or the reason for having none."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web

from gateways.chains.metadata_traits import Trait, TraitList
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.token_records import EvmRecords, TokenRecord
from gateways.metadata import TokenMetadata
from gateways.transport.errors import NotThere, ProviderBusy, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.safe_fetch import Fetcher
from tests.gateways.evm_lab import HOSTILE, address, anvil, assemble, rpc
from tests.gateways.token_lab import ANVIL, collection, mint
from tests.gateways.wire import Wire

GOLD = TraitList((Trait("Fur", "Gold"),))
DOCUMENT = {"name": "Cat", "attributes": [{"trait_type": "Fur", "value": "Gold"}]}
NO_DATE = "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"
"""A date that raises OverflowError, not ValueError, when it is parsed."""
OWNER = address(7)
PLAIN, LISTED, MANY = address(101), address(102), address(103)


class Records:
    """A chain's answers about its tokens, set by a test."""

    def __init__(self, said: Mapping[str, TokenRecord] | ProviderError) -> None:
        self.said = said

    async def records(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> Mapping[str, TokenRecord]:
        if isinstance(self.said, ProviderError):
            raise self.said
        return self.said

    async def sample(self, chain: str, contract: str, most: int) -> Sequence[str]:
        return list(self.said)[:most] if isinstance(self.said, Mapping) else ()


@pytest.fixture
async def fetcher(server: Wire, patience: float) -> AsyncIterator[Fetcher]:
    client = Fetcher(agent="Tests", trusted=[server.url], deadline=patience)
    yield client
    await client.close()


def reader(fetcher: Fetcher, said: Mapping[str, TokenRecord] | ProviderError) -> TokenMetadata:
    return TokenMetadata(
        {"evm": Records(said)}, fetcher, ipfs_url="https://gw.example", arweave_url="https://ar.example"
    )


async def traits_of(fetcher: Fetcher, link: str) -> TraitList | ProviderError:
    return (await reader(fetcher, {"1": TokenRecord(link)}).traits("base", PLAIN, ["1"]))["1"]


async def test_a_links_document_tells_the_traits(fetcher: Fetcher, server: Wire) -> None:
    server.says(web.json_response(DOCUMENT))
    assert await traits_of(fetcher, f"{server.url}/1") == GOLD
    server.says(web.Response(body=b"\xef\xbb\xbf" + web.json_response(DOCUMENT).body))  # pyright: ignore[reportOperatorIssue]
    assert await traits_of(fetcher, f"{server.url}/1") == GOLD


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.Response(body=b'{"name": "'), ProviderConfused),
        (web.Response(body=b"<html>"), ProviderConfused),
        (web.Response(body=b"\xff\xfe"), ProviderConfused),
        (web.Response(body=b"[" * 200_000), ProviderConfused),
        (web.json_response({}), ProviderConfused),
        (web.json_response({"error": "no"}), ProviderConfused),
        (web.json_response(DOCUMENT | {"attributes": "Gold"}), ProviderConfused),
        (web.json_response(DOCUMENT, status=500), ProviderDown),
        (web.json_response(DOCUMENT, status=404), NotThere),
        (web.json_response(DOCUMENT, status=429), ProviderBusy),
        (web.json_response(DOCUMENT, status=429, headers={"Retry-After": NO_DATE}), ProviderBusy),
        ("close", ProviderDown),
        ("hang", ProviderDown),
    ],
)
async def test_what_is_broken_or_missing_is_unknown_with_the_reason(
    fetcher: Fetcher, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    found = await traits_of(fetcher, f"{server.url}/1")
    assert isinstance(found, ProviderError)
    assert type(found) is kind


async def test_each_token_has_its_own_answer(fetcher: Fetcher, server: Wire) -> None:
    server.says(web.json_response(DOCUMENT))
    said = {
        "1": TokenRecord(f"{server.url}/1"), "2": TokenRecord("http://127.0.0.1:1/"), "3": TokenRecord("nonsense"),
        "5": TokenRecord("", TraitList(())),
    }  # fmt: skip
    found = await reader(fetcher, said).traits("base", PLAIN, ["1", "2", "3", "4", "5"])
    assert found["1"] == GOLD
    assert found["5"] == TraitList(())
    assert {token: isinstance(told, ProviderError) for token, told in found.items()} == {
        "1": False, "2": True, "3": True, "4": True, "5": False,
    }  # fmt: skip


async def test_a_chain_that_does_not_answer_is_every_tokens_reason(fetcher: Fetcher) -> None:
    for said, chain in ((ProviderDown("Base (node 1)", "HTTP 500"), "base"), ({}, "solana")):
        found = await reader(fetcher, said).traits(chain, PLAIN, ["1", "2"])
        assert all(isinstance(told, ProviderDown) for told in found.values())
        assert found.keys() == {"1", "2"}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil(*ANVIL) as url:
        yield url


@pytest.fixture
async def records(node: str) -> AsyncIterator[EvmRecords]:
    pool = NodePool({"base": [node]})
    yield EvmRecords(pool)
    await pool.close()


async def test_links_are_read_from_both_standards_in_batches(records: EvmRecords, node: str) -> None:
    for contract, standard, amount in (
        (PLAIN, "ERC721", None),
        (LISTED, "ERC721Enumerable", None),
        (MANY, "ERC1155", 5),
    ):
        await collection(node, contract, standard)
        ids = [3, 4, 2**255, *range(20, 35)]
        for token in ids:
            await mint(node, contract, OWNER, token, amount)
        found = await records.records("base", contract, [*map(str, ids), "999", "-1", "x", str(2**256), "9" * 90])
        links = {token: record.link for token, record in found.items()}
        # The code was installed without its constructor, so the beginning of the link is missing.
        expected = {str(token): f"{contract}/{token}" for token in ids} | ({"999": f"{contract}/999"} if amount else {})
        assert links == expected, standard
    assert await records.sample("base", LISTED, 3) == ["3", "4", str(2**255)]
    assert await records.sample("base", LISTED, 40) == [str(token) for token in ids]
    assert await records.sample("base", PLAIN, 3) == []


@pytest.mark.parametrize("how", HOSTILE)
async def test_a_hostile_contract_tells_nothing_of_its_tokens(records: EvmRecords, node: str, how: str) -> None:
    contract = address(200)
    await rpc(node, "anvil_setCode", contract, "0x" + assemble(HOSTILE[how]).hex())
    await rpc(node, "anvil_mine", "0x1")
    assert await records.records("base", contract, ["1", "2"]) == {}


async def test_no_node_is_an_error_and_no_empty_answer() -> None:
    pool = NodePool({"base": ["http://127.0.0.1:9/"]}, request_seconds=0.5, deadline=1.0)
    for chain in ("base", "polygon"):
        with pytest.raises(ProviderDown):
            await EvmRecords(pool).records(chain, PLAIN, ["1"])
    await pool.close()
