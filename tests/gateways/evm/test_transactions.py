"""Transactions from real nodes: many accounts in one request, blocks in pieces, an account's history by bisection."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.evm.rpc.errors import StateMissing, TooMuch
from gateways.evm.rpc.pool import NodePool
from gateways.evm.smart_accounts import SAFE_DONE, Doubt
from gateways.evm.transactions import EvmTransactions
from gateways.transport.errors import NotThere, ProviderConfused, ProviderError
from sandbox.contracts import accounts
from tests.gateways.evm_lab import Front, anvil, front, rpc
from tests.gateways.token_lab import ARTEFACTS

STRANGER = "0x" + "5e" * 20


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node that keeps its whole history and lets every account send."""
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
    return await mined(node, asked)


async def mined(node: str, asked: object) -> str:
    """Send a transaction and return its hash once the node has it in a block and no longer as pending."""
    hash = (await rpc(node, "eth_sendTransactionSync", asked))["transactionHash"]
    while (await rpc(node, "eth_getTransactionByHash", hash))["blockNumber"] is None:
        await asyncio.sleep(0.01)
    return hash


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


async def test_a_number_of_transactions_that_cannot_be_is_the_nodes_fault(
    transactions: EvmTransactions, node: str
) -> None:
    odd = somebody()
    await rpc(node, "anvil_setNonce", odd, hex(2**63))
    with pytest.raises(ProviderConfused):
        await transactions.nonces("base", [odd])


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


OPEN_ACCOUNT = "0x60206000f3"
"""Answers every call with 0, which an entry point accepts as valid."""
OPEN_SAFE = "0x7f" + SAFE_DONE[2:] + "60406000a100"
"""Reports every operation as executed."""


async def acts(node: str, to: str, data: str) -> str:
    """Send a transaction as an impersonated account and return its hash."""
    sender = somebody()
    await rpc(node, "anvil_setBalance", sender, hex(10**20))
    asked = {"from": sender, "to": to, "data": data, "gas": hex(3_000_000)}
    return await mined(node, asked)


@pytest.mark.parametrize("standard", accounts.STANDARDS)
async def test_a_contract_that_takes_everything_is_nobodys_account(
    transactions: EvmTransactions, node: str, standard: str
) -> None:
    account, entry_point = somebody(), accounts.ENTRY_POINT
    await rpc(node, "anvil_setCode", account, OPEN_SAFE if standard == "Safe" else OPEN_ACCOUNT)
    await rpc(node, "anvil_setCode", entry_point, ARTEFACTS["EntryPoint"]["runtime"])
    if standard == "Safe":
        hash = await acts(node, account, accounts.execution(account, STRANGER, 77, "0x"))
    else:
        hash = await acts(node, entry_point, accounts.bundle([accounts.operation(account, 0, 77, "0x")]))
    found = await transactions.transaction("base", hash, account)
    assert [(call.to, call.value, call.doubt) for call in found.calls] == [(account, 77, Doubt.OPEN)]
    (listed,) = await transactions.of_accounts("base", {account}, found.block or 0, found.block or 0)
    assert (listed.hash, [call.value for call in listed.calls]) == (hash, [77])


async def test_what_another_contract_passed_on_is_told_as_such(transactions: EvmTransactions, node: str) -> None:
    account, relayer = somebody(), somebody()
    await rpc(node, "anvil_setCode", account, OPEN_SAFE)
    # Call the account without data.
    code = "0x6000600060006000600073" + account[2:] + "5af100"
    await rpc(node, "anvil_setCode", relayer, code)
    hash = await acts(node, relayer, accounts.execution(account, STRANGER, 77, "0x"))
    found = await transactions.transaction("base", hash, account)
    assert [call.doubt for call in found.calls] == [Doubt.RELAYED]
    (listed,) = await transactions.of_accounts("base", {account}, found.block or 0, found.block or 0)
    assert [call.doubt for call in listed.calls] == [Doubt.RELAYED]


async def test_a_flood_of_one_contracts_events_hides_no_other(
    transactions: EvmTransactions, end: Front, node: str
) -> None:
    loud, quiet = somebody(), somebody()
    for one in (loud, quiet):
        await rpc(node, "anvil_setCode", one, OPEN_SAFE)
    first = await head(node)
    await acts(node, loud, accounts.execution(loud, STRANGER, 1, "0x"))
    hash = await acts(node, quiet, accounts.execution(quiet, STRANGER, 2, "0x"))

    def said(call: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
        if call["method"] != "eth_getLogs" or loud not in call["params"][0]["address"]:
            return item
        error = {"code": -32005, "message": "query returned more than 10000 results"}
        return {"jsonrpc": "2.0", "id": item["id"], "error": error}

    end.change = said
    listed = await transactions.of_accounts("base", {loud, quiet}, first, await head(node))
    assert [one.hash for one in listed] == [hash]


async def test_a_sender_that_is_a_contract_is_told(transactions: EvmTransactions, node: str) -> None:
    """As on chains whose accounts are all contracts."""
    sender = somebody()
    hash = await sends(node, sender, 77)
    assert not (await transactions.transaction("base", hash)).from_contract
    await rpc(node, "anvil_setCode", sender, "0xef0100" + "11" * 20)
    assert not (await transactions.transaction("base", hash)).from_contract
    await rpc(node, "anvil_setCode", sender, "0x6001")
    assert (await transactions.transaction("base", hash)).from_contract
