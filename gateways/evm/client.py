"""Holdings on EVM chains: bulk balances with failover between nodes, and facts in which all nodes have to agree."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from gateways.chains.balance_sheet import NATIVE, NATIVE_ADDRESS, BalanceSheet, Segment, packed
from gateways.chains.catalogue import CHAINS
from gateways.chains.coin_facts import CoinFacts
from gateways.chains.indexer import LOWEST_CONTRACT, Indexer, Listed, Listing, listing
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.chains.token_sheet import NO_TRAILS, TokenSheet, Trails
from gateways.chains.token_sheet import token_ids as parse_ids
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.balances.bulk_reader import BulkReader
from gateways.evm.calls.view_reader import ViewReader
from gateways.evm.rpc.node import Head, Node
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.any_nft import AnythingReader
from gateways.evm.tokens.contract_info import ContractReader, Standard
from gateways.evm.tokens.token_reader import TokenReader
from gateways.transport.errors import ProviderConfused

NATIVE_DECIMALS = 18
"""The decimals of the coin in which fees are paid; the EVM counts it in wei on every chain."""
PAIRS_A_DEADLINE = 100_000
"""Balances that are read within the time for one question; a read of more gets more time."""
VIEWS_A_DEADLINE = 10_000
"""The same for wallets that a view function is asked about."""

T = TypeVar("T")


class Chains(Protocol):
    """The chains, each through one or more independent nodes. A failure is a ProviderError, never an amount."""

    async def close(self) -> None:
        """Close all connections."""
        ...

    def endpoints(self, chain: str) -> int:
        """Return how many nodes are set for the chain; 0 when it is off."""
        ...

    def costly(self, chain: str) -> frozenset[str]:
        """Return the contracts that lately used far more of one of the chain's nodes than others do."""
        ...

    def is_silent(self, chain: str) -> bool:
        """Return whether requests to the chain's nodes are under way and none of these nodes has lately answered."""
        ...

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        """Return the balances of many segments, one sheet each in their order, all at one block of one node."""
        ...

    async def tokens(
        self,
        chain: str,
        contract: str,
        owners: Sequence[str],
        *,
        token_ids: Sequence[str] = (),
        trails: Trails = NO_TRAILS,
        at: ReadPoint = NEWEST,
    ) -> TokenSheet:
        """Return which tokens of the contract each owner holds, all at one block; amounts are whole numbers above 0.

        With `token_ids` (ids, and inclusive ranges like "100-200", which are never expanded) only those tokens matter,
        and an owner is unsure only if one of those is unknown. `trails` are those of an earlier sheet, by owner.
        """
        ...

    async def anything(
        self, chain: str, owners: Sequence[str], *, trails: Trails = NO_TRAILS, at: ReadPoint = NEWEST
    ) -> TokenSheet:
        """Return whether each owner holds any NFT at all: one proven token is enough. Ids read "contract:id"."""
        ...

    async def view(
        self, chain: str, question: ViewQuestion, owners: Sequence[str], *, at: ReadPoint = NEWEST
    ) -> ViewSheet:
        """Return a view function's value for each owner, all at one block. EVM chains only."""
        ...

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """Return the newest block."""
        ...

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """Return the contract's standard; "none" when no contract is there, None when it names none that we support."""
        ...

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """Return the contract's own name; None if it states none."""
        ...

    async def coin(self, chain: str, contract: str) -> CoinFacts | None:
        """Return what a coin states: name, symbol and decimals. None when no contract is there.

        NATIVE is the chain's own coin.
        """
        ...


class EvmChains:
    """The EVM chains, read through the nodes of a pool.

    Nodes are tried in their order, those that lately did not answer last. When all fail, the last node's ProviderError
    is raised. ERC-1155 has no `balanceOf(address)`, so the amounts of such contracts are unknown.
    """

    def __init__(self, pool: NodePool, indexer: Indexer | None = None, hints: Sequence[Indexer] = ()) -> None:
        self._pool = pool
        self._indexers = tuple(one for one in (indexer, *hints) if one is not None)
        self._bulk = {node: BulkReader(node) for node in pool.all()}
        self._contract = {node: ContractReader(node) for node in pool.all()}
        self._tokens = {node: TokenReader(node) for node in pool.all()}
        self._anything = {node: AnythingReader(node) for node in pool.all()}
        self._views = {node: ViewReader(node) for node in pool.all()}

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    def endpoints(self, chain: str) -> int:
        """Return how many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return self._pool.endpoints(chain)

    def costly(self, chain: str) -> frozenset[str]:
        """Return the contracts, in lower case, that lately used far more of one of the chain's nodes than others do."""
        return frozenset(
            f"0x{raw.hex()}"
            for node, reader in (*self._bulk.items(), *self._views.items())
            if node.chain.key == chain
            for raw in reader.costly.addresses()
        )

    def is_silent(self, chain: str) -> bool:
        """Return whether requests to the chain's nodes are under way and none of these nodes has lately answered."""
        return self._pool.is_silent(chain)

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        """Return `balanceOf(address)` of every segment's contracts for its owners, at the answering node's head.

        An amount is None (unknown) where the contract's own call failed, or where there was no time for it. Raises
        ValueError for an invalid address.
        """
        asked = [
            (_callable(_addresses(segment.contracts)), packed(segment.owners), frozenset(_split(_coins(segment))))
            for segment in segments
        ]
        pairs = sum(len(wanted) // 20 * (len(holders) // 20) for wanted, holders, _ in asked)
        seconds = self._pool.deadline * max(1.0, pairs / PAIRS_A_DEADLINE)
        deadline = asyncio.get_running_loop().time() + seconds
        return await self._pool.first(
            chain, lambda node: self._bulk[node].read(asked, at, deadline), endpoint=at.endpoint, deadline=deadline
        )

    async def tokens(
        self,
        chain: str,
        contract: str,
        owners: Sequence[str],
        *,
        token_ids: Sequence[str] = (),
        trails: Trails = NO_TRAILS,
        at: ReadPoint = NEWEST,
    ) -> TokenSheet:
        """Return the owners' tokens at the answering node's head.

        ERC-721 tokens are counted against `balanceOf`; for ERC-1155 the tokens that hints name are verified. Raises
        ValueError for an invalid address or token id.
        """
        holders = [f"0x{raw.hex()}" for raw in _split(packed(owners))]
        packed([contract])
        wanted = parse_ids(token_ids) if token_ids else None
        deadline = asyncio.get_running_loop().time() + self._pool.deadline
        listed = self._listing(chain)
        return await self._pool.first(
            chain,
            lambda node: self._tokens[node].read(contract.lower(), holders, wanted, trails, listed, at, deadline),
            endpoint=at.endpoint,
            deadline=deadline,
        )

    async def anything(
        self, chain: str, owners: Sequence[str], *, trails: Trails = NO_TRAILS, at: ReadPoint = NEWEST
    ) -> TokenSheet:
        """Return the tokens that earlier reads found or indexers list, verified at the answering node's head.

        An owner is known to have nothing only if every indexer gave its whole list and the chain denies each token.
        With `settled` the node's own logs are searched for owners without a token, unless two indexers agree on that.
        """
        holders = [f"0x{raw.hex()}" for raw in _split(packed(owners))]
        deadline = asyncio.get_running_loop().time() + self._pool.deadline
        listed = self._listing(chain)
        return await self._pool.first(
            chain,
            lambda node: self._anything[node].read(holders, trails, listed, at, deadline),
            endpoint=at.endpoint,
            deadline=deadline,
        )

    async def view(
        self, chain: str, question: ViewQuestion, owners: Sequence[str], *, at: ReadPoint = NEWEST
    ) -> ViewSheet:
        """Return a view function's value for each owner, at the answering node's head.

        An owner is unsure where the contract's own call failed, or where there was no time for it. Raises ValueError
        for an invalid address, or for a question that `compiled.question` did not make.
        """
        holders = [f"0x{raw.hex()}" for raw in _split(packed(owners))]
        seconds = self._pool.deadline * max(1.0, len(holders) / VIEWS_A_DEADLINE)
        deadline = asyncio.get_running_loop().time() + seconds
        return await self._pool.first(
            chain,
            lambda node: self._views[node].read(question, holders, at, deadline),
            endpoint=at.endpoint,
            deadline=deadline,
        )

    def _listing(self, chain: str) -> Listing:
        """Return the indexers' lists for one question; each owner's is read only once, whichever node verifies it."""
        lists: dict[str, Listed | str] = {}

        async def listed(owner: str) -> Listed | str:
            if owner not in lists:
                lists[owner] = await listing(self._indexers, chain, owner)
            return lists[owner]

        return listed

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """Return the newest block of a node that serves the right chain and is not stale."""
        return await self._pool.first(chain, Node.head, endpoint=endpoint)

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """Return the contract's standard, by its code and ERC-165 (docs/facts.md#token-standards)."""
        return await self._of_contract(chain, contract, lambda reader: reader.standard(contract))

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """Return the contract's `name()`; None if it has none."""
        return await self._of_contract(chain, contract, lambda reader: reader.name(contract))

    async def _of_contract(
        self, chain: str, contract: str, read: Callable[[ContractReader], Awaitable[T]], endpoint: int | None = None
    ) -> T:
        """Return what a node that is not stale says about the contract. Raises ValueError for an invalid address."""

        async def ask(node: Node) -> T:
            await node.head()
            return await read(self._contract[node])

        packed([contract])
        return await self._pool.first(chain, ask, endpoint=endpoint)

    async def coin(self, chain: str, contract: str) -> CoinFacts | None:
        """Return what the coin states at every node that answers; None when none of them knows the contract.

        Decimals decide what amounts mean, so ProviderConfused is raised where the nodes differ about them. A node that
        does not know the contract is taken to lag behind one that does.
        """
        if contract == NATIVE:
            return CoinFacts(CHAINS[chain].coin, CHAINS[chain].coin, NATIVE_DECIMALS)

        async def ask(endpoint: int | None = None) -> CoinFacts | None:
            return await self._of_contract(chain, contract, lambda reader: reader.coin(contract), endpoint)

        said = await asyncio.gather(*map(ask, range(self.endpoints(chain))), return_exceptions=True)
        if not any(one is None or isinstance(one, CoinFacts) for one in said):
            return await ask()
        found = {one for one in said if isinstance(one, CoinFacts)}
        if len({one.stated for one in found}) > 1:
            raise ProviderConfused(CHAINS[chain].title, f"its nodes differ about the decimals of {contract}")
        return max(found, key=lambda one: one.title, default=None)


def _addresses(contracts: Iterable[str]) -> list[str]:
    """Return the contracts' addresses; NATIVE_ADDRESS for the chain's own coin."""
    return [NATIVE_ADDRESS if contract == NATIVE else contract for contract in contracts]


def _coins(segment: Segment) -> bytes:
    return packed(_addresses(segment.coins))


def _callable(contracts: Sequence[str]) -> bytes:
    """Return the addresses, packed, that can be contracts. Precompiles are left out, since they answer any call."""
    return b"".join(raw for raw in _split(packed(contracts)) if int.from_bytes(raw, "big") >= LOWEST_CONTRACT)


def _split(blob: bytes) -> list[bytes]:
    return [blob[at : at + 20] for at in range(0, len(blob), 20)]
