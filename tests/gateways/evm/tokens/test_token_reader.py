"""Which tokens owners hold, from a real node: everything certain and nothing else, whatever contracts do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import LARGEST_ID, TokenHints, TokenSheet
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError
from tests.gateways.evm_lab import HOSTILE, Front, address, anvil, deploy, rpc, without_override
from tests.gateways.token_lab import ANVIL, HOLDS_TWO, collection, mint, move, proxy, send

LISTED, PLAIN, MANY, BEHIND, TWIN = (address(n) for n in range(1, 6))
ANN, BEN, CAT, NOBODY = (address(100 + n) for n in range(4))
OWNERS = [ANN, BEN, CAT, NOBODY]
HUGE = LARGEST_ID - 1


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """ERC-721 with and without enumeration, an ERC-1155, and a proxy before a plain ERC-721."""

    async def build(url: str) -> None:
        await collection(url, LISTED, "ERC721Enumerable")
        await collection(url, PLAIN, "ERC721")
        await collection(url, MANY, "ERC1155")
        await collection(url, BEHIND, "ERC721")
        await proxy(url, TWIN, BEHIND)
        for contract in (LISTED, PLAIN, TWIN):
            for owner, token in ((ANN, 1), (ANN, 2), (BEN, 3), (ANN, HUGE), (CAT, 5)):
                await mint(url, contract, owner, token)
            await move(url, contract, ANN, BEN, 2)
            await send(url, CAT, contract, "burn(uint256)", 5)
        for owner, token, amount in ((ANN, 1, 4), (ANN, 7, 1), (BEN, 7, 3), (BEN, HUGE, 1), (CAT, 9, 2)):
            await mint(url, MANY, owner, token, amount)
        await send(url, CAT, MANY, "burn(address,uint256,uint256)", CAT, 9, 2)

    with anvil(*ANVIL) as url:
        asyncio.run(build(url))
        yield url


@pytest.fixture
async def chains(end: Front) -> AsyncIterator[EvmChains]:
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"base": [end.url]}, request_seconds=3.0, deadline=6.0))
        stack.push_async_callback(made.close)
        yield made


def sure(sheet: TokenSheet) -> dict[str, dict[str, int]]:
    """Return what each owner holds, after checking that nothing is unknown."""
    assert sheet.unsure == {}
    return {owner: dict(sheet.of(owner)) for owner in OWNERS if sheet.of(owner)}


ALL_721 = {ANN: {"1": 1, str(HUGE): 1}, BEN: {"2": 1, "3": 1}}


async def test_an_enumerable_collection_tells_every_token(chains: EvmChains) -> None:
    sheet = await chains.tokens("base", LISTED, OWNERS)
    assert sure(sheet) == ALL_721
    assert (sheet.chain, sheet.contract, sheet.endpoint, sheet.source) == ("base", LISTED, 0, "Base node 1")
    assert sheet.block == (await chains.head("base")).block


async def test_known_tokens_are_verified_and_counted_against_the_balance(chains: EvmChains) -> None:
    known = {ANN: TokenHints(frozenset({"1", "2", str(HUGE)})), BEN: TokenHints(frozenset({"2", "3"}))}
    for contract in (PLAIN, TWIN):
        assert sure(await chains.tokens("base", contract, OWNERS, trails=known)) == ALL_721


@pytest.mark.parametrize("contract", [LISTED, PLAIN, TWIN])
async def test_exact_ids_are_asked_directly_and_a_burnt_or_unborn_one_is_nobodys(
    chains: EvmChains, end: Front, contract: str
) -> None:
    assert sure(await chains.tokens("base", contract, OWNERS, token_ids=["2", "5", "77"])) == {BEN: {"2": 1}}
    assert sure(await chains.tokens("base", contract, OWNERS, token_ids=["1-3"])) == {
        ANN: {"1": 1}, BEN: {"2": 1, "3": 1},
    }  # fmt: skip
    calls = end.methods().count("eth_call")
    assert sure(await chains.tokens("base", contract, [NOBODY, CAT], token_ids=["77"])) == {}
    assert end.methods().count("eth_call") - calls == 2


async def test_ids_of_many_amounts_are_asked_directly(chains: EvmChains) -> None:
    wanted = ["1", "7-9", str(HUGE)]
    assert sure(await chains.tokens("base", MANY, OWNERS, token_ids=wanted)) == {
        ANN: {"1": 4, "7": 1}, BEN: {"7": 3, str(HUGE): 1},
    }  # fmt: skip


@pytest.mark.parametrize("contract", [LISTED, PLAIN])
async def test_a_range_of_millions_is_never_expanded(chains: EvmChains, end: Front, contract: str) -> None:
    known = {owner: TokenHints(frozenset({"1", "2", "3", str(HUGE)})) for owner in (ANN, BEN)}
    sheet = await chains.tokens("base", contract, OWNERS, token_ids=["2-5000000", "3"], trails=known)
    assert sure(sheet) == {BEN: {"2": 1, "3": 1}}
    assert end.bytes < 100_000


async def test_the_answers_are_the_same_without_state_override(chains: EvmChains, end: Front) -> None:
    end.change = without_override
    known = {ANN: TokenHints(frozenset({"1", "2", str(HUGE)})), BEN: TokenHints(frozenset({"2", "3"}))}
    assert sure(await chains.tokens("base", LISTED, OWNERS)) == ALL_721
    assert sure(await chains.tokens("base", PLAIN, OWNERS, trails=known)) == ALL_721
    assert sure(await chains.tokens("base", PLAIN, OWNERS, token_ids=["2", "5"])) == {BEN: {"2": 1}}
    assert sure(await chains.tokens("base", MANY, [BEN], token_ids=["7"])) == {BEN: {"7": 3}}


@pytest.mark.parametrize("change", [None, without_override])
async def test_a_contract_that_returns_a_megabyte_spoils_only_itself(
    chains: EvmChains, end: Front, node: str, change: Any
) -> None:
    bad = address(5300)
    await deploy(node, bad, HOLDS_TWO.format(rest="1048576 0 RETURN"))
    end.change = change
    sheet = await chains.tokens("base", bad, [ANN, BEN], token_ids=["1-200"])
    assert (dict(sheet.held), set(sheet.unsure)) == ({}, {ANN, BEN})
    assert sure(await chains.tokens("base", PLAIN, OWNERS, token_ids=["2"])) == {BEN: {"2": 1}}


def answered(method: str, result: Any) -> Any:
    return lambda call, true: {**true, "result": result} if call["method"] == method else true


def zeros(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    if call["method"] != "eth_call" or "result" not in true:
        return true
    return {**true, "result": "0x" + "0" * (len(true["result"]) - 2)}


@pytest.mark.parametrize(
    "lie",
    [
        zeros, answered("eth_call", "0x"), answered("eth_call", None), answered("eth_call", "0x" + "0" * 64),
        answered("eth_chainId", "0x1"), answered("eth_getBlockByNumber", None),
        answered("eth_getBlockByNumber", {"number": "0x5", "timestamp": "0x65000000"}),
    ],
)  # fmt: skip
async def test_a_lying_node_is_refused_and_the_next_one_asked(node: str, end: Front, lie: Any) -> None:
    end.change = lie
    both = EvmChains(NodePool({"base": [end.url, node]}, request_seconds=3.0, deadline=6.0))
    try:
        for contract, wanted, expected in ((LISTED, [], ALL_721), (MANY, ["7"], {ANN: {"7": 1}, BEN: {"7": 3}})):
            with pytest.raises(ProviderError):
                await both.tokens("base", contract, OWNERS, token_ids=wanted, at=ReadPoint(endpoint=0))
            sheet = await both.tokens("base", contract, OWNERS, token_ids=wanted)
            assert (sure(sheet), sheet.endpoint) == (expected, 1)
    finally:
        await both.close()


async def test_a_read_is_never_from_before_a_block_that_is_known(chains: EvmChains, node: str) -> None:
    block = (await chains.head("base")).block
    with pytest.raises(ProviderConfused):
        await chains.tokens("base", LISTED, OWNERS, at=ReadPoint(not_before_block=block + 9))
    await rpc(node, "anvil_mine", "0x9")
    assert (await chains.tokens("base", LISTED, OWNERS, at=ReadPoint(not_before_block=block + 9))).block >= block + 9


@pytest.mark.parametrize("kind", list(HOSTILE))
async def test_a_contract_that_only_counts_is_unsure_and_never_empty(chains: EvmChains, node: str, kind: str) -> None:
    bad = address(5000 + list(HOSTILE).index(kind))
    rest = HOSTILE[kind].replace("again:", "loop:").replace("@again", "@loop")
    await deploy(node, bad, HOLDS_TWO.format(rest=rest))
    for asked in ([], ["7"], ["1-9000000"]):
        sheet = await chains.tokens("base", bad, [ANN, BEN], token_ids=asked)
        assert not sheet.held
        assert set(sheet.unsure) == {ANN, BEN}, asked


LIES = {
    "everything is the first owner's, more than the balance": f"{ANN} 0 MSTORE 32 0 RETURN",
    "a word of ones": "0 NOT 0 MSTORE 32 0 RETURN",
}


@pytest.mark.parametrize("kind", list(LIES))
async def test_a_contract_that_contradicts_itself_is_not_believed(chains: EvmChains, node: str, kind: str) -> None:
    bad = address(5100 + list(LIES).index(kind))
    await deploy(node, bad, HOLDS_TWO.format(rest=LIES[kind]))
    sheet = await chains.tokens("base", bad, [ANN, BEN], token_ids=["1-6"])
    assert not sheet.held
    assert ANN in sheet.unsure


async def test_no_contract_and_one_that_is_no_collection_are_unsure(chains: EvmChains, node: str) -> None:
    await deploy(node, address(5200), HOSTILE["reverts"])
    for contract in (address(7777), address(5200)):
        sheet = await chains.tokens("base", contract, [ANN], token_ids=["1"])
        assert (dict(sheet.held), set(sheet.unsure)) == ({}, {ANN})


async def test_what_is_found_helps_the_next_look(chains: EvmChains) -> None:
    sheet = await chains.tokens("base", LISTED, OWNERS)
    assert sheet.trails[BEN].ids == {"2", "3"}
    assert NOBODY not in sheet.trails


async def test_a_bad_address_or_id_is_the_callers_mistake(chains: EvmChains) -> None:
    for contract, owner, asked in (("0x12", ANN, []), (PLAIN, "vitalik.eth", []), (PLAIN, ANN, ["9-3"])):
        with pytest.raises(ValueError):
            await chains.tokens("base", contract, [owner], token_ids=asked)
    with pytest.raises(ProviderDown):
        await chains.tokens("polygon", PLAIN, [ANN])
