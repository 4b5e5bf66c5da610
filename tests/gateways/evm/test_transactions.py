"""Transactions from real nodes: many accounts in one request, blocks in pieces, an account's past by halving."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.evm.rpc.errors import StateMissing, TooMuch
from gateways.evm.rpc.pool import NodePool
from gateways.evm.transactions import EvmTransactions
from gateways.transport.errors import NotThere, ProviderConfused, ProviderError
from tests.gateways.evm_lab import Front, anvil, front, rpc

STRANGER = "0x" + "5e" * 20


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node that keeps all its past and lets anybody send."""
    with anvil("--auto-impersonate") as url:
        yield url


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def end(node: str, stack: AsyncExitStack) -> Front:
    await rpc(node, "anvil_mine", "0x1")
    return await stack.enter_async_context(front(node))


@pytest.fixture
async def transactions(end: Front, stack: AsyncExitStack) -> EvmTransactions:
    pool = NodePool({"base": [end.url]}, request_seconds=2.0, deadline=8.0)
    stack.push_async_callback(pool.close)
    return EvmTransactions(pool)


async def sends(node: str, sender: str, value: int, to: str = "") -> str:
    await rpc(node, "anvil_setBalance", sender, hex(10**20))
    asked = {"from": sender, "to": to or sender, "value": hex(value), "gas": "0x7530"}
    return (await rpc(node, "eth_sendTransactionSync", asked))["transactionHash"]


async def head(node: str) -> int:
    return int(await rpc(node, "eth_blockNumber"), 16)


def somebody() -> str:
    return "0x" + secrets.token_hex(20)


async def test_many_accounts_are_one_request(transactions: EvmTransactions, end: Front, node: str) -> None:
    busy, idle = somebody(), [somebody() for _ in range(200)]
    await sends(node, busy, 1)
    end.requests = 0
    sheet = await transactions.nonces("base", [busy, *idle])
    assert end.requests == 1
    assert (sheet.sent[busy], sum(sheet.sent.values()), sheet.block) == (1, 1, await head(node))
    assert transactions.chains() == ["base"]


async def test_contracts_are_told_from_accounts_that_a_contract_acts_for(
    transactions: EvmTransactions, node: str
) -> None:
    contract, lent, plain = somebody(), somebody(), somebody()
    await rpc(node, "anvil_setCode", contract, "0x6001")
    await rpc(node, "anvil_setCode", lent, "0xef0100" + "11" * 20)
    sheet = await transactions.nonces("base", [contract, lent, plain], look_at_code=True)
    assert sheet.contracts == {contract}


async def test_a_transaction_is_read_with_its_block_its_outcome_and_its_confirmations(
    transactions: EvmTransactions, node: str
) -> None:
    sender = somebody()
    hash = await sends(node, sender, 77)
    await rpc(node, "anvil_mine", "0x2")
    found = await transactions.transaction("base", hash)
    assert (found.sender, found.to, found.value, found.nonce) == (sender, sender, 77, 0)
    assert (found.succeeded, found.confirmations, found.block) == (True, 3, await head(node) - 2)
    with pytest.raises(NotThere):
        await transactions.transaction("base", "0x" + "00" * 32)


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("eth_getTransactionReceipt", {"blockHash": "0x" + "12" * 32}),
        ("eth_getTransactionReceipt", None),
        ("eth_getTransactionByHash", {"blockNumber": None}),
    ],
    ids=["an orphaned block", "no receipt", "still waiting"],
)
async def test_what_its_node_does_not_agree_about_waits_to_be_mined(
    transactions: EvmTransactions, end: Front, node: str, method: str, change: dict[str, Any] | None
) -> None:
    hash = await sends(node, somebody(), 5)

    def said(call: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != method:
            return item
        return {**item, "result": None if change is None else {**item["result"], **change}}

    end.change = said
    found = await transactions.transaction("base", hash)
    assert (found.block, found.succeeded, found.confirmations) == (None, False, 0)


@pytest.mark.parametrize(
    ("method", "result"),
    [("eth_chainId", "0x1"), ("eth_getTransactionByHash", "nonsense"), ("eth_getBlockByNumber", 7)],
)
async def test_another_chain_or_nonsense_is_an_error(
    transactions: EvmTransactions, end: Front, node: str, method: str, result: str
) -> None:
    hash = await sends(node, somebody(), 5)
    end.change = lambda call, item: {**item, "result": result} if call["method"] == method else item
    with pytest.raises(ProviderConfused):
        await transactions.transaction("base", hash)


async def test_only_what_an_account_sends_to_itself_is_found_and_long_ranges_come_in_pieces(
    transactions: EvmTransactions, end: Front, node: str
) -> None:
    sender, first = somebody(), await head(node)
    own = await sends(node, sender, 3)
    await sends(node, sender, 4, STRANGER)
    await sends(node, somebody(), 5)
    await rpc(node, "anvil_mine", "0x20")
    own_too = await sends(node, sender, 6)

    found = await transactions.to_themselves("base", {sender}, first, await head(node))
    assert [one.hash for one in found] == [own, own_too]
    assert end.requests == -(-(await head(node) - first + 1) // 10)


async def test_blocks_that_are_too_much_at_once_are_read_in_halves(
    transactions: EvmTransactions, end: Front, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateways.evm.rpc.node import Node

    sender, first = somebody(), await head(node)
    own = await sends(node, sender, 3)
    await rpc(node, "anvil_mine", "0x6")
    true = Node.batch

    async def small(self: Node, calls: Any) -> Any:
        if len(calls) > 2:
            raise TooMuch(self.name, "the answer is too large", status=200)
        return await true(self, calls)

    monkeypatch.setattr(Node, "batch", small)
    found = await transactions.to_themselves("base", {sender}, first, await head(node))
    assert [one.hash for one in found] == [own]


async def test_a_block_that_is_not_there_yet_is_an_error(transactions: EvmTransactions, node: str) -> None:
    with pytest.raises(ProviderError):
        await transactions.to_themselves("base", {somebody()}, 1, await head(node) + 5)


async def test_an_accounts_past_is_found_by_halving_where_the_node_knows_it(
    transactions: EvmTransactions, end: Front, node: str
) -> None:
    sender, first, blocks = somebody(), await head(node), list[int]()
    for _ in range(3):
        await rpc(node, "anvil_mine", "0x64")
        await sends(node, sender, 1)
        blocks.append(await head(node))
    end.requests = 0
    last = await head(node)
    assert await transactions.busy_blocks("base", sender, (first, 0), (last, 3)) == blocks
    assert end.requests <= 10
    assert await transactions.busy_blocks("base", sender, (first, 0), (last, 0)) == []


async def test_a_node_without_the_past_says_so(transactions: EvmTransactions, end: Front, node: str) -> None:
    last = await head(node)
    missing = {"code": -32000, "message": "missing trie node"}
    end.change = lambda call, item: {"jsonrpc": "2.0", "id": item["id"], "error": missing}
    with pytest.raises(StateMissing):
        async with asyncio.timeout(5):
            await transactions.busy_blocks("base", somebody(), (0, 0), (last, 1))
