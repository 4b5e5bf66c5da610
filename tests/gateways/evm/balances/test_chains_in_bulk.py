"""Large reads: how many requests and bytes they take, how chunks shrink and grow, and what hostile contracts cost."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from gateways.chains import costly_contracts
from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.chains.catalogue import CHAINS
from gateways.evm.balances.program_reads import WIDEST
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError
from tests.gateways.evm_lab import (
    COLLECTION,
    HOSTILE,
    ROOT,
    Front,
    address,
    anvil,
    assemble,
    deploy,
    front,
    rpc,
    without_override,
)
from tests.support.balances import balances

MULTICALL3 = CHAINS["base"].multicall3
# Eight collections: a wallet's amount is in the slot of its address.
COLLECTIONS = [address(n) for n in range(8)]
WALLETS = [address(10_000 + n) for n in range(6_000)]
HOLDERS = {WALLETS[n * 37 % len(WALLETS)]: n % 7 + 1 for n in range(300)}
# Uses about 60,000 gas a call and then answers correctly.
HEAVY = "300 \nmore: 1 SWAP1 SUB DUP1 0 SLOAD POP @more JUMPI 4 CALLDATALOAD SLOAD 0 MSTORE 32 0 RETURN"
ARTEFACTS = json.loads((ROOT / "sandbox" / "contracts" / "artefacts.json").read_text())


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node that allows 50 M gas a call, as most nodes do."""

    async def build(url: str) -> None:
        for contract in COLLECTIONS:
            await deploy(url, contract, COLLECTION, {int(owner, 16): amount for owner, amount in HOLDERS.items()})

    with anvil("--gas-limit", "50000000") as url:
        asyncio.run(build(url))
        yield url


@pytest.fixture
async def end(node: str) -> AsyncIterator[Front]:
    await rpc(node, "anvil_setCode", MULTICALL3, "0x")
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as one:
        yield one


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def chains(end: Front, stack: AsyncExitStack) -> EvmChains:
    made = EvmChains(NodePool({"base": [end.url]}))
    stack.push_async_callback(made.close)
    return made


def check(sheet: BalanceSheet, contracts: list[str]) -> None:
    for contract in contracts:
        assert dict(sheet.holders(contract)) == HOLDERS
        assert sheet.unknown(contract) == 0


async def test_requests_and_bytes_stay_few(chains: EvmChains, end: Front) -> None:
    check(await balances(chains, "base", COLLECTIONS, WALLETS), COLLECTIONS)
    end.requests = end.bytes = 0
    end.calls.clear()
    check(await balances(chains, "base", COLLECTIONS, WALLETS), COLLECTIONS)
    checks = len(COLLECTIONS) * len(WALLETS)
    assert end.requests / checks <= 0.125 / 1000, "a call to 50 M gas takes 10,000 checks and more"
    assert end.bytes / checks <= 10
    assert len({call["params"][1] for call in end.calls if call["method"] == "eth_call"}) == 1, "one block a read"


@pytest.mark.parametrize("kind", list(HOSTILE))
async def test_a_hostile_contract_leaves_its_neighbours_right_at_scale(chains: EvmChains, node: str, kind: str) -> None:
    bad = address(5000)
    await deploy(node, bad, HOSTILE[kind])
    sheet = await balances(chains, "base", [bad, *COLLECTIONS], WALLETS[:3000])
    assert sheet.unknown(bad) == 3000
    for contract in COLLECTIONS:
        assert sheet.unknown(contract) == 0
        assert dict(sheet.holders(contract)) == {w: n for w, n in HOLDERS.items() if w in set(WALLETS[:3000])}


async def test_a_costly_contract_is_asked_again_alone_until_it_is_known(chains: EvmChains, node: str) -> None:
    heavy = address(5001)
    await deploy(node, heavy, HEAVY, {int(owner, 16): amount for owner, amount in HOLDERS.items()})
    sheet = await balances(chains, "base", [heavy, *COLLECTIONS[:3]], WALLETS[:2000])
    assert sheet.unknown(heavy) == 0
    assert dict(sheet.holders(heavy)) == {w: n for w, n in HOLDERS.items() if w in set(WALLETS[:2000])}


def refusing(most_bytes: int, error: dict[str, Any]) -> Callable[[dict[str, Any], Any], Any]:
    """Return a change that refuses calls with more data than that."""

    def change(call: dict[str, Any], true: Any) -> Any:
        if call["method"] == "eth_call" and len(call["params"][0]["data"]) // 2 > most_bytes:
            return {"jsonrpc": "2.0", "id": call["id"], "error": error}
        return true

    return change


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": "out of gas: gas required exceeds allowance (50000000)"},
        {"code": -32000, "message": "execution aborted (timeout = 5s)"},
        {"code": -32008, "message": "response size exceeded"},
    ],
)
async def test_chunks_shrink_when_a_call_is_too_much(chains: EvmChains, end: Front, error: dict[str, Any]) -> None:
    end.change = refusing(4_000, error)
    check(await balances(chains, "base", COLLECTIONS[:4], WALLETS), COLLECTIONS[:4])
    shrunk = end.methods().count("eth_call")
    end.change = None
    for _ in range(4):
        end.calls.clear()
        check(await balances(chains, "base", COLLECTIONS[:4], WALLETS), COLLECTIONS[:4])
    assert end.methods().count("eth_call") < shrunk / 5, "and grow back when it no longer is"


async def test_a_contract_that_makes_every_call_fail_spoils_only_its_own_cells(
    chains: EvmChains, end: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = address(5005)

    def fail(call: dict[str, Any], true: Any) -> Any:
        if call["method"] == "eth_call" and bad[2:] in call["params"][0]["data"]:
            return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32000, "message": "execution timed out"}}
        return true

    end.change = fail
    segments = [Segment((bad, *COLLECTIONS[:2]), tuple(WALLETS[:40])), Segment((bad,), tuple(WALLETS[:2])), *guilds(30)]
    for first in (0, 1, 5):
        monkeypatch.setattr("gateways.evm.balances.program_reads.randbelow", lambda _, first=first: first)
        sheets = await chains.balances("base", segments)
        check_each(segments, sheets, but=[bad])
        assert [sheet.unknown(bad) for sheet in sheets[:2]] == [40, 2]
    with pytest.raises(ProviderError):
        await balances(chains, "base", [bad], WALLETS[:20])


async def test_a_node_that_answers_no_call_is_not_asked_for_less_and_less(end: Front, stack: AsyncExitStack) -> None:
    chains = EvmChains(NodePool({"base": [end.url]}, request_seconds=3.0, deadline=60))
    stack.push_async_callback(chains.close)
    end.hangs = lambda body: b"eth_call" in body
    with pytest.raises(ProviderDown):
        await balances(chains, "base", COLLECTIONS, WALLETS)
    assert end.methods().count("eth_call") == 2


async def test_what_there_is_no_time_for_is_unknown_and_the_rest_is_kept(end: Front, stack: AsyncExitStack) -> None:
    chains = EvmChains(NodePool({"base": [end.url]}, request_seconds=20, deadline=12))
    stack.push_async_callback(chains.close)
    end.hangs = lambda body: b"eth_call" in body and end.methods().count("eth_call") > 2
    segments = [Segment((one,), tuple(WALLETS)) for one in COLLECTIONS]
    sheets = await chains.balances("base", segments)
    unknown = sum(sheet.unknown(one) for sheet, one in zip(sheets, COLLECTIONS, strict=True))
    assert 0 < unknown < len(COLLECTIONS) * len(WALLETS)
    amounts = [(w, sheet.amount(one, w)) for sheet, one in zip(sheets, COLLECTIONS, strict=True) for w in WALLETS]
    assert all(amount in {None, HOLDERS.get(owner, 0)} for owner, amount in amounts)
    end.hangs = lambda body: b"eth_call" in body
    # Nothing is answered in any time, so no more of it needs to pass.
    hurried = EvmChains(NodePool({"base": [end.url]}, request_seconds=20, deadline=3))
    stack.push_async_callback(hurried.close)
    with pytest.raises(ProviderDown):
        await balances(hurried, "base", COLLECTIONS, WALLETS[:50])


async def test_a_node_too_weak_for_the_smallest_call_is_an_error(chains: EvmChains, end: Front) -> None:
    end.change = refusing(0, {"code": -32000, "message": "out of gas"})
    with pytest.raises(ProviderError) as caught:
        await balances(chains, "base", COLLECTIONS, WALLETS)
    assert "Base (node 1)" in str(caught.value)


async def test_aggregate3_is_the_second_way(chains: EvmChains, end: Front, node: str) -> None:
    await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])
    end.change = without_override
    sheet = await balances(chains, "base", COLLECTIONS, WALLETS[:2000])
    expected = {w: n for w, n in HOLDERS.items() if w in set(WALLETS[:2000])}
    assert all(dict(sheet.holders(contract)) == expected for contract in COLLECTIONS)
    end.requests = 0
    sheet = await balances(chains, "base", COLLECTIONS, WALLETS[:2000])
    assert all(sheet.unknown(contract) == 0 for contract in COLLECTIONS)
    assert end.requests == 1 + 16, "a thousand checks a call"


@pytest.mark.parametrize("kind", list(HOSTILE))
async def test_aggregate3_isolates_hostile_contracts(chains: EvmChains, end: Front, node: str, kind: str) -> None:
    await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])
    bad = address(5002)
    await deploy(node, bad, HOSTILE[kind])
    end.change = without_override
    sheet = await balances(chains, "base", [bad, *COLLECTIONS[:2]], WALLETS[:350])
    assert sheet.unknown(bad) == 350
    assert all(sheet.unknown(contract) == 0 for contract in COLLECTIONS[:2])


async def test_an_aggregate_of_zeros_is_refused(chains: EvmChains, end: Front, node: str) -> None:
    await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])

    def lie(call: dict[str, Any], true: Any) -> Any:
        refused = without_override(call, true)
        if call["method"] != "eth_call" or refused is not true:
            return refused
        # Keep the form (offsets, lengths, successes) and set every amount to zero, canaries included.
        words = [true["result"][2 + at : 2 + at + 64] for at in range(0, len(true["result"]) - 2, 64)]
        count = int(words[1], 16)
        zeroed = words[: 2 + count] + [w if i % 4 != 3 else "0" * 64 for i, w in enumerate(words[2 + count :])]
        return {**true, "result": "0x" + "".join(zeroed)}

    end.change = lie
    with pytest.raises(ProviderConfused):
        await balances(chains, "base", COLLECTIONS, WALLETS[:100])


async def test_a_cut_aggregate_is_refused(chains: EvmChains, end: Front, node: str) -> None:
    await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])

    def cut(call: dict[str, Any], true: Any) -> Any:
        refused = without_override(call, true)
        if call["method"] != "eth_call" or refused is not true:
            return refused
        return {**true, "result": true["result"][: len(true["result"]) // 2 // 64 * 64 + 2]}

    end.change = cut
    with pytest.raises(ProviderConfused):
        await balances(chains, "base", COLLECTIONS, WALLETS[:100])


def guilds(count: int, contracts: int = 4, wallets: int = 5) -> list[Segment]:
    """Return segments of many small servers, whose collections and wallets partly overlap."""
    return [
        Segment(
            tuple(COLLECTIONS[(guild + n) % len(COLLECTIONS)] for n in range(contracts)),
            tuple(WALLETS[guild * 3 : guild * 3 + wallets]),
        )
        for guild in range(count)
    ]


def check_each(segments: list[Segment], sheets: list[BalanceSheet], *, but: Collection[str] = ()) -> None:
    """Check every amount in every segment, except those of the contracts in `but`."""
    for segment, sheet in zip(segments, sheets, strict=True):
        for contract in set(segment.contracts) - set(but):
            found = {owner: sheet.amount(contract, owner) for owner in segment.owners}
            assert found == {owner: HOLDERS.get(owner, 0) for owner in segment.owners}
    assert len({(sheet.block, sheet.endpoint) for sheet in sheets}) <= 1


async def test_many_segments_take_as_few_requests_as_one(chains: EvmChains, end: Front) -> None:
    check(await balances(chains, "base", COLLECTIONS, WALLETS), COLLECTIONS)
    segments = guilds(1_900)
    end.requests = end.bytes = 0
    check_each(segments, await chains.balances("base", segments))
    checks = sum(len(one.contracts) * len(one.owners) for one in segments)
    assert checks == 38_000
    assert end.requests / checks <= 0.2 / 1000
    assert end.bytes / checks <= 40


async def test_a_gas_burner_that_many_segments_name_spoils_only_its_own_cells(
    chains: EvmChains, end: Front, node: str
) -> None:
    burner = address(5003)
    await deploy(node, burner, HOSTILE["burns all its gas"])
    segments = [Segment((burner, *one.contracts), one.owners) for one in guilds(1_000)]
    sheets = await chains.balances("base", segments)
    check_each(segments, sheets, but=[burner])
    assert all(sheet.unknown(burner) == 5 for sheet in sheets)
    end.requests = 0
    check_each(segments, await chains.balances("base", segments), but=[burner])
    assert end.requests <= 9, "20,000 checks, and what it costs to give the burner up"


async def test_many_gas_burners_of_one_segment_spoil_only_their_own_cells(chains: EvmChains, node: str) -> None:
    """Two hundred of them could use nearly all the gas of a call, and they come before the other contracts in it."""
    burners = [f"0x{0x20000 + n:040x}" for n in range(200)]
    for burner in burners:
        await rpc(node, "anvil_setCode", burner, "0xfe")
    await rpc(node, "anvil_mine", "0x1")
    segments = [Segment(tuple(burners), tuple(WALLETS[:4])), *guilds(400)]
    for _ in range(3):
        sheets = await chains.balances("base", segments)
        check_each(segments, sheets, but=burners)
        assert all(sheets[0].unknown(burner) == 4 for burner in burners)


def named(end: Front, contracts: Collection[str]) -> set[str]:
    """Return those of the contracts that the calls so far have named."""
    sent = "".join(str(call["params"][0]["data"]) for call in end.calls if call["method"] == "eth_call")
    return {one for one in contracts if one[2:] in sent}


@pytest.mark.parametrize("code", ["0xfe", "0x5b600056", "0x621000006000f3", "0x621000006000fd"])
async def test_contracts_that_take_all_gas_rest_and_then_cost_nobody_anything(
    chains: EvmChains, end: Front, node: str, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """They use up the gas at once or in a loop, or return or revert with a megabyte."""
    burners = [f"0x{0x40000 + n:040x}" for n in range(40)]
    for burner in burners:
        await rpc(node, "anvil_setCode", burner, code)
    await rpc(node, "anvil_mine", "0x1")
    segments = [Segment(tuple(burners), tuple(WALLETS[:4])), *guilds(400)]
    for _ in range(3):
        check_each(segments, await chains.balances("base", segments), but=burners)
    assert (chains.costly("base"), chains.costly("ethereum")) == (set(burners), set())
    end.calls.clear()
    sheets = await chains.balances("base", segments)
    check_each(segments, sheets, but=burners)
    assert named(end, burners) == set()
    assert end.methods().count("eth_call") == 1, "as many as without them"
    assert all(sheets[0].unknown(burner) == 4 for burner in burners)
    # After their pause they are asked again; those that still use all gas get a longer pause.
    moment = monotonic()
    monkeypatch.setattr(costly_contracts, "monotonic", lambda: moment + costly_contracts.FIRST_REST + 1)
    await rpc(node, "anvil_setCode", burners[0], "0x" + assemble(COLLECTION).hex())
    await rpc(node, "anvil_mine", "0x1")
    for _ in range(3):
        sheets = await chains.balances("base", segments)
    assert dict(sheets[0].holders(burners[0])) == {}
    assert sheets[0].unknown(burners[0]) == 0
    monkeypatch.setattr(costly_contracts, "monotonic", lambda: moment + 3 * costly_contracts.FIRST_REST)
    end.calls.clear()
    await chains.balances("base", segments)
    assert named(end, burners) == {burners[0]}


async def test_a_contract_that_answers_at_a_high_price_is_known_for_it(chains: EvmChains, node: str) -> None:
    dear = address(5040)
    await deploy(node, dear, HEAVY.replace("300", "1000"), {int(owner, 16): 1 for owner in WALLETS[:500]})
    sheet = await balances(chains, "base", [dear, *COLLECTIONS], WALLETS[:500])
    assert sheet.unknown(dear) == 0
    assert chains.costly("base") == {dear}


async def test_costly_contracts_of_many_segments_are_known_too(chains: EvmChains, node: str) -> None:
    heavy = [address(5010 + n) for n in range(3)]
    for one in heavy:
        await deploy(node, one, HEAVY, {int(owner, 16): amount for owner, amount in HOLDERS.items()})
    segments = [Segment((*one.contracts, *heavy), one.owners) for one in guilds(300)]
    check_each(segments, await chains.balances("base", segments))


async def test_one_owner_of_more_contracts_than_a_call_takes(chains: EvmChains, node: str) -> None:
    many = [f"0x{0x30000 + n:040x}" for n in range(4_300)]
    sheet = (await chains.balances("base", [Segment((*many, *COLLECTIONS), tuple(WALLETS[:2]))]))[0]
    check_each([Segment(tuple(COLLECTIONS), tuple(WALLETS[:2]))], [sheet])
    assert all(sheet.unknown(one) == 2 for one in many)


async def test_large_amounts_of_many_segments_are_read_together(chains: EvmChains, end: Front, node: str) -> None:
    rich = [address(5020 + n) for n in range(2)]
    for number, one in enumerate(rich):
        await deploy(node, one, COLLECTION, {int(owner, 16): 1_000 + number for owner in WALLETS[:400]})
    segments = [Segment((rich[n % 2],), tuple(WALLETS[n * 2 : n * 2 + 2])) for n in range(200)]
    sheets = await chains.balances("base", segments)
    for number, (segment, sheet) in enumerate(zip(segments, sheets, strict=True)):
        assert dict(sheet.holders(segment.contracts[0])) == dict.fromkeys(segment.owners, 1_000 + number % 2)
    assert end.methods().count("eth_call") == 2


async def test_large_amounts_that_cannot_be_read_exactly_are_unknown(chains: EvmChains, end: Front, node: str) -> None:
    rich = address(5030)
    await deploy(node, rich, COLLECTION, {int(owner, 16): 1_000 for owner in WALLETS[:40]})

    def exact_fails(call: dict[str, Any], true: Any) -> Any:
        if call["method"] == "eth_call" and call["params"][0]["data"][2 + 54 : 2 + 56] == f"{WIDEST:02x}":
            return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32000, "message": "execution timed out"}}
        return true

    end.change = exact_fails
    sheet = await balances(chains, "base", [rich, *COLLECTIONS], WALLETS[:40])
    assert sheet.unknown(rich) == 40
    assert all(sheet.amount(one, w) == HOLDERS.get(w, 0) for one in COLLECTIONS for w in WALLETS[:40])


async def test_a_node_that_refuses_large_bodies_is_asked_in_smaller_ones(chains: EvmChains, end: Front) -> None:
    refused = 0

    def too_large(body: bytes) -> web.Response | None:
        nonlocal refused
        if len(body) <= 100_000:
            return None
        refused += 1
        return web.Response(status=413)

    end.judge = too_large
    for _ in range(3):
        check(await balances(chains, "base", COLLECTIONS[:1], WALLETS), COLLECTIONS[:1])
    first, refused = refused, 0
    check(await balances(chains, "base", COLLECTIONS[:1], WALLETS), COLLECTIONS[:1])
    assert (first > 0, refused) == (True, 0), "what it refuses is remembered"


@pytest.mark.parametrize("multicall", [True, False])
async def test_the_other_ways_ask_about_pairs_of_many_segments_together(
    chains: EvmChains, end: Front, node: str, *, multicall: bool
) -> None:
    if multicall:
        await rpc(node, "anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])
    end.change = without_override
    bad = address(5004)
    await deploy(node, bad, HOSTILE["returns 60 kB"])
    segments = [Segment((bad, *one.contracts), one.owners) for one in guilds(40)]
    sheets = await chains.balances("base", segments)
    check_each(segments, sheets, but=[bad])
    assert all(sheet.unknown(bad) == 5 for sheet in sheets)
    end.requests = 0
    check_each(guilds(40), await chains.balances("base", guilds(40)))
    assert end.requests == (2 if multicall else 9), "800 checks"
