"""Transactions on the EVM chains: by hash, or what an account sent to itself, and whether an account is a contract.

A contract account sends nothing itself: its actions are in other accounts' transactions (smart_accounts).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import NodeTimedOut, Reverted, StateMissing, TooMuch
from gateways.evm.rpc.log_refusals import about_range, too_much
from gateways.evm.rpc.node import Head, Node, binary, block_in, quantity
from gateways.evm.rpc.pool import NodePool
from gateways.evm.rpc.stated_limits import stated_blocks
from gateways.evm.smart_accounts import (
    ENTRY_POINTS,
    OPERATION_DONE,
    SAFE_DONE,
    AccountCall,
    Doubt,
    Forgery,
    ReceiptLog,
    calls_of,
    took_a_forgery,
)
from gateways.transport.chunks import chunks
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.json_shape import Shape, listed

ACCOUNTS_A_REQUEST = 500
BLOCKS_A_REQUEST = 10
MOST_STEPS = 60
"""The most steps of the binary search in an account's past, one request each."""
ACCOUNTS_OF_A_FILTER = 50
MOST_OF_AN_ACCOUNT = 100
"""The most transactions of one contract account that a search reads: the newest ones. Others can be named by hash."""
MOST_SENT = 2**63 - 1
"""The largest number of transactions of an account that can be stored; no account has ever sent so many."""
DELEGATED = bytes.fromhex("ef0100")
"""The first bytes of the code of an ordinary account that lets a contract act for it (EIP-7702)."""

Call = tuple[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction as one node sees it; addresses in lower case, `value` in wei.

    `block` is None while it waits to be mined; then the fields from `block_time` to `from_contract` mean nothing.
    `confirmations` includes the block that it is in. `calls` are those that a contract `account` made in it, where they
    were asked for.
    """

    chain: str
    hash: str
    sender: str
    to: str | None
    value: int
    data: bytes
    nonce: int
    block: int | None = None
    block_time: datetime | None = None
    succeeded: bool = False
    confirmations: int = 0
    from_contract: bool = False
    """Whether the sender is a contract on this chain; on some chains all accounts are."""
    account: str = ""
    calls: tuple[AccountCall, ...] = ()
    endpoint: int = 0
    """The number of the node that gave the transaction."""


@dataclass(frozen=True, slots=True)
class Nonces:
    """How many transactions each account had sent at about `block`, by one node; `contracts` are not ordinary accounts.

    A node may answer the parts of one request a block or two apart.
    """

    chain: str
    block: int
    sent: Mapping[str, int]
    contracts: frozenset[str]


class EvmTransactions:
    """The transactions of the chains that have a node. A failure is a ProviderError, never "there is none".

    Accounts are given in lower case.
    """

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool

    def chains(self) -> list[str]:
        """Return the EVM chains that can be asked."""
        return self._pool.chains()

    async def transaction(
        self, chain: str, hash: str, account: str = "", *, endpoint: int | None = None
    ) -> Transaction:
        """Return the transaction with this hash; NotThere only when no node of the chain knows it and none failed.

        Its receipt and block must agree with it: the transaction of an orphaned block waits to be mined. With an
        `account`, the result has the calls of that contract account. With a number as `endpoint`, only that node is
        asked.
        """

        async def ask(node: Node) -> Transaction:
            head, (found, receipt) = await _at_head(
                node, [("eth_getTransactionByHash", (hash,)), ("eth_getTransactionReceipt", (hash,))]
            )
            if found is None:
                raise NotThere(node.name, "it does not know this transaction")
            waiting = _transaction(node, found)
            if waiting.hash != hash.lower():
                raise ProviderConfused(node.name, "it answered with another transaction")
            if waiting.block is None or receipt is None:
                return acting(_unmined(waiting), account)
            return await self._mined(node, head, waiting, Shape(receipt, "the receipt", node.name), account)

        return await self._pool.first(chain, ask, endpoint=endpoint)

    async def _mined(self, node: Node, head: Head, found: Transaction, receipt: Shape, account: str) -> Transaction:
        block = quantity(node.name, receipt.text("blockNumber"))
        asked = [("eth_getBlockByNumber", (hex(block), False)), ("eth_getCode", (found.sender, "latest"))]
        said, code = _all(await node.batch(asked))
        header = Shape(said, "the block", node.name)
        if header.text("hash") != receipt.text("blockHash") or block > head.block:
            return acting(_unmined(found), account)
        there = binary(node.name, code)
        mined = replace(
            found,
            block=block,
            block_time=block_in(node.name, said).time,
            succeeded=quantity(node.name, receipt.text("status")) == 1,
            confirmations=head.block - block + 1,
            from_contract=bool(there) and not there.startswith(DELEGATED),
        )
        if not mined.succeeded:
            return acting(mined, account)
        return await _unforged(node, acting(mined, account, [_log(node, one) for one in receipt.items("logs")]))

    async def nonces(self, chain: str, accounts: Sequence[str], *, look_at_code: bool = False) -> Nonces:
        """Return how many transactions the accounts have sent, and with `look_at_code` which of them are contracts.

        One request asks about up to 500 accounts.
        """

        async def ask(node: Node) -> Nonces:
            sent, contracts, first = dict[str, int](), set[str](), None
            for some in chunks(accounts, ACCOUNTS_A_REQUEST):
                calls: list[Call] = [("eth_getTransactionCount", (account, "latest")) for account in some]
                if look_at_code:
                    calls += [("eth_getCode", (account, "latest")) for account in some]
                head, results = await _at_head(node, calls)
                first = first if first is not None else head.block
                for account, count in zip(some, results, strict=False):
                    sent[account] = _sent(node.name, count)
                for account, code in zip(some, results[len(some) :], strict=False):
                    if (there := binary(node.name, code)) and not there.startswith(DELEGATED):
                        contracts.add(account)
            return Nonces(chain, first or 0, sent, frozenset(contracts))

        return await self._pool.first(chain, ask)

    async def to_themselves(self, chain: str, accounts: Collection[str], first: int, last: int) -> list[Transaction]:
        """Return the accounts' transactions to themselves in the blocks `first` to `last`, oldest first.

        The blocks themselves are read, which every node keeps, however old they are.
        """
        wanted = frozenset(accounts)

        async def ask(node: Node) -> list[Transaction]:
            found: list[Transaction] = []
            for start in range(first, last + 1, BLOCKS_A_REQUEST):
                found += await _search(node, wanted, start, min(last, start + BLOCKS_A_REQUEST - 1))
            return found

        # A long range takes many requests, each of them within its own time.
        patience = self._pool.deadline * (1 + (last - first) / BLOCKS_A_REQUEST / 4)
        deadline = asyncio.get_running_loop().time() + patience
        return await self._pool.first(chain, ask, deadline=deadline)

    async def of_accounts(self, chain: str, accounts: Collection[str], first: int, last: int) -> list[Transaction]:
        """Return the transactions in which contract accounts acted in the blocks `first` to `last`.

        They are found by the events of their executions, account by account, each account's oldest first. The calls are
        those in the transaction's input; whether they succeeded is not checked. An account with too many events in a
        single block is left out.
        """

        async def ask(node: Node) -> list[Transaction]:
            wanted, found = sorted(accounts), list[Transaction]()
            for some in chunks(wanted, ACCOUNTS_OF_A_FILTER):
                acted = list[tuple[str, str]]()
                most = node_limits.known(node.url).log_blocks or last - first + 1
                for begin in range(first, last + 1, most):
                    acted += await _executions(node, some, begin, min(last, begin + most - 1))
                for account in some:
                    found += await _acted(node, account, [hash for who, hash in acted if who == account])
            return found

        return await self._pool.first(chain, ask)

    async def busy_blocks(self, chain: str, account: str, after: tuple[int, int], upto: tuple[int, int]) -> list[int]:
        """Return the blocks in which an account sent something, between two points `(block, transactions sent)`.

        The binary search needs a node that still has the states of these blocks. Raises StateMissing where the node
        does not, and TooMuch for an account that sent so much that the search is not worth it.
        """
        return await self._pool.first(chain, lambda node: _busy(node, account, after, upto))


def _sent(provider: str, value: object) -> int:
    """Return a number of transactions. Raises ProviderConfused for one that no account can have sent."""
    count = quantity(provider, value)
    if count > MOST_SENT:
        raise ProviderConfused(provider, "an account has sent more transactions than there can be")
    return count


async def _at_head(node: Node, calls: Sequence[Call]) -> tuple[Head, Sequence[object]]:
    """Return the head and the results of the calls, all from one request.

    The node must serve the right chain and not be stale.
    """
    asked: list[Call] = [("eth_chainId", ()), ("eth_getBlockByNumber", ("latest", False)), *calls]
    results = _all(await node.batch(asked))
    if quantity(node.name, results[0]) != node.chain.chain_id:
        raise ProviderConfused(node.name, f"it does not serve chain {node.chain.chain_id}")
    return await node.read_head(results[1]), results[2:]


def _all(results: Sequence[object]) -> Sequence[object]:
    """Return the results of a batch. Raises the ProviderError of the first call that failed."""
    for result in results:
        if isinstance(result, ProviderError):
            raise result
    return results


async def _search(node: Node, wanted: frozenset[str], first: int, last: int) -> list[Transaction]:
    """Return the wanted accounts' transactions to themselves in a few blocks, read in halves if they are too much."""
    try:
        results = await node.batch([("eth_getBlockByNumber", (hex(block), True)) for block in range(first, last + 1)])
    except (TooMuch, NodeTimedOut):
        if first == last:
            raise
        middle = (first + last) // 2
        return await _search(node, wanted, first, middle) + await _search(node, wanted, middle + 1, last)
    found: list[Transaction] = []
    for block in _all(results):
        if block is None:
            raise ProviderDown(node.name, "it does not have that block yet")
        for item in Shape(block, "the block", node.name).items("transactions"):
            if _is_to_itself(item, wanted):
                found.append(_transaction(node, item))
    return found


def _is_to_itself(item: object, wanted: frozenset[str]) -> bool:
    """Return whether a block's transaction is from one of the accounts to itself.

    Most are not, so this must be cheap.
    """
    if not isinstance(item, dict):
        return False
    sender, to = item.get("from"), item.get("to")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(sender, str) and isinstance(to, str) and sender.lower() == to.lower() and sender.lower() in wanted


async def _busy(node: Node, account: str, after: tuple[int, int], upto: tuple[int, int]) -> list[int]:
    """Return the blocks that raised the account's count, between two blocks after which it is known."""
    found: list[int] = []
    open_ = [(after, upto)]
    for _ in range(MOST_STEPS):
        narrow = [(low, high) for low, high in open_ if low[1] < high[1]]
        found += [high[0] for low, high in narrow if high[0] - low[0] == 1]
        wide = [(low, high) for low, high in narrow if high[0] - low[0] > 1]
        if not wide:
            return sorted(found)
        if len(wide) > ACCOUNTS_A_REQUEST:
            break
        middles = [(low[0] + high[0]) // 2 for low, high in wide]
        results = await node.batch([("eth_getTransactionCount", (account, hex(block))) for block in middles])
        open_ = list[tuple[tuple[int, int], tuple[int, int]]]()
        for (low, high), middle, result in zip(wide, middles, _all(results), strict=True):
            point = (middle, quantity(node.name, result))
            open_ += [(low, point), (point, high)]
    raise TooMuch(node.name, "the account sent too much in between", status=200)


def _transaction(node: Node, item: object) -> Transaction:
    """Return the transaction in a JSON-RPC object; its block number only says whether it has a block."""
    shape = Shape(item, "the transaction", node.name)
    to, block = shape.text_or_none("to"), shape.text_or_none("blockNumber")
    return Transaction(
        chain=node.chain.key,
        hash=shape.text("hash").lower(),
        sender=shape.text("from").lower(),
        to=to.lower() if to is not None else None,
        value=quantity(node.name, shape.text("value")),
        data=binary(node.name, shape.text("input")),
        nonce=quantity(node.name, shape.text("nonce")),
        block=quantity(node.name, block) if block is not None else None,
        endpoint=node.index,
    )


async def _acted(node: Node, account: str, hashes: Sequence[str]) -> list[Transaction]:
    """Return the newest of a contract account's transactions, given the hashes of its executions, oldest first."""
    newest = list(dict.fromkeys(hashes))[-MOST_OF_AN_ACCOUNT:]
    results = _all(await node.batch([("eth_getTransactionByHash", (hash,)) for hash in newest]))
    found = [acting(_transaction(node, result), account) for result in results if result is not None]
    # Where the input does not show it, the event still says that the account acted.
    relayed = (AccountCall(doubt=Doubt.RELAYED),)
    return [one if one.calls else replace(one, account=account, calls=relayed) for one in found]


async def _executions(node: Node, accounts: Sequence[str], first: int, last: int) -> list[tuple[str, str]]:
    """Return `(account, transaction's hash)` of each execution that a Safe or an entry point reports, oldest first.

    They are asked for in halves if they are too much at once; an account with too many in a single block gets none.
    """
    try:
        return await _executions_at_once(node, accounts, first, last)
    except ProviderError as fault:
        if not too_much(fault):
            raise
        stated = stated_blocks(str(fault))
        if stated is not None and about_range(fault):
            node_limits.note(node.url, log_blocks=stated)
    if first < last:
        middle = (first + last) // 2
        before = await _executions(node, accounts, first, middle)
        return before + await _executions(node, accounts, middle + 1, last)
    if len(accounts) == 1:
        return []
    half = len(accounts) // 2
    some = await _executions(node, accounts[:half], first, last)
    return some + await _executions(node, accounts[half:], first, last)


async def _executions_at_once(node: Node, accounts: Sequence[str], first: int, last: int) -> list[tuple[str, str]]:
    """Return the same by one request.

    It also asks for the head, since a node gives no logs of blocks that it does not have yet.
    """
    where = {"fromBlock": hex(first), "toBlock": hex(last)}
    padded = ["0x" + 24 * "0" + account[2:] for account in accounts]
    of_safes = {**where, "address": list(accounts), "topics": [[SAFE_DONE]]}
    of_entry_points = {**where, "address": sorted(ENTRY_POINTS), "topics": [OPERATION_DONE, None, padded]}
    head, *lists = _all(
        await node.batch([("eth_blockNumber", ()), ("eth_getLogs", (of_safes,)), ("eth_getLogs", (of_entry_points,))])
    )
    if quantity(node.name, head) < last:
        raise StateMissing(node.name, "it does not have that block yet")
    found = list[tuple[int, str, str]]()
    for said in lists:
        for item in listed(said, "what eth_getLogs answered", node.name):
            shape, log = Shape(item, "the log", node.name), _log(node, item)
            account = log.address if log.topics[:1] == (SAFE_DONE,) else "0x" + "".join(log.topics[2:3])[-40:]
            found.append((quantity(node.name, shape.text("blockNumber")), account, shape.text("transactionHash")))
    found.sort(key=lambda one: one[0])
    return [(account, hash.lower()) for _, account, hash in found if account in accounts]


def acting(found: Transaction, account: str, logs: Sequence[ReceiptLog] | None = None) -> Transaction:
    """Return the transaction with a contract account's calls in it; without `logs`, by its input alone."""
    if not account or found.sender == account:
        return found
    calls = calls_of(found.to, found.data, logs, account)
    return replace(found, account=account, calls=calls) if calls else found


async def _unforged(node: Node, found: Transaction) -> Transaction:
    """Return the transaction, with a doubt where the account also accepts a call that nobody has signed."""
    open_to_all = set[Forgery]()
    for forgery in {call.forgery for call in found.calls if call.doubt is None and call.forgery is not None}:
        sender, to, data = forgery
        with suppress(Reverted, TooMuch):
            said = await node.call("eth_call", ({"from": sender, "to": to, "data": data}, "latest"))
            if took_a_forgery(forgery, binary(node.name, said)):
                open_to_all.add(forgery)
    calls = (replace(call, doubt=Doubt.OPEN) if call.forgery in open_to_all else call for call in found.calls)
    return replace(found, calls=tuple(calls)) if open_to_all else found


def _log(node: Node, item: object) -> ReceiptLog:
    shape = Shape(item, "the log", node.name)
    topics = [str(one).lower() for one in shape.items("topics")]
    return ReceiptLog(shape.text("address").lower(), tuple(topics), binary(node.name, shape.text("data")))


def _unmined(found: Transaction) -> Transaction:
    return Transaction(
        found.chain, found.hash, found.sender, found.to, found.value, found.data, found.nonce, endpoint=found.endpoint
    )
