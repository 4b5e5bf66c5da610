"""A node that does not give all logs, which it may not say: nobody is found to hold nothing by its history."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens import received_tokens
from tests.gateways.evm.tokens.test_received_tokens import Lists, limited
from tests.gateways.evm_lab import Front, address, anvil, front
from tests.gateways.token_lab import ANVIL, collection, mint

PLAIN, MANY = address(1), address(2)
ANN, NOBODY = address(100), address(101)
MINTED = 40


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A chain with an ERC-721's transfer in nearly every block; ANN got an ERC-1155's token at its beginning."""

    async def build(url: str) -> None:
        await collection(url, PLAIN, "ERC721")
        await collection(url, MANY, "ERC1155")
        await mint(url, MANY, ANN, 7, 2)
        for token in range(MINTED):
            await mint(url, PLAIN, address(500), token)

    with anvil(*ANVIL) as url:
        asyncio.run(build(url))
        yield url


@pytest.fixture
async def end(node: str) -> AsyncIterator[Front]:
    async with front(node) as made:
        yield made


@pytest.fixture
async def chains(end: Front) -> AsyncIterator[EvmChains]:
    async with AsyncExitStack() as stack:
        made = EvmChains(NodePool({"base": [end.url]}, request_seconds=2.0, deadline=9.0), Lists())
        stack.push_async_callback(made.close)
        yield made


def pruned(before: int, *, says_so: bool = False, bloom: str = "") -> Any:
    """Return a node without logs before a block: it leaves them out, or refuses a request for them as geth does."""

    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] == "eth_getBlockByNumber" and bloom:
            return {**true, "result": true["result"] | {"logsBloom": "0x" + 512 * bloom}}
        if call["method"] != "eth_getLogs":
            return true
        if says_so and int(call["params"][0]["fromBlock"], 16) < before:
            error = {"code": 4444, "message": "pruned history unavailable"}
            return {"jsonrpc": "2.0", "id": call["id"], "error": error}
        return {**true, "result": [log for log in true["result"] if int(log["blockNumber"], 16) >= before]}

    return change


async def test_who_got_tokens_in_blocks_without_logs_is_not_found_to_hold_nothing(
    chains: EvmChains, end: Front
) -> None:
    end.change = pruned(20)
    sheet = await chains.tokens("base", MANY, [ANN, NOBODY])
    assert set(sheet.unsure) == {ANN, NOBODY}
    assert "does not have the logs of old blocks" in sheet.unsure[ANN]
    assert not sheet.trails.get(ANN) or not sheet.trails[ANN].searched


@pytest.mark.parametrize("said", [{"result": None}, {"error": {"code": -32005, "message": "too many requests"}}])
async def test_nor_is_who_got_them_at_a_node_that_does_not_give_its_old_headers(
    chains: EvmChains, end: Front, said: dict[str, Any]
) -> None:
    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        is_old = call["method"] == "eth_getBlockByNumber" and call["params"][0] != "latest"
        return {"jsonrpc": "2.0", "id": call["id"], **said} if is_old else pruned(20)(call, true)

    end.change = change
    assert set((await chains.tokens("base", MANY, [ANN, NOBODY])).unsure) == {ANN, NOBODY}


async def test_nothing_is_missing_before_the_first_block_of_a_chain_that_begins_late(
    chains: EvmChains, end: Front
) -> None:
    def change(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != "eth_getBlockByNumber" or call["params"][0] == "latest":
            return true
        first = {"number": hex(10**9), "parentHash": "0x" + "0" * 64}
        return {**true, "result": first if call["params"][0] == "earliest" else None}

    end.change = change
    assert (await chains.tokens("base", MANY, [ANN, NOBODY])).unsure == {}


async def test_a_node_that_names_its_pruned_blocks_is_asked_for_the_newer_ones(
    chains: EvmChains, end: Front, node: str
) -> None:
    ben = address(102)
    await mint(node, MANY, ben, 9, 3)
    end.change = pruned(20, says_so=True)
    first = await chains.tokens("base", MANY, [ANN, ben])
    assert (dict(first.of(ANN)), dict(first.of(ben)), set(first.unsure)) == ({}, {"9": 3}, {ANN, ben})
    assert "before block 20 any more" in first.unsure[ANN]
    end.calls.clear()
    other = await chains.tokens("base", MANY, [ben])
    assert (dict(other.of(ben)), set(other.unsure)) == ({"9": 3}, {ben})
    assert end.methods().count("eth_getLogs") == 1, "where its logs begin is remembered"


async def test_an_indexers_empty_list_is_not_confirmed_by_them(chains: EvmChains, end: Front, node: str) -> None:
    end.change = pruned(20)
    sheet = await chains.anything("base", [ANN], at=ReadPoint(settled=True))
    assert (dict(sheet.held), dict(sheet.alone)) == ({}, {ANN: "An indexer"})


@pytest.mark.parametrize("change", [None, pruned(0, bloom="0")])
async def test_a_node_with_all_logs_is_believed_whether_or_not_its_headers_show_them(
    chains: EvmChains, end: Front, change: Any
) -> None:
    end.change = change
    sheet = await chains.tokens("base", MANY, [ANN, NOBODY])
    assert (dict(sheet.unsure), dict(sheet.of(ANN)), dict(sheet.of(NOBODY))) == ({}, {"7": 2}, {})
    asked = len(end.calls)
    await chains.tokens("base", MANY, [ANN, NOBODY])
    assert len(end.calls) - asked < asked, "what was found out is remembered"


async def test_headers_that_name_everything_show_nothing_to_be_missing(chains: EvmChains, end: Front) -> None:
    end.change = pruned(20, bloom="f")
    assert dict((await chains.tokens("base", MANY, [NOBODY])).unsure) == {}


async def test_a_node_that_refused_every_size_for_a_while_is_searched_again(
    chains: EvmChains, end: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_tokens, "MOST_PIECES", 20)
    failing = end.change = limited(0, -32011, "no backend is currently healthy to serve traffic")
    assert set((await chains.tokens("base", MANY, [ANN, NOBODY])).unsure) == {ANN, NOBODY}
    end.change = None
    assert (await chains.tokens("base", MANY, [ANN, NOBODY])).unsure == {}
    end.change = failing
    for _ in range(2):
        end.calls.clear()
        assert set((await chains.tokens("base", MANY, [ANN, NOBODY])).unsure) == {ANN, NOBODY}
    assert "eth_getLogs" not in end.methods(), "every size is tried once in ten minutes"
