"""Balances from a real node: the true ones, and under every fault unknown or an error, never a wrong zero."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from gateways.chains.balance_sheet import MOST, BalanceSheet, Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError, ProviderRefused
from tests.gateways.evm_lab import COLLECTION, HOSTILE, Front, address, anvil, deploy, front, rpc, without_override
from tests.gateways.wire import Wire
from tests.support.balances import balances

COOL, RARE, EMPTY = address(1), address(2), address(3)
OWNERS = [address(100 + n) for n in range(40)]
BIG = {address(900): 253, address(901): 254, address(902): 255, address(903): 2**64, address(904): 2**256 - 1}


def slots(factor: int) -> dict[int, int]:
    holdings = {owner: n % 5 * factor for n, owner in enumerate(OWNERS)} | BIG
    return {int(owner, 16): amount for owner, amount in holdings.items() if amount}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil() as url:
        yield url


@pytest.fixture(scope="module")
def world(node: str) -> str:
    """The node with two collections, and one of which nobody holds anything."""

    async def build() -> None:
        await deploy(node, COOL, COLLECTION, {0: int.from_bytes(b"Cool \x00Club".ljust(32, b"\0"), "big")} | slots(1))
        name = "№7 – O’Brien’s \u202e🐱".encode() + b"\xff"
        await deploy(
            node, RARE, COLLECTION, {0: int.from_bytes(name.ljust(32, b"\0"), "big"), 1: 0x780E9D63} | slots(2)
        )
        await deploy(node, EMPTY, COLLECTION, {1: 0xD9B67A26})

    asyncio.run(build())
    return node


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def ends(world: str, stack: AsyncExitStack) -> tuple[Front, Front]:
    """Two front ends of the same node, with a fresh block so that its head is not stale."""
    await rpc(world, "anvil_mine", "0x1")
    return await stack.enter_async_context(front(world)), await stack.enter_async_context(front(world))


@pytest.fixture
async def chains(ends: tuple[Front, Front], stack: AsyncExitStack) -> EvmChains:
    made = EvmChains(NodePool({"base": [one.url for one in ends]}, request_seconds=2.0, deadline=20.0))
    stack.push_async_callback(made.close)
    return made


def check(sheet: BalanceSheet) -> None:
    """Check that every balance is as it was set up."""
    for n, owner in enumerate(OWNERS):
        assert sheet.amount(COOL, owner) == n % 5
        assert sheet.amount(RARE.upper().replace("0X", "0x"), owner) == n % 5 * 2
        assert sheet.amount(EMPTY, owner) == 0


async def read(chains: EvmChains, at: ReadPoint = NEWEST) -> BalanceSheet:
    return await balances(chains, "base", [COOL, RARE, EMPTY], OWNERS, at)


async def test_balances_are_true_at_one_named_block(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    sheet = await read(chains)
    check(sheet)
    assert (sheet.chain, sheet.endpoint, sheet.source) == ("base", 0, "Base node 1")
    assert datetime.now(UTC) - sheet.block_time < timedelta(minutes=2)
    assert sheet.block == (await chains.head("base")).block
    assert dict(sheet.holders(COOL)) == {owner: n % 5 for n, owner in enumerate(OWNERS) if n % 5}
    assert sheet.unknown(COOL) == 0
    assert ends[0].methods().count("eth_call") == 1, "120 checks are one call"
    assert ends[1].methods() == ["eth_blockNumber"], "compared with, and not asked"


async def test_each_segment_has_a_sheet_of_its_own_at_the_same_block(
    chains: EvmChains, ends: tuple[Front, Front]
) -> None:
    segments = [
        Segment((COOL,), (OWNERS[3], OWNERS[1])),
        Segment((RARE, COOL), tuple(OWNERS[5:9])),
        Segment((COOL,), ()),
        Segment((), (OWNERS[3],)),
        Segment(("0x" + "00" * 19 + "01", RARE), (*BIG, OWNERS[3])),
    ]
    sheets = await chains.balances("base", segments)
    for segment, sheet in zip(segments, sheets, strict=True):
        for n, owner in enumerate(OWNERS):
            asked = owner in segment.owners
            assert sheet.amount(COOL, owner) == (n % 5 if asked and COOL in segment.contracts else None)
            assert sheet.amount(RARE, owner) == (n % 5 * 2 if asked and RARE in segment.contracts else None)
    assert [sheets[4].amount(RARE, owner) for owner in BIG] == [253, 254, 255, 2**64, MOST]
    assert sheets[4].unknown("0x" + "00" * 19 + "01") == len(BIG) + 1, "a precompile is not a contract"
    assert {(sheet.block, sheet.endpoint) for sheet in sheets} == {(sheets[0].block, 0)}
    assert ends[0].methods().count("eth_getBlockByNumber") == 1, "one head for all"
    assert await chains.balances("base", []) == []


async def test_large_amounts_are_exact_up_to_256_bits(chains: EvmChains) -> None:
    sheet = await balances(chains, "base", [COOL], list(BIG))
    found = [sheet.amount(COOL, owner) for owner in BIG]
    assert found == [253, 254, 255, 2**64, MOST]


async def test_what_was_not_asked_is_unknown(chains: EvmChains) -> None:
    sheet = await read(chains)
    assert sheet.amount(COOL, address(99)) is None
    assert sheet.amount(address(99), OWNERS[0]) is None
    assert (await balances(chains, "base", [], OWNERS)).amount(COOL, OWNERS[1]) is None


async def test_a_bad_address_is_the_callers_mistake(chains: EvmChains) -> None:
    for contract in ("0x12", "vitalik.eth", "a" * 42):
        with pytest.raises(ValueError):
            await balances(chains, "base", [contract], OWNERS)


async def test_a_chain_without_a_node_and_one_that_is_in_no_table_have_no_answer(chains: EvmChains) -> None:
    for chain, title in (("polygon", "Polygon"), ("ninth", "Ninth")):
        with pytest.raises(ProviderDown, match=f"{title}: no node is set for it"):
            await chains.head(chain)
    assert (chains.endpoints("base"), chains.endpoints("polygon"), chains.endpoints("solana")) == (2, 0, 0)


@pytest.mark.parametrize("kind", list(HOSTILE))
async def test_a_hostile_contract_spoils_only_its_own_answers(chains: EvmChains, world: str, kind: str) -> None:
    bad = address(5000 + list(HOSTILE).index(kind))
    await deploy(world, bad, HOSTILE[kind])
    sheet = await balances(chains, "base", [COOL, RARE, EMPTY, bad], OWNERS)
    check(sheet)
    assert all(sheet.amount(bad, owner) is None for owner in OWNERS)


async def test_no_contract_and_precompiles_are_unknown(chains: EvmChains) -> None:
    nothing, sha256 = address(7777), f"0x{2:040x}"
    sheet = await balances(chains, "base", [COOL, nothing, sha256], OWNERS)
    assert sheet.amount(COOL, OWNERS[1]) == 1
    assert sheet.amount(nothing, OWNERS[1]) is None
    assert sheet.amount(sha256, OWNERS[1]) is None


def changed(method: str, result: Any) -> Any:
    """Return a change that replaces the answers to one method."""
    return lambda call, true: {**true, "result": result} if call["method"] == method else true


def zeros(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    """Replace the answers to calls by zeros of the same length."""
    if call["method"] != "eth_call" or "result" not in true:
        return true
    return {**true, "result": "0x" + "0" * (len(true["result"]) - 2)}


def ignores_override(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    if call["method"] == "eth_call" and len(call["params"]) > 2:
        return {**true, "result": "0x"}
    return true


def plain_zeros(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    """Answer every call with one zero word."""
    return {**true, "result": "0x" + "0" * 64} if call["method"] == "eth_call" else true


LIES = {
    "zeros of the right length": zeros,
    "one zero word": plain_zeros,
    "empty": changed("eth_call", "0x"),
    "null": changed("eth_call", None),
    "a number": changed("eth_call", 0),
    "not hexadecimal": changed("eth_call", "0xzz"),
    "no result": lambda call, true: {"jsonrpc": "2.0", "id": call["id"]},
    "another id": lambda call, true: {**true, "id": 77},
    "a wrong chain": changed("eth_chainId", "0x1"),
    "an old head": changed("eth_getBlockByNumber", {"number": "0x5", "timestamp": "0x65000000"}),
    "no head": changed("eth_getBlockByNumber", None),
}


def refused(status: int, code: int, message: str) -> web.Response:
    """Answer with a JSON-RPC error and an HTTP status."""
    error = {"code": code, "message": message}
    return web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}, status=status)


ANSWERS = {
    "429": (lambda: web.Response(status=429, headers={"Retry-After": "3"}), ProviderBusy),
    "500": (lambda: web.Response(status=500), ProviderDown),
    "403": (lambda: web.Response(status=403), ProviderRefused),
    # The wording of Alchemy, Infura and QuickNode when a plan's month or day is used up.
    "a used-up month": (lambda: refused(403, -32600, "Monthly capacity limit exceeded. Visit https://…"), ProviderBusy),
    "a used-up day": (lambda: refused(402, 402, "Payment Required"), ProviderBusy),
    "a used-up day without words": (lambda: web.Response(status=402), ProviderBusy),
    "a used-up day, said with 200": (lambda: refused(200, -32003, "daily request limit reached"), ProviderBusy),
    "broken JSON": (lambda: web.Response(text='{"jsonrpc": "2.0", "resu'), ProviderConfused),
    "a list": (lambda: web.json_response([]), ProviderConfused),
    "a text": (lambda: web.json_response("0x0"), ProviderConfused),
    "HTML": (lambda: web.Response(text="<html>", content_type="text/html"), ProviderConfused),
}


@pytest.mark.parametrize("lie", list(LIES))
@pytest.mark.parametrize("warm", [False, True], ids=["at first sight", "later"])
async def test_a_lying_node_is_refused_and_the_next_one_asked(
    chains: EvmChains, ends: tuple[Front, Front], lie: str, warm: bool
) -> None:
    if warm:
        check(await read(chains, at=ReadPoint(endpoint=0)))
        if lie == "a wrong chain":
            return  # its id has been checked, and each answer carries it again
    ends[0].change = LIES[lie]
    with pytest.raises((ProviderConfused, ProviderRefused)):
        await read(chains, at=ReadPoint(endpoint=0))
    sheet = await read(chains)
    check(sheet)
    assert sheet.endpoint == 1
    if lie != "a wrong chain":
        ends[1].change = LIES[lie]
        with pytest.raises(ProviderError):
            await read(chains)
    ends[0].change = ends[1].change = None
    check(await read(chains, at=ReadPoint(endpoint=0)))


@pytest.mark.parametrize("kind", list(ANSWERS))
async def test_a_failing_node_is_an_error_and_the_next_one_asked(
    chains: EvmChains, ends: tuple[Front, Front], kind: str
) -> None:
    ends[0].instead, error = ANSWERS[kind]
    with pytest.raises(error):
        await read(chains, at=ReadPoint(endpoint=0))
    sheet = await read(chains)
    check(sheet)
    assert sheet.endpoint == 1


async def test_a_node_on_another_chain_is_caught_in_each_answer(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    check(await read(chains, at=ReadPoint(endpoint=0)))

    def other_chain(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != "eth_call":
            return true
        said = true["result"]
        return {**true, "result": said[: 2 + 64] + f"{1:064x}" + said[2 + 128 :]}

    ends[0].change = other_chain
    with pytest.raises(ProviderConfused):
        await read(chains, at=ReadPoint(endpoint=0))


async def test_nobody_listening_and_no_answer_end_in_time(world: str, stack: AsyncExitStack, server: Wire) -> None:
    await rpc(world, "anvil_mine", "0x1")
    server.says("hang")
    urls = ["http://127.0.0.1:9/?key=hush", f"{server.url}/v2/hush", world]
    # Long enough for the node that answers, even on a busy machine.
    dead = EvmChains(NodePool({"base": urls}, request_seconds=3.0))
    stack.push_async_callback(dead.close)
    for endpoint in (0, 1):
        with pytest.raises(ProviderDown) as caught:
            await read(dead, at=ReadPoint(endpoint=endpoint))
        assert "hush" not in str(caught.value)
        assert "127.0.0.1" not in str(caught.value)
    sheet = await read(dead)
    check(sheet)
    assert sheet.source == "Base node 3"
    asked = len(server.asked)
    check(await read(dead))
    assert len(server.asked) == asked, "who lately did not answer is asked last"


async def test_a_whole_call_is_bounded_when_every_node_hangs(stack: AsyncExitStack, server: Wire) -> None:
    server.says("hang")
    dead = EvmChains(NodePool({"base": [server.url] * 5}, request_seconds=0.4, deadline=1.0))
    stack.push_async_callback(dead.close)
    with pytest.raises(ProviderDown):
        await read(dead)
    assert len(server.asked) <= 3


async def test_an_error_that_quotes_a_url_does_not_show_it(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    error = {"code": -32000, "message": "upstream https://node.example/v2/hush is not well"}
    ends[0].change = lambda call, true: {"jsonrpc": "2.0", "id": call["id"], "error": error}
    with pytest.raises(ProviderError) as caught:
        await read(chains, at=ReadPoint(endpoint=0))
    assert "hush" not in str(caught.value)


async def test_a_read_must_be_at_or_after_the_block_asked_for(chains: EvmChains, world: str) -> None:
    head = await chains.head("base")
    with pytest.raises(ProviderConfused):
        await read(chains, at=ReadPoint(endpoint=0, not_before_block=head.block + 5))
    await rpc(world, "anvil_mine", "0x5")
    assert (await read(chains, at=ReadPoint(endpoint=0, not_before_block=head.block + 5))).block >= head.block + 5


@pytest.mark.parametrize("change", [without_override, ignores_override])
async def test_without_state_override_and_multicall_it_is_a_batch(
    chains: EvmChains, ends: tuple[Front, Front], world: str, change: Any
) -> None:
    ends[0].change = change
    await deploy(world, address(5100), HOSTILE["burns all its gas"])
    sheet = await balances(
        chains, "base", [COOL, RARE, EMPTY, address(5100)], OWNERS + list(BIG), at=ReadPoint(endpoint=0)
    )
    check(sheet)
    assert sheet.amount(COOL, address(904)) == MOST
    assert all(sheet.amount(address(5100), owner) is None for owner in OWNERS)
    before = ends[0].requests
    check(await read(chains, at=ReadPoint(endpoint=0)))
    assert ends[0].requests - before == 1 + 2, "the way is remembered: a head, and a hundred checks a batch"


async def test_a_batch_whose_canary_fails_is_unknown_or_confusion(chains: EvmChains, ends: tuple[Front, Front]) -> None:
    def lie(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        refused = without_override(call, true)
        if refused is not true or call["method"] != "eth_call":
            return refused
        bad = everyone or call["params"][0]["to"] == RARE
        return {**true, "result": "0x" + "0" * 64} if bad else true

    everyone = False
    ends[0].change = lie
    sheet = await read(chains, at=ReadPoint(endpoint=0))
    assert sheet.amount(COOL, OWNERS[1]) == 1
    assert sheet.amount(RARE, OWNERS[1]) is None
    everyone = True
    with pytest.raises(ProviderConfused):
        await read(chains, at=ReadPoint(endpoint=0))


async def test_the_standard_and_name_of_a_contract(chains: EvmChains, world: str) -> None:
    await rpc(world, "anvil_setCode", CHAINS["base"].delegates, "0x00")
    assert await chains.contract_standard("base", COOL) == "ERC721"
    assert await chains.contract_standard("base", RARE) == "ERC721Enumerable"
    assert await chains.contract_standard("base", EMPTY) == "ERC1155"
    assert await chains.contract_standard("base", address(7777)) == "none"
    await deploy(world, address(5200), HOSTILE["reverts"])
    assert await chains.contract_standard("base", address(5200)) is None
    assert await chains.contract_name("base", COOL) == "Cool Club"
    assert await chains.contract_name("base", RARE) == "№7 – O’Brien’s 🐱", "but for what is invisible or no text"
    assert await chains.contract_name("base", address(5200)) is None


# Claims to be an ERC-721, and says that everybody has a whole coin of 18 decimals.
HYBRID = """
    0 CALLDATALOAD 224 SHR DUP1 0x01ffc9a7 EQ @interface JUMPI
    DUP1 0x70a08231 EQ @balance JUMPI
    DUP1 0x313ce567 EQ @decimals JUMPI
    0xdd62ed3e EQ @allowance JUMPI
    0 0 REVERT
balance:
    1000000000000000000 0 MSTORE 32 0 RETURN
decimals:
    {decimals}
allowance:
    {allowance}
interface:
    4 CALLDATALOAD 224 SHR DUP1 0x01ffc9a7 EQ SWAP1 0x80ac58cd EQ OR 0 MSTORE 32 0 RETURN
"""


@pytest.mark.parametrize(
    ("decimals", "allowance", "standard"),
    [
        ("18 0 MSTORE 32 0 RETURN", "32 0 RETURN", None),
        ("0 0 MSTORE 32 0 RETURN", "32 0 RETURN", "ERC721"),
        ("18 0 MSTORE 32 0 RETURN", "0 0 REVERT", "ERC721"),
        # A contract of an early compiler throws by burning all gas.
        ("@decimals JUMP", "0 0 REVERT", "ERC721"),
        ("18 0 MSTORE 32 0 RETURN", "@allowance JUMP", "ERC721"),
    ],
)
async def test_a_contract_that_counts_units_of_a_coin_is_no_collection_whatever_it_claims(
    chains: EvmChains, world: str, decimals: str, allowance: str, standard: str | None
) -> None:
    hybrid = address(5300 + 20 * len(decimals) + len(allowance))
    await deploy(world, hybrid, HYBRID.format(decimals=decimals, allowance=allowance))
    assert await chains.contract_standard("base", hybrid) == standard


@pytest.mark.parametrize(
    "lie", ["empty", "zeros of the right length", "one zero word", "null", "no result", "broken JSON", "500"]
)
async def test_a_failing_node_makes_no_collection_vanish(
    chains: EvmChains, ends: tuple[Front, Front], lie: str
) -> None:
    for end in ends:
        if lie in ANSWERS:
            end.instead = ANSWERS[lie][0]
        else:
            end.change = LIES[lie]
    with pytest.raises(ProviderError):
        await chains.contract_standard("base", COOL)
