"""Who holds what on the chains: bulk balances with failover between a chain's nodes, and a few ordinary questions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from gateways.balance_sheet import BalanceSheet, packed
from gateways.chain_table import CHAINS, Chain
from gateways.errors import ProviderBusy, ProviderDown, ProviderError
from gateways.evm import STALE_AFTER, Head, Node
from gateways.evm_contract import ContractReader, Standard
from gateways.evm_reader import BulkReader

__all__ = ["CHAINS", "BalanceSheet", "Chain", "Chains", "EvmChains", "Head", "Standard"]

DEADLINE = 15.0
REQUEST_SECONDS = 6.0
REST = 30.0
"""Seconds for which a node that did not answer is asked last."""
LOWEST_CONTRACT = 1 << 16
"""Below are precompiles and system contracts, which answer anything with 32 bytes."""

T = TypeVar("T")


class Chains(Protocol):
    """The chains, each through one or more independent nodes. A failure is a ProviderError, never an amount."""

    def endpoints(self, chain: str) -> int:
        """How many nodes are set for the chain; 0 when it is off."""
        ...

    async def balances(
        self,
        chain: str,
        contracts: Sequence[str],
        owners: Sequence[str],
        *,
        endpoint: int | None = None,
        not_before_block: int = 0,
    ) -> BalanceSheet:
        """How many tokens of each contract each owner holds, all at one block."""
        ...

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """The newest block."""
        ...

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """The contract's standard; "none" when no contract is there, None when it names no standard of ours."""
        ...

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """What the contract calls itself, if it does."""
        ...


class _Endpoint:
    """A node and the two ways we talk with it."""

    def __init__(self, node: Node, request_seconds: float) -> None:
        self.node = node
        self.bulk = BulkReader(node)
        self.contract = ContractReader(node, request_seconds)

    async def close(self) -> None:
        await self.node.close()
        await self.contract.close()


class EvmChains:
    """The real thing, for the EVM chains. `rpc` maps a chain's key to its nodes' URLs, first choice first.

    With `endpoint=None` the nodes are tried in their order (one that lately did not answer, last); with a number, only
    that one is. The last node's ProviderError is raised when all fail. Each request takes at most `request_seconds`,
    a whole call at most `deadline`. ERC-1155 has no `balanceOf(address)`: such contracts' amounts are unknown.
    """

    def __init__(
        self,
        rpc: Mapping[str, Sequence[str]],
        *,
        deadline: float = DEADLINE,
        request_seconds: float = REQUEST_SECONDS,
        stale_after: float = STALE_AFTER,
    ) -> None:
        self._deadline = deadline
        self._endpoints = {
            key: [
                _Endpoint(
                    Node(chain, index, url, request_seconds=request_seconds, stale_after=stale_after), request_seconds
                )
                for index, url in enumerate(rpc.get(key, ()))
            ]
            for key, chain in CHAINS.items()
            if chain.family == "evm"
        }

    async def close(self) -> None:
        """Close all connections."""
        for endpoints in self._endpoints.values():
            for endpoint in endpoints:
                await endpoint.close()

    def endpoints(self, chain: str) -> int:
        """How many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return len(self._endpoints.get(chain, ()))

    async def balances(
        self,
        chain: str,
        contracts: Sequence[str],
        owners: Sequence[str],
        *,
        endpoint: int | None = None,
        not_before_block: int = 0,
    ) -> BalanceSheet:
        """`balanceOf(address)` of every contract for every owner, at the answering node's head.

        The head is at or after `not_before_block`. An amount is None (unknown) where the contract's own call failed;
        ValueError for an address that is none.
        """
        asked = b"".join(raw for raw in _split(packed(contracts)) if int.from_bytes(raw, "big") >= LOWEST_CONTRACT)
        holders = packed(owners)
        deadline = asyncio.get_running_loop().time() + self._deadline
        return await self._first(
            chain, endpoint, lambda one: one.bulk.read(asked, holders, not_before_block, deadline), deadline
        )

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """The newest block of a node that serves the right chain and is not stale."""
        return await self._first(chain, endpoint, lambda one: one.node.head())

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """By code and ERC-165 (external-apis §4.5)."""

        async def ask(one: _Endpoint) -> Standard | None:
            await one.node.head()
            return await one.contract.standard(contract)

        packed([contract])
        return await self._first(chain, None, ask)

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """By name()."""

        async def ask(one: _Endpoint) -> str | None:
            await one.node.head()
            return await one.contract.name(contract)

        packed([contract])
        return await self._first(chain, None, ask)

    async def _first(
        self,
        chain: str,
        endpoint: int | None,
        ask: Callable[[_Endpoint], Awaitable[T]],
        deadline: float | None = None,
    ) -> T:
        """The first good answer of the chain's nodes within the deadline, else the last error."""
        endpoints = self._order(chain, endpoint)
        clock = asyncio.get_running_loop()
        last: ProviderError = ProviderDown(CHAINS[chain].title, "no answer in time")
        try:
            async with asyncio.timeout_at(deadline or clock.time() + self._deadline):
                for one in endpoints:
                    try:
                        answer = await ask(one)
                    except ProviderError as fault:
                        last = fault
                        if isinstance(fault, ProviderDown | ProviderBusy):
                            one.node.resting_until = clock.time() + REST
                        continue
                    one.node.resting_until = 0.0
                    return answer
        except TimeoutError:
            last = ProviderDown(last.provider, "no answer in time")
        raise last

    def _order(self, chain: str, endpoint: int | None) -> list[_Endpoint]:
        if chain not in CHAINS:
            raise ValueError(f"{chain!r} is not a chain we know")
        endpoints = self._endpoints.get(chain, [])
        if not endpoints:
            raise ProviderDown(CHAINS[chain].title, "no node is set for it")
        if endpoint is not None:
            return [endpoints[endpoint]]
        now = asyncio.get_running_loop().time()
        return sorted(endpoints, key=lambda one: one.node.resting_until > now)


def _split(blob: bytes) -> list[bytes]:
    return [blob[at : at + 20] for at in range(0, len(blob), 20)]
