"""How many calls the product's reads send to a node, by method: counted while its own readers work.

Following is read by the follower's own reader over hours that pass at once: its node answers in this process, has empty
blocks, and refuses ranges as a plan does. Balances are read from a real EVM node. A list of Solana's comes from an
index that answers in this process.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import orjson

from benchmarks.support.nft_chain import CHAIN, NftChain, wallet
from gateways.chains.balance_sheet import Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import ReadPoint
from gateways.evm.client import EvmChains
from gateways.evm.delegate_registry import DelegateRegistry
from gateways.evm.rpc import block_ranges, head_track
from gateways.evm.rpc import node as evm
from gateways.evm.rpc.node import Decode, Node
from gateways.evm.rpc.pool import NodePool
from gateways.evm.transactions import EvmTransactions
from gateways.evm.transfer_logs import CONTRACTS as READ_CONTRACTS
from gateways.evm.transfer_logs import WALLETS, TransferLogs
from gateways.solana.client import SolanaChains
from gateways.solana.node import GENESIS, SolanaNodes
from gateways.transport.base58 import decode, encode
from jobs.reconciler import BATCH
from services.triggers.chain_cursor import Position
from services.triggers.transfer_poller import SOONEST_SECONDS, Reader

Calls = Counter[str]
"""Calls by method; "batch" counts JSON-RPC batches beside the calls in them."""
Answer = Callable[[str, list[Any] | dict[str, Any]], object]
"""A call's result, or {"error": …}, by method and parameters."""
DAY = 86_400
CONTRACTS = ["0x" + 38 * "c" + f"{number:02x}" for number in range(3)]
SETTLING_LOOKS = 12
"""Looks before the counting begins: until then a reader learns how many blocks its node gives."""
FEWEST_LOOKS, FEWEST_SECONDS = 24, 600
_NODES = itertools.count()


@contextmanager
def counting(answer: Answer | None = None) -> Iterator[Calls]:
    """Count what is sent to nodes; with `answer`, nothing is sent and that answers."""
    calls, post = Calls(), Node.post

    async def counted(self: Node, body: bytes, decode: Decode = orjson.loads) -> object:
        asked = orjson.loads(body)
        items: list[dict[str, Any]] = asked if isinstance(asked, list) else [asked]
        if isinstance(asked, list):
            calls["batch"] += 1
        for item in items:
            calls[item["method"]] += 1
        if answer is None:
            return await post(self, body, decode)
        said = [_said(item, answer(item["method"], item["params"])) for item in items]
        return said if isinstance(asked, list) else said[0]

    Node.post = counted
    try:
        yield calls
    finally:
        Node.post = post


def _said(item: dict[str, Any], result: object) -> dict[str, Any]:
    error = isinstance(result, dict) and "error" in result
    return {"jsonrpc": "2.0", "id": item["id"], **(cast("dict[str, Any]", result) if error else {"result": result})}


@dataclass
class Clock:
    """A clock set by hand, for all code that decides by monotonic or loop time what to ask."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def hand_set() -> Iterator[Clock]:
    """Make this the readers' clock."""
    clock, loop = Clock(), cast("Any", asyncio.get_running_loop())
    modules: list[Any] = [evm, head_track, block_ranges]
    kept, real = [module.monotonic for module in modules], loop.time
    for module in modules:
        module.monotonic = clock
    # Timers work as usual; only comparisons with loop time see the hours that have passed.
    begun = clock.now
    loop.time = lambda: real() + clock.now - begun
    try:
        yield clock
    finally:
        del loop.time
        for module, own in zip(modules, kept, strict=True):
            module.monotonic = own


def quiet_node(chain: str, clock: Clock, log_blocks: int | None) -> Answer:
    """Answer as a node whose blocks come at the chain's usual pace and are empty."""

    def block(number: int) -> dict[str, str]:
        return {"number": hex(number), "hash": f"0x{number:064x}", "timestamp": hex(int(time.time()))}

    def answer(method: str, params: list[Any] | dict[str, Any]) -> object:
        newest = int(clock.now / CHAINS[chain].block_seconds)
        if method == "eth_chainId":
            return hex(CHAINS[chain].chain_id)
        if method == "eth_blockNumber":
            return hex(newest)
        if method == "eth_getTransactionCount":
            return "0x0"
        if method == "eth_call":
            return "0x" + (32).to_bytes(32, "big").hex() + bytes(32).hex()  # an empty list
        assert isinstance(params, list)
        if method == "eth_getBlockByNumber":
            return block(newest if params[0] == "latest" else int(params[0], 16))
        assert method == "eth_getLogs", method
        asked = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1
        if log_blocks is not None and asked > log_blocks:
            return {"error": {"code": -32600, "message": f"eth_getLogs is limited to a {log_blocks} block range"}}
        return []

    return answer


async def following(
    chain: str, seconds: float, *, log_blocks: int | None = None, socket: bool = False, wallets: int = 0
) -> dict[str, float]:
    """Return the calls a day for following the contracts, or so many members' wallets, while nothing happens.

    With more than one node they take turns, so that all together get as much. Each reading has a node of its own: what
    a node was found to give is remembered by its address.
    """
    with hand_set() as clock, counting(quiet_node(chain, clock, log_blocks)) as calls:
        pool = NodePool({chain: [f"http://node-{next(_NODES)}.test"]})
        outside: Any = SimpleNamespace(transfers=TransferLogs(pool))
        addresses = [wallet(number) for number in range(wallets)] or CONTRACTS
        reader, position = Reader(chain, WALLETS if wallets else READ_CONTRACTS), Position(0, "")
        looks, began, since = 0, 0.0, clock.now
        while looks < SETTLING_LOOKS + FEWEST_LOOKS or clock.now - began < FEWEST_SECONDS:
            if looks == SETTLING_LOOKS:
                calls.clear()
                began = clock.now
            look = await reader.look(outside, position, addresses)
            position = look.position
            looks += not look.more
            if not look.more:
                clock.now = _next_look(clock.now, since, seconds, CHAINS[chain].block_seconds if socket else None)
        await pool.close()
        return {method: count * DAY / (clock.now - began) for method, count in calls.items()}


def _next_look(now: float, since: float, seconds: float, block_seconds: float | None) -> float:
    """Return when the follower polls again: at its next beat, or at the next block that a socket announces."""
    beat = since + (int((now - since) / seconds + 1e-6) + 1) * seconds
    if block_seconds is None:
        return beat
    block = (int(now / block_seconds + 1e-6) + 1) * block_seconds
    return max(now + min(SOONEST_SECONDS, seconds), min(beat, block))


@asynccontextmanager
async def _chains(url: str) -> AsyncIterator[EvmChains]:
    chains = EvmChains(NodePool({CHAIN: [url]}))
    try:
        yield chains
    finally:
        await chains.close()


async def balances(node: NftChain, members: int, contracts: Sequence[str], *, settled: bool = False) -> Calls:
    """Return the calls of a sweep over members with one wallet each, once the node's limits are known."""
    owners = tuple(wallet(number) for number in range(min(members, BATCH)))
    found = Calls()
    async with _chains(node.url) as chains:

        async def look(count: int) -> Calls:
            node.refresh()
            with counting() as calls:
                await chains.balances(CHAIN, [Segment(tuple(contracts), owners[:count])], at=ReadPoint(settled=settled))
            return calls

        await look(len(owners))
        whole, rest = divmod(members, BATCH)
        for times, count in ((whole, BATCH), (1, rest)):
            if times and count:
                found.update({method: times * number for method, number in (await look(count)).items()})
    return found


async def delegated(members: int) -> dict[str, float]:
    """Return the calls of reading who delegated to the members' wallets on one chain, where nobody has."""
    with hand_set() as clock, counting(quiet_node(CHAIN, clock, None)) as calls:
        pool = NodePool({CHAIN: ["http://node.test"]})
        await DelegateRegistry(pool, bytes(32)).incoming(CHAIN, [wallet(number) for number in range(members)])
        await pool.close()
        return dict(calls)


async def open_challenge() -> dict[str, float]:
    """Return the calls of one poll for the transaction of one open challenge, on one chain."""
    with hand_set() as clock, counting(quiet_node(CHAIN, clock, None)) as calls:
        pool = NodePool({CHAIN: ["http://node.test"]})
        transactions = EvmTransactions(pool)
        await transactions.nonces(CHAIN, [wallet(1)])
        calls.clear()
        await transactions.nonces(CHAIN, [wallet(1)])
        await pool.close()
        return dict(calls)


async def probe(chain: str) -> dict[str, float]:
    """Return the calls of one check by Health of a node that has not been used for ten minutes."""
    answer: Answer
    with hand_set() as clock:
        answer = index(1, 1) if chain == "solana" else quiet_node(chain, clock, None)
        with counting(answer) as calls:
            if chain == "solana":
                nodes = SolanaNodes(["http://node.test"])
                await SolanaChains(nodes).head(chain)
                await nodes.close()
            else:
                pool = NodePool({chain: ["http://node.test"]})
                await pool.first(chain, Node.head)
                await pool.close()
            return dict(calls)


COLLECTION = encode(bytes(31) + b"\x07")


def solana_owner(number: int) -> str:
    """Return the address of a member's wallet."""
    return encode((number + 1).to_bytes(32, "big"))


def index(supply: int, owners: int) -> Answer:
    """Return an index of one collection of `supply` assets held by `owners` wallets, and one more asset for each."""
    step = (2**256 - 1) // (supply + 1)
    assets = [_asset((place + 1) * step, place % owners, COLLECTION) for place in range(supply)]
    others = {solana_owner(number): _asset(number + 1, number, "") for number in range(owners)}
    known = [int.from_bytes(decode(str(one["id"])) or b"", "big") for one in assets]

    def answer(method: str, params: list[Any] | dict[str, Any]) -> object:
        if method == "getGenesisHash":
            return GENESIS
        if method == "getSlot":
            return 300_000_000
        if method == "getBlockTime":
            return int(time.time())
        assert isinstance(params, dict), method
        after, before = (int.from_bytes(decode(params[key]) or b"", "big") if key in params else None
                         for key in ("after", "before"))  # fmt: skip
        if method == "getAssetsByGroup":
            found = [one for one, place in zip(assets, known, strict=True)
                     if (after is None or place > after) and (before is None or place < before)]  # fmt: skip
        else:
            assert method == "getAssetsByOwner", method
            found = [others[params["ownerAddress"]]] if after is None else []
        found = found[: params["limit"]]
        return {"total": len(found), "limit": params["limit"], "items": found}

    return answer


def _asset(number: int, owner: int, collection: str) -> dict[str, object]:
    return {
        "id": encode(number.to_bytes(32, "big")), "interface": "V1_NFT", "content": {"metadata": {"name": "x"}},
        "grouping": [{"group_key": "collection", "group_value": collection}] if collection else [],
        "ownership": {"owner": solana_owner(owner)}, "burnt": False,
    }  # fmt: skip


async def solana_list(members: int, supply: int) -> dict[str, float]:
    """Return the calls of one question about a collection on Solana, for members with one wallet each."""
    with counting(index(supply, members)) as calls:
        nodes = SolanaNodes(["http://node.test"])
        chains = SolanaChains(nodes)
        owners = [solana_owner(number) for number in range(members)]
        await chains.head("solana")
        calls.clear()
        await chains.tokens("solana", COLLECTION, owners)
        await nodes.close()
    return dict(calls)
