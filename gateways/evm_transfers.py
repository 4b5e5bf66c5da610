"""Transfers as they happen: the logs of token contracts in a range of blocks, read from one node of a chain.

The registry of delegations is read along, in the same request: what goes from a vault to a delegate there is a right.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, cast

import msgspec
import orjson

from gateways import delegations
from gateways.errors import ProviderConfused, ProviderError
from gateways.evm import Head, Node, patiently
from gateways.evm_errors import TookTooLong
from gateways.evm_logs import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE, too_much
from gateways.evm_pool import NodePool

NOBODY = "0x" + 40 * "0"

_THIRD = (TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE)
"""The events that have sender and receiver as their third and fourth topic."""

FIRST_SPAN, WIDEST_SPAN = 500, 10_000
"""Blocks in one request: where we start, and the most that the widest paid plans allow (external-apis §4.8)."""
CONTRACTS_AT_ONCE = 500
WALLETS_AT_ONCE = 500


class Transfer(NamedTuple):
    """A token of a contract that left one address for another, in a block with this hash.

    Where the contract is the registry of delegations: what a vault (the sender) lets a delegate do has changed.
    A tuple, since thousands are made and compared at a time: that takes half as long as with a dataclass.
    """

    block: int
    block_hash: str
    contract: str
    sender: str
    receiver: str


class Log(msgspec.Struct, gc=False, rename="camel"):
    """What we read of a log; the other fields, which are two thirds of it, are passed over and never made."""

    address: str
    topics: list[str]
    block_number: str
    block_hash: str


class _Logs(msgspec.Struct):
    """A good answer to eth_getLogs."""

    id: int
    result: list[Log]
    error: None = None


_LOGS = msgspec.json.Decoder(_Logs)


class Transfers(Protocol):
    """What moved on the chains. Every failure is a ProviderError, never an empty list."""

    def endpoints(self, chain: str) -> int:
        """How many nodes are set for the chain; 0 when it is off."""
        ...

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        """The newest block of one node, once it has shown that it may be trusted and is not behind."""
        ...

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        """The hash of a block as one node has it; None when it has no such block (any more)."""
        ...

    async def of_contracts(
        self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        """Every transfer of these contracts' tokens in the blocks from `first` to `last`, both included.

        With the registry of delegations among the contracts, its changes too.
        """
        ...

    async def of_wallets(
        self, chain: str, wallets: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        """Every transfer of any contract's tokens from or to these wallets in the blocks from `first` to `last`."""
        ...


class TransferLogs:
    """The real thing, for the EVM chains. It learns how many blocks each node allows in one request."""

    def __init__(self, nodes: NodePool) -> None:
        self._nodes = nodes
        self._spans: dict[str, int] = {}

    def endpoints(self, chain: str) -> int:
        """How many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return self._nodes.endpoints(chain)

    async def head(self, chain: str, endpoint: int, not_before_block: int = 0) -> Head:
        """The newest block of one node that serves the right chain, is not stale, and has `not_before_block`.

        It is handed on: whoever is looked at because of what it brought is looked at in this block.
        """

        async def ask(node: Node) -> Head:
            head = await node.head(not_before_block)
            node.hand_on(head)
            return head

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def block_hash(self, chain: str, block: int, endpoint: int) -> str | None:
        """The hash of a block; None when the node does not have it."""

        async def ask(node: Node) -> str | None:
            found = await node.call("eth_getBlockByNumber", (hex(block), False))
            if found is None:
                return None
            said = cast("dict[str, object]", found).get("hash") if isinstance(found, dict) else None
            if not isinstance(said, str):
                raise ProviderConfused(node.name, f"its block {block} has no hash")
            return said

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def of_contracts(
        self, chain: str, contracts: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        """By the contracts' addresses and the events; one request for all of them where that fits."""
        filters: list[Mapping[str, object]] = [
            {
                "address": list(contracts[start : start + CONTRACTS_AT_ONCE]),
                "topics": [[TRANSFER, *_THIRD, *delegations.CHANGED]],
            }
            for start in range(0, len(contracts), CONTRACTS_AT_ONCE)
        ]
        return await self._all(chain, filters, first, last, endpoint)

    async def of_wallets(
        self, chain: str, wallets: Sequence[str], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        """By the wallets as indexed topics: sender and receiver, of both families of events."""
        filters: list[Mapping[str, object]] = []
        for start in range(0, len(wallets), WALLETS_AT_ONCE):
            who = ["0x" + 24 * "0" + wallet[2:] for wallet in wallets[start : start + WALLETS_AT_ONCE]]
            filters += [
                {"topics": [TRANSFER, who]},
                {"topics": [TRANSFER, None, who]},
                {"topics": [list(_THIRD), None, who]},
                {"topics": [list(_THIRD), None, None, who]},
            ]
        return await self._all(chain, filters, first, last, endpoint)

    async def _all(
        self, chain: str, filters: Sequence[Mapping[str, object]], first: int, last: int, endpoint: int
    ) -> list[Transfer]:
        async def ask(node: Node) -> list[Transfer]:
            found: list[Transfer] = []
            for one in filters:
                found += await self._range(node, one, first, last)
            return found

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def _range(self, node: Node, wanted: Mapping[str, object], first: int, last: int) -> list[Transfer]:
        """The range in pieces that the node takes; a refused piece is halved, an easy one followed by a wider."""
        found: list[Transfer] = []
        while first <= last:
            span = self._spans.get(node.url, FIRST_SPAN)
            until = min(last, first + span - 1)
            where = {"fromBlock": hex(first), "toBlock": hex(until)}
            try:
                answer = await patiently(node, "eth_getLogs", ({**wanted, **where},), decode_logs)
            except ProviderError as fault:
                if until == first or not too_much(fault):
                    raise
                self._spans[node.url] = max(1, (until - first + 1) // 2)
                if isinstance(fault, TookTooLong):
                    raise
                continue
            found += read_logs(node.name, answer, first, until)
            if until - first + 1 == span:
                self._spans[node.url] = min(WIDEST_SPAN, span + max(1, span // 4))
            first = until + 1
        return found


def decode_logs(content: bytes) -> object:
    """A good answer to eth_getLogs with a list of Log as its result; any other answer as orjson reads it.

    Raises orjson.JSONDecodeError for what is no JSON. What stands in fields that nobody reads is not looked at closely:
    a number may be too large there, a text no UTF-8.
    """
    try:
        answer = _LOGS.decode(content)
    except (ValueError, RecursionError):  # an error, a wrong shape, no JSON at all: not for here to say which
        return cast("object", orjson.loads(content))
    return {"id": answer.id, "result": answer.result}


def read_logs(provider: str, answer: object, first: int, last: int) -> list[Transfer]:
    """The transfers in an answer to eth_getLogs; ERC-20's, which look alike with a topic less, are left out.

    `answer` is the result that `decode_logs` gave, or plain JSON. Raises ProviderConfused for anything that is no list
    of logs of these blocks.
    """
    if not isinstance(answer, list):
        raise ProviderConfused(provider, "the logs are no list")
    try:
        return _transfers(provider, msgspec.convert(cast("list[object]", answer), list[Log]), first, last)
    except (ValueError, IndexError) as fault:
        raise ProviderConfused(provider, "a log has a wrong shape") from fault


def _transfers(provider: str, logs: Sequence[Log], first: int, last: int) -> list[Transfer]:
    """Raises ValueError or IndexError for a log of a wrong shape."""
    found: list[Transfer] = []
    # Thousands of rounds: nothing in here is looked up or called that need not be. A NamedTuple's own constructor is
    # a function in Python, tuple's is none. Logs come block by block: most have the number of the one before.
    add, make, registry = found.append, tuple[int | str, ...].__new__, delegations.CHANGED
    number, block = "", 0
    for log in logs:
        topics = log.topics
        if log.block_number != number or not number:
            number = log.block_number
            block = int(number, 16)
            if not first <= block <= last:
                raise ProviderConfused(provider, f"a log of block {block}, which was not asked for")
        event, at = topics[0], 1
        if event != TRANSFER and event not in registry:
            at = 2
        if len(topics) != 4 and event not in registry:
            continue
        sender, receiver = topics[at], topics[at + 1]
        if len(sender) != 66 or len(receiver) != 66:
            raise ValueError(topics)
        sender, receiver = "0x" + sender[26:].lower(), "0x" + receiver[26:].lower()
        add(make(Transfer, (block, log.block_hash, log.address.lower(), sender, receiver)))
    return found
