"""Coins in bulk: exact amounts of any size, the chain's own coin, and their cost beside NFTs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.balance_sheet import NATIVE, NATIVE_ADDRESS, BalanceSheet, Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.coin_facts import CoinFacts
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderConfused, ProviderError
from tests.gateways.evm.balances.test_chains_in_bulk import ARTEFACTS
from tests.gateways.evm.test_client import LIES
from tests.gateways.evm_lab import COLLECTION, HOSTILE, Front, address, anvil, deploy, front, rpc, without_override

MULTICALL3 = CHAINS["base"].multicall3
# balanceOf(address) is the storage slot of that address; totalSupply() and decimals() are slots 1 and 2; name() and
# symbol() are slot 3 as bytes32.
COIN = """
    0 CALLDATALOAD 224 SHR
    DUP1 0x18160ddd EQ @supply JUMPI
    DUP1 0x313ce567 EQ @decimals JUMPI
    DUP1 0x06fdde03 EQ @name JUMPI
    DUP1 0x95d89b41 EQ @name JUMPI
    4 CALLDATALOAD SLOAD 0 MSTORE 32 0 RETURN
supply: 1 SLOAD 0 MSTORE 32 0 RETURN
decimals: 2 SLOAD 0 MSTORE 32 0 RETURN
name: 3 SLOAD 0 MSTORE 32 0 RETURN
"""
NAME = int.from_bytes(b"Harbour Dollar".ljust(32, b"\0"), "big")
DOLLAR, GOLD, DUST, CATS, MUTE = (address(number) for number in range(1, 6))
AMOUNTS = {
    address(500): 1,
    address(501): 253,
    address(502): 254,
    address(503): 10**6,
    address(504): 123_456_789_012_345_678_901_234,
    address(505): 2**128 - 3,
    address(506): 2**128 - 2,
    address(507): 2**128 - 1,
    address(508): 2**200 + 1,
    address(509): 2**256 - 2,
}
OWNERS = [*AMOUNTS, address(600)]
MANY = [address(10_000 + number) for number in range(10_000)]


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    async def build(url: str) -> None:
        slots = {int(owner, 16): amount for owner, amount in AMOUNTS.items()}
        await deploy(url, DOLLAR, COIN, {**slots, 1: 2**255, 2: 6, 3: NAME})
        await deploy(url, GOLD, COIN, {int(MANY[0], 16): 10**30, 1: 10**30, 2: 30})
        await deploy(url, DUST, COIN, {2: 77, 3: NAME})
        await deploy(url, MUTE, HOSTILE["returns nothing"])
        await deploy(url, CATS, COLLECTION, {int(address(500), 16): 3})
        for number, owner in enumerate(OWNERS[:3]):
            await rpc(url, "anvil_setBalance", owner, hex(10**18 * (number + 1) + 7))

    with anvil("--gas-limit", "50000000") as url:
        asyncio.run(build(url))
        yield url


@pytest.fixture
async def ends(node: str) -> AsyncIterator[tuple[Front, Front]]:
    await rpc(node, "anvil_setCode", MULTICALL3, "0x")
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as one, front(node) as other:
        yield one, other


@pytest.fixture
async def chains(ends: tuple[Front, Front]) -> AsyncIterator[EvmChains]:
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"base": [one.url for one in ends]}, request_seconds=5.0, deadline=20.0))
        stack.push_async_callback(made.close)
        yield made


async def read(chains: EvmChains, owners: list[str] = OWNERS, at: ReadPoint = NEWEST) -> BalanceSheet:
    """Read the dollar, the chain's own coin and an NFT collection in one question."""
    segment = Segment((DOLLAR, NATIVE, CATS), tuple(owners), frozenset({DOLLAR, NATIVE}))
    (sheet,) = await chains.balances("base", [segment], at=at)
    return sheet


def check(sheet: BalanceSheet) -> None:
    assert {owner: sheet.amount(DOLLAR, owner) for owner in OWNERS} == {**AMOUNTS, OWNERS[-1]: 0}
    native = [sheet.amount(NATIVE, owner) for owner in OWNERS]
    assert native[:4] == [10**18 + 7, 2 * 10**18 + 7, 3 * 10**18 + 7, 0]
    assert [sheet.amount(CATS, owner) for owner in OWNERS[:2]] == [3, 0]
    assert sheet.unknown(NATIVE) == sheet.unknown(DOLLAR) == 0


async def test_amounts_are_exact_whatever_their_size(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    check(await read(chains))
    assert ends[0].methods().count("eth_call") <= 3, "coins, the NFTs, and what fills a cell once more"
    check(await read(chains, at=ReadPoint(1)))


async def test_the_own_coin_is_read_at_the_block_that_is_named(chains: EvmChains, node: str) -> None:
    await rpc(node, "anvil_mine", "0x20")
    before = await read(chains)
    await rpc(node, "anvil_setBalance", OWNERS[5], hex(5))
    await rpc(node, "anvil_mine", "0x1")
    assert (await read(chains)).amount(NATIVE, OWNERS[5]) == 5
    settled = await read(chains, at=ReadPoint(0, 0, settled=True))
    assert settled.block < before.block + 1
    assert settled.amount(NATIVE, OWNERS[5]) == 0


async def test_coins_cost_about_as_much_as_nfts(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    coins = (DOLLAR, GOLD, NATIVE)
    await read(chains, MANY[:500])  # learns how much the node accepts

    async def requests(segment: Segment) -> int:
        before = ends[0].requests
        await chains.balances("base", [segment])
        return ends[0].requests - before

    as_nfts = await requests(Segment((DOLLAR, GOLD, CATS), tuple(MANY)))
    as_coins = await requests(Segment(coins, tuple(MANY), frozenset(coins)))
    assert as_coins <= 1.5 * as_nfts
    assert as_coins <= 0.3 * len(MANY) * len(coins) / 1_000


async def test_multicall_tells_the_same(chains: EvmChains, ends: tuple[Front, Front], node: str) -> None:
    await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])
    await rpc(node, "anvil_mine", "0x1")
    for end in ends:
        end.change = without_override
    check(await read(chains))


async def test_a_batch_tells_the_same(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    for end in ends:
        end.change = without_override
    check(await read(chains))
    assert "eth_getBalance" in ends[0].methods()


async def test_a_node_that_says_zero_to_everything_is_not_believed(
    chains: EvmChains, ends: tuple[Front, Front]
) -> None:
    def zeros(call: dict[str, Any], true: Any) -> Any:
        refused = without_override(call, true)
        if refused is not true:
            return refused
        if call["method"] == "eth_call":
            return {**true, "result": "0x" + 64 * "0"}
        return {**true, "result": "0x0"} if call["method"] == "eth_getBalance" else true

    for end in ends:
        end.change = zeros
    with pytest.raises(ProviderError):
        await read(chains, MANY[:50])


async def test_a_coin_says_what_it_is_called_and_how_many_decimals_it_has(chains: EvmChains) -> None:
    assert await chains.coin("base", DOLLAR) == CoinFacts("Harbour Dollar", "Harbour Dollar", 6)
    own = await chains.coin("base", NATIVE)
    assert own is not None
    assert (own.decimals, own.title) == (18, "ETH")


async def test_what_a_coin_says_of_its_decimals_is_not_taken_for_more_than_it_is(chains: EvmChains) -> None:
    lying, silent = await chains.coin("base", DUST), await chains.coin("base", MUTE)
    assert lying is not None
    assert (lying.stated, lying.decimals) == (77, None)
    assert silent == CoinFacts("", "", None)


async def test_decimals_that_nodes_differ_about_are_not_believed(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    def other(call: dict[str, Any], true: Any) -> Any:
        asks = call["method"] == "eth_call" and call["params"][0].get("data") == "0x313ce567"
        return {**true, "result": f"0x{8:064x}"} if asks else true

    ends[1].change = other
    with pytest.raises(ProviderConfused, match="differ about the decimals"):
        await chains.coin("base", DOLLAR)


async def test_a_node_of_zeros_does_not_make_a_coin_without_decimals(
    chains: EvmChains, ends: tuple[Front, Front]
) -> None:
    def zeros(call: dict[str, Any], true: Any) -> Any:
        if call["method"] == "eth_call":
            return {**true, "result": "0x" + "0" * max(64, len(true.get("result", "0x")) - 2)}
        return true

    for end in ends:
        end.change = zeros
    with pytest.raises(ProviderConfused, match="nothing but zeros"):
        await chains.coin("base", DOLLAR)


async def test_nobody_is_where_the_own_coin_is_put(node: str) -> None:
    assert await rpc(node, "eth_getCode", NATIVE_ADDRESS, "latest") == "0x"


@pytest.mark.parametrize("lie", list(LIES))
@pytest.mark.parametrize("warm", [False, True], ids=["at first sight", "later"])
async def test_no_lie_of_the_nodes_reads_as_another_amount(
    chains: EvmChains, ends: tuple[Front, Front], lie: str, warm: bool
) -> None:
    """Whatever both nodes answer, an amount is the true one or unknown."""
    if warm:
        check(await read(chains))
    for end in ends:
        end.change = LIES[lie]
    try:
        sheet = await read(chains)
    except ProviderError:
        return
    for owner in OWNERS:
        assert sheet.amount(DOLLAR, owner) in {None, AMOUNTS.get(owner, 0)}
    assert [sheet.amount(NATIVE, owner) for owner in OWNERS[:1]] in ([None], [10**18 + 7])
