"""The EVM chains' nodes, asked in the configured order; nodes that failed recently come last."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.failover import REQUEST_SECONDS, all_silent, first_answer, rested_first
from gateways.evm.rpc.node import Node
from gateways.transport.errors import ProviderDown

DEADLINE = 15.0
T = TypeVar("T")


class NodePool:
    """The nodes of all EVM chains. `rpc` maps a chain's key to its nodes' URLs, first choice first.

    Each request takes at most `request_seconds`, a whole question at most `deadline`, not counting waits for its turns.
    """

    def __init__(
        self, rpc: Mapping[str, Sequence[str]], *, deadline: float = DEADLINE, request_seconds: float = REQUEST_SECONDS
    ) -> None:
        self.deadline = deadline
        self.request_seconds = request_seconds
        self._nodes = {
            key: [
                Node(chain, index, url, request_seconds=request_seconds) for index, url in enumerate(rpc.get(key, ()))
            ]
            for key, chain in CHAINS.items()
            if chain.family == "evm"
        }

        for nodes in self._nodes.values():
            for node in nodes:
                node.others = [other for other in nodes if other is not node]

    async def close(self) -> None:
        """Close all connections."""
        for node in self.all():
            await node.close()

    def all(self) -> list[Node]:
        """Return every node of every chain."""
        return [node for nodes in self._nodes.values() for node in nodes]

    def endpoints(self, chain: str) -> int:
        """Return how many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return len(self._nodes.get(chain, ()))

    def is_silent(self, chain: str) -> bool:
        """Return whether requests to the chain's nodes are under way and none of these nodes has lately answered."""
        return all_silent(self._nodes.get(chain, ()))

    def chains(self) -> list[str]:
        """Return the EVM chains that have a node."""
        return [chain for chain, nodes in self._nodes.items() if nodes]

    async def first(
        self,
        chain: str,
        ask: Callable[[Node], Awaitable[T]],
        *,
        endpoint: int | None = None,
        deadline: float | None = None,
    ) -> T:
        """Return the first good answer of the chain's nodes. Raises the last ProviderError if there is none.

        With a number as `endpoint`, only that node is asked. `deadline` is loop time.
        """
        nodes = self._order(chain, endpoint)
        until = deadline or asyncio.get_running_loop().time() + self.deadline
        return await first_answer(CHAINS[chain].title, nodes, ask, until)

    def _order(self, chain: str, endpoint: int | None) -> list[Node]:
        nodes = self._nodes.get(chain, [])
        if not nodes:
            raise ProviderDown(CHAINS[chain].title, "no node is set for it")
        if endpoint is not None:
            return [nodes[endpoint]]
        return rested_first(nodes)
