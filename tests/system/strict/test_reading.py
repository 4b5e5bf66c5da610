"""The product's readers with nodes that have the limits of real plans: all is read, and each limit is met once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenSheet
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.transfer_logs import TransferLogs
from sandbox.chains.plans import PLANS
from tests.support.balances import balances

STRANGER = "0x" + "5e" * 20
FRONTS = ("rpc", "rpc2")
UNFINISHED, IN_FULL_SECONDS = "its history has not been searched in full yet", 240
SEEDED = 3
"""Each chain's first collections, one of each standard; the rest are those of other tests in the same sandbox."""


class Outside:
    """The sandbox's control, and the requests that the nodes received."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self._session = url, session

    async def collections(self, chain: str) -> list[dict[str, Any]]:
        async with self._session.get(f"{self.url}/control/world") as answer:
            return (await answer.json())["chains"][chain]["collections"]

    async def control(self, path: str, **body: Any) -> Any:
        async with self._session.post(f"{self.url}/control/{path}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


@pytest.fixture
async def outside(sandbox_url: str) -> AsyncIterator[Outside]:
    async with aiohttp.ClientSession() as session:
        yield Outside(sandbox_url, session)


@pytest.fixture
async def pool(sandbox_url: str) -> AsyncIterator[NodePool]:
    made = NodePool({chain: [f"{sandbox_url}/{front}/{chain}" for front in FRONTS] for chain in PLANS})
    yield made
    await made.close()


@pytest.fixture
async def chains(pool: NodePool) -> AsyncIterator[EvmChains]:
    made = EvmChains(pool)
    yield made
    await made.close()


async def in_full(chains: EvmChains, chain: str, contract: str, owners: list[str], at: ReadPoint) -> TokenSheet:
    """Return the owners' tokens once their history is searched in full.

    On a busy machine one read has no time for that, and the next one goes on where it ended, as in the product.
    """
    sheet = await chains.tokens(chain, contract, owners, at=at)
    async with asyncio.timeout(IN_FULL_SECONDS):
        while UNFINISHED in sheet.unsure.values():
            sheet = await chains.tokens(chain, contract, owners, trails=sheet.trails, at=at)
    return sheet


def owned(collection: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the chain's holdings as owner → token → amount."""
    found: dict[str, dict[str, int]] = {}
    for token in collection["tokens"]:
        for owner, amount in token["owners"].items():
            found.setdefault(owner.lower(), {})[token["id"]] = int(amount)
    return found


@pytest.mark.parametrize("endpoint", [0, 1])
@pytest.mark.parametrize("chain", PLANS)
async def test_every_standard_is_read_from_every_kind_of_node(
    outside: Outside, chains: EvmChains, chain: str, endpoint: int
) -> None:
    seeded = (await outside.collections(chain))[:SEEDED]
    assert {collection["standard"] for collection in seeded} == {"ERC721", "ERC721Enumerable", "ERC1155"}
    for collection in seeded:
        contract, holders = collection["contract"], owned(collection)
        wanted = [token["id"] for token in collection["tokens"]]
        assert await chains.contract_standard(chain, contract) == collection["standard"]
        sheet = await chains.tokens(
            chain, contract, [*holders, STRANGER], token_ids=wanted, at=ReadPoint(endpoint=endpoint)
        )
        assert not sheet.unsure, (collection["standard"], sheet.unsure)
        assert {owner: dict(tokens) for owner, tokens in sheet.held.items() if tokens} == holders
        whole = await in_full(chains, chain, contract, [*holders, STRANGER], ReadPoint(endpoint=endpoint))
        assert not whole.unsure, (collection["standard"], whole.unsure)
        assert {owner: dict(tokens) for owner, tokens in whole.held.items() if tokens} == holders
        if collection["standard"] != "ERC1155":
            read = await balances(chains, chain, [contract], [*holders, STRANGER], at=ReadPoint(endpoint=endpoint))
            assert dict(read.holders(contract)) == {who: len(tokens) for who, tokens in holders.items()}
            assert read.unknown(contract) == 0


@pytest.mark.parametrize("chain", PLANS)
async def test_a_crowd_of_owners_is_read_in_what_the_node_takes(
    outside: Outside, chains: EvmChains, chain: str
) -> None:
    collection = (await outside.collections(chain))[0]
    crowd = [f"0x{0xABC000 + n:040x}" for n in range(700)]
    holders = owned(collection)
    read = await balances(chains, chain, [collection["contract"]], [*holders, *crowd], at=ReadPoint(endpoint=0))
    assert read.unknown(collection["contract"]) == 0
    assert dict(read.holders(collection["contract"])) == {who: len(tokens) for who, tokens in holders.items()}
    some = crowd[:200]
    sheet = await in_full(chains, chain, collection["contract"], [*holders, *some], ReadPoint(endpoint=0))
    assert not sheet.unsure


@pytest.mark.parametrize("endpoint", [0, 1])
@pytest.mark.parametrize("chain", PLANS)
async def test_a_long_stretch_is_followed_in_pieces_that_the_node_gives(
    outside: Outside, pool: NodePool, chain: str, endpoint: int
) -> None:
    transfers = TransferLogs(pool)
    collection = next(one for one in await outside.collections(chain) if one["standard"] == "ERC721")
    before = (await transfers.head(chain, endpoint)).block
    token = str(10**6 + endpoint)
    made = await outside.control(f"chains/{chain}/mint", contract=collection["contract"], token_id=token, to=STRANGER)
    await outside.control(f"chains/{chain}/mine", blocks=60)
    head = (await transfers.head(chain, endpoint, made["block"])).block
    first, found = max(0, before - 800), list[str]()
    while first <= head:
        read = await transfers.of_contracts(chain, [collection["contract"]], first, head, endpoint)
        found += [one.receiver for one in read.transfers if one.block == made["block"]]
        first = read.last + 1
    assert found == [STRANGER]
    if not PLANS[chain].needs_address:
        assert transfers.for_wallets(chain) == [0, 1]
        read = await transfers.of_wallets(chain, [STRANGER], head - 200, head, endpoint)
        assert (made["block"], STRANGER) in {(one.block, one.receiver) for one in read.transfers}
