"""Finds out, by reading only, what one node gives: logs, batches, state override, old state, the finalized block."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TypeVar

from gateways.evm.balances.balances_program import SCRATCH
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.block_ranges import WIDEST_SPAN
from gateways.evm.rpc.errors import NeedsAddress, RpcRefused, StateMissing
from gateways.evm.rpc.log_refusals import too_much
from gateways.evm.rpc.node import Head, Node
from gateways.evm.rpc.node_limits import NodeLimits
from gateways.evm.rpc.pool import NodePool
from gateways.evm.rpc.special_addresses import UNUSED
from gateways.evm.rpc.stated_limits import stated_blocks
from gateways.evm.tokens.event_topics import TRANSFER
from gateways.transport.errors import ProviderError

SPANS = (WIDEST_SPAN, 5_000, 2_000, 1_000, 500, 100, 50, 10, 5, 1)
"""Blocks of logs that plans give, tried from the largest number on where a refusal states no limit."""
DEPTHS = (1_000_000, 100_000, 10_000, 1_000, 127, 64)
"""How many blocks back the state is asked for, in this order, until the node has it; full nodes keep 128."""
LARGEST_BATCH = 100
"""The most calls that our readers send in one batch."""
ANSWER = 42
RETURNS_IT = f"0x60{ANSWER:02x}60005260206000f3"
"""EVM code that returns ANSWER."""

T = TypeVar("T")


class NodeProbe:
    """Finds out what the nodes of the EVM chains give."""

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool

    async def limits(self, chain: str, endpoint: int) -> NodeLimits:
        """Return the limits of one node, and note them; None for a limit that could not be found out.

        Raises ProviderError for a node that cannot be trusted right now.
        """

        async def ask(node: Node) -> NodeLimits:
            head = await node.head()
            found = NodeLimits(
                log_blocks=await _tried(lambda: _log_blocks(node, head)),
                logs_need_address=await _tried(lambda: _logs_need_address(node, head)),
                batch=await _tried(lambda: _batch(node)),
                state_override=await _tried(lambda: _overrides(node, head)),
                states=await _tried(lambda: _states(node, head)),
                finalized=await _tried(lambda: _finalized(node)),
            )
            node_limits.note(node.url, **asdict(found))  # pyright: ignore[reportArgumentType]
            return found

        return await self._pool.first(chain, ask, endpoint=endpoint)


async def _tried(ask: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await ask()
    except ProviderError:
        return None


async def _log_blocks(node: Node, head: Head) -> int | None:
    """Return how many blocks of logs are given; None where as many as we ever ask for are, or all that there are."""
    size = SPANS[0]
    while True:
        where = {"fromBlock": hex(max(0, head.block - size + 1)), "toBlock": hex(head.block)}
        try:
            await node.call("eth_getLogs", ({"address": [UNUSED], **where},))
        except ProviderError as fault:
            if size == 1 or not too_much(fault):
                raise
            stated = stated_blocks(str(fault))
            fewer = next((one for one in SPANS if one < size), 1)
            size = stated if stated is not None and stated < size else fewer
        else:
            return size if size < SPANS[0] else None


async def _logs_need_address(node: Node, head: Head) -> bool:
    block = hex(head.block)
    topics = [TRANSFER, "0x" + 24 * "0" + UNUSED[2:]]
    try:
        await node.call("eth_getLogs", ({"fromBlock": block, "toBlock": block, "topics": topics},))
    except NeedsAddress:
        return True
    return False


async def _batch(node: Node) -> int | None:
    """Return how many calls are taken in a batch; None where the largest batch that we send is taken."""
    await node.batch([("eth_chainId", ())] * LARGEST_BATCH)
    return node_limits.known(node.url).batch


async def _overrides(node: Node, head: Head) -> bool:
    try:
        said = await node.call("eth_call", ({"to": SCRATCH}, hex(head.block), {SCRATCH: {"code": RETURNS_IT}}))
    except RpcRefused:
        return False
    return isinstance(said, str) and said == f"0x{ANSWER:064x}"


async def _states(node: Node, head: Head) -> int | None:
    for depth in DEPTHS:
        if depth > head.block:
            continue
        try:
            await node.call("eth_getBalance", (UNUSED, hex(head.block - depth)))
        except (StateMissing, RpcRefused):
            continue
        return depth
    return 0


async def _finalized(node: Node) -> bool:
    try:
        said = await node.call("eth_getBlockByNumber", ("finalized", False))
    except (StateMissing, RpcRefused):
        return False
    return isinstance(said, dict)
