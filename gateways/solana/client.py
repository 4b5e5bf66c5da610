"""Solana in the terms of `Chains`: a collection is a contract, a mint address a token's id, a slot a block.

Owners are those that DAS names: a frozen, listed, delegated or compressed asset still belongs to its owner, and an
asset in an escrow belongs to the escrow. Burnt assets, coins and unverified members of a collection do not count.
"""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from gateways.chains.balance_sheet import NATIVE, BalanceSheet, Segment
from gateways.chains.coin_facts import CoinFacts
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.chains.token_sheet import NO_TRAILS, TokenHints, TokenSheet, Trails
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.rpc.failover import all_silent
from gateways.evm.rpc.node import Head
from gateways.evm.tokens.contract_info import Standard
from gateways.solana.balances import balances_of
from gateways.solana.coin_scans import CoinScans
from gateways.solana.coins import CoinRead, coin_facts, native_facts
from gateways.solana.das_assets import Asset, Kind, asset
from gateways.solana.das_lists import by_collection, first_page
from gateways.solana.empty_answers import ANY, NotIndexed, doubt_silence
from gateways.solana.holders import HolderRead
from gateways.solana.node import SOLANA, SolanaNode, SolanaNodes
from gateways.transport import provider_reports
from gateways.transport.base58 import addresses
from gateways.transport.errors import ProviderError, ProviderRefused
from gateways.transport.exchanges import together

FEWEST_FOR_A_SCAN = 6
"""The number of owners from which the whole collection is read instead of their wallets, if that takes fewer pages."""
STALE_SLOTS = 225
"""An index that is more than this number of slots behind its node's head (about 90 s) is stale."""
KEPT_FOR_THE_REST = 1.0
"""Seconds before the deadline at which reading the node's token accounts must end."""
SLOTS_BETWEEN = 2
"""Slots that pass before a confirmation, so that the index of an only endpoint reads further before it."""


class SolanaChains:
    """The real client, for nodes that also offer DAS (docs/facts.md#solana-das).

    A read at a named endpoint counts as a confirmation: it begins some slots later, and where the index shows nothing,
    the node's own token accounts are read as well. An index cannot answer for an earlier slot, so `settled` changes
    nothing; its answers name their slot.
    """

    def __init__(self, nodes: SolanaNodes) -> None:
        self._nodes = nodes
        self._scans = CoinScans()

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.close()

    def endpoints(self, chain: str) -> int:
        """Return the number of nodes that are set; 0 for another chain."""
        return len(self._nodes.nodes) if chain == SOLANA.key else 0

    def costly(self, chain: str) -> frozenset[str]:
        """Return an empty set: for an index, all collections cost the same."""
        return frozenset()

    def is_silent(self, chain: str) -> bool:
        """Return whether every node with requests under way has not answered for a while."""
        return chain == SOLANA.key and all_silent(self._nodes.nodes)

    def requests(self) -> int:
        """Return the number of requests sent so far, for all callers."""
        return sum(node.sent for node in self._nodes.nodes)

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        """Return the balances of many segments through one endpoint, as of the oldest slot of its answers.

        A collection is read once for the owners of all segments that name it. In a confirmation it is read once for
        each segment, because the node's own token accounts can be read only for few owners. A coin is always read once
        for all segments.
        """
        self._own(chain)
        asked = [
            (addresses([one for one in segment.contracts if one not in segment.coins]), addresses(segment.owners))
            for segment in segments
        ]
        coins = sorted({one for segment in segments for one in segment.coins})
        addresses([one for one in coins if one != NATIVE])
        coin_owners: dict[str, dict[str, None]] = {coin: {} for coin in coins}
        for segment, (_others, holders) in zip(segments, asked, strict=True):
            for one in segment.coins:
                coin_owners[one].update(dict.fromkeys(holders))
        owners_of: dict[tuple[int, str], dict[str, None]] = {}
        for number, (wanted, holders) in enumerate(asked):
            for one in wanted:
                together_with = 0 if at.endpoint is None else number
                owners_of.setdefault((together_with, one), {}).update(dict.fromkeys(holders))
        deadline = self._deadline()

        async def ask(node: SolanaNode) -> list[BalanceSheet]:
            look, as_of = await self._coins(node, coin_owners, at, deadline)
            sheets = await together(
                self._read(node, one, list(owners), {}, at, deadline) for (_, one), owners in owners_of.items()
            )
            heads = [Head(sheet.block, sheet.block_time) for sheet in sheets] + ([as_of] if as_of else [])
            head = min(heads, key=lambda head: head.block) if heads else await node.head(at.not_before_block)
            read = dict(zip(owners_of, sheets, strict=True))
            return [
                balances_of(
                    node,
                    head.block,
                    head,
                    {one: read[0 if at.endpoint is None else number, one] for one in wanted},
                    holders,
                    {one: look.held.get(one, {}) for one in segments[number].coins},
                    look.doubts,
                )
                for number, (wanted, holders) in enumerate(asked)
            ]

        return await self._nodes.first(ask, endpoint=at.endpoint, deadline=deadline)

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
        """Return the owners' assets of a collection; with `token_ids` (mint addresses, never ranges) only those.

        Raises ValueError for a text that is not an address.
        """
        self._own(chain)
        addresses([contract])
        holders, ids, deadline = addresses(owners), addresses(token_ids), self._deadline()

        async def ask(node: SolanaNode) -> TokenSheet:
            if ids:
                return await self._single(node, contract, holders, ids, trails, at, deadline)
            return await self._read(node, contract, holders, trails, at, deadline)

        return await self._nodes.first(ask, endpoint=at.endpoint, deadline=deadline)

    async def anything(
        self, chain: str, owners: Sequence[str], *, trails: Trails = NO_TRAILS, at: ReadPoint = NEWEST
    ) -> TokenSheet:
        """Return one NFT of each owner, if there is one; an NFT without a collection is its own "contract"."""
        self._own(chain)
        holders, deadline = addresses(owners), self._deadline()
        return await self._nodes.first(
            lambda node: self._read(node, ANY, holders, trails, at, deadline), endpoint=at.endpoint, deadline=deadline
        )

    async def view(
        self, chain: str, question: ViewQuestion, owners: Sequence[str], *, at: ReadPoint = NEWEST
    ) -> ViewSheet:
        """Raise ProviderRefused, because Solana's programs have no view functions."""
        raise ProviderRefused("Solana", "its programs have no view functions", status=400)

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """Return the newest confirmed slot of a node that serves mainnet and is not stale."""
        self._own(chain)
        return await self._nodes.first(SolanaNode.head, endpoint=endpoint)

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """Return "Solana" for a collection, "none" if the index knows no asset, None for an asset of another kind.

        An NFT without a collection counts as a collection, because a new collection looks like that until it has
        members.
        """
        self._own(chain)
        addresses([contract])

        async def ask(node: SolanaNode) -> Standard | None:
            await node.head()
            if (await first_page(node, by_collection(contract), 1)).assets:
                return "Solana"
            found = await asset(node, contract)
            if found is None:
                await _knows_something(node)
                return "none"
            alone = found.kind is Kind.NFT and not found.collection
            return "Solana" if alone or found.interface == "MplCoreCollection" else None

        return await self._nodes.first(ask)

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """Return the name of the collection's own asset."""
        self._own(chain)
        found = await self._asset(contract)
        return found.name or None if found else None

    async def _asset(self, id_: str) -> Asset | None:
        """Return an asset from a node that is not stale; None if its index knows none with this address."""
        addresses([id_])

        async def ask(node: SolanaNode) -> Asset | None:
            await node.head()
            return await asset(node, id_)

        return await self._nodes.first(ask)

    async def coin(self, chain: str, contract: str) -> CoinFacts | None:
        """Return the facts of a coin from its mint; for NATIVE, those of Solana's own coin."""
        self._own(chain)
        if contract == NATIVE:
            return native_facts()
        addresses([contract])

        async def ask(node: SolanaNode) -> CoinFacts | None:
            await node.head()
            if (found := await coin_facts(node, contract)) is None:
                await _knows_something(node)
            return found

        return await self._nodes.first(ask)

    async def collection_of(self, mint: str) -> str | None:
        """Return the collection that has confirmed an asset as its own, for a person who pasted the asset's mint.

        None when the asset is in no collection, or does not exist.
        """
        found = await self._asset(mint)
        return found.collection or None if found else None

    async def _coins(
        self, node: SolanaNode, coins: Mapping[str, Iterable[str]], at: ReadPoint, deadline: float
    ) -> tuple[CoinRead, Head | None]:
        """Return the owners' amounts of coins, and the slot of the oldest answer; None when no coin was read."""
        owners = {coin: asked for coin, some in coins.items() if (asked := list(some))}
        look = CoinRead(node, owners, self._scans, at.not_before_block, again=at.endpoint is not None)
        if not owners:
            return look, None
        if (kept := look.kept()) is not None:
            return look, as_of(node, kept, look.slot, at.not_before_block)
        head = await _head(node, at)
        with _noted(node):
            await look.run(head, deadline - KEPT_FOR_THE_REST)
            return look, as_of(node, head, look.slot, at.not_before_block)

    async def _read(
        self, node: SolanaNode, collection: str, owners: Sequence[str], trails: Trails, at: ReadPoint, deadline: float
    ) -> TokenSheet:
        head = await _head(node, at)
        look = HolderRead(node, collection, owners)
        scan = collection != ANY and len(owners) >= FEWEST_FOR_A_SCAN
        with _noted(node):
            if not (scan and await look.at_collection(len(owners))):
                await look.at_wallets(deadline)
            await look.doubt_by_trails({owner: _mints(trail) for owner, trail in trails.items()})
            if at.endpoint is not None:
                await look.doubt_by_accounts(deadline - KEPT_FOR_THE_REST)
            return _sheet(look, head, at.not_before_block, trails)

    async def _single(
        self,
        node: SolanaNode,
        collection: str,
        owners: Sequence[str],
        ids: Sequence[str],
        trails: Trails,
        at: ReadPoint,
        deadline: float,
    ) -> TokenSheet:
        head = await _head(node, at)
        look = HolderRead(node, collection, owners)
        with _noted(node):
            await look.at_assets(ids)
            named = set(ids)
            await look.doubt_by_trails(
                {owner: [one for one in _mints(trail) if one in named] for owner, trail in trails.items()}
            )
            if at.endpoint is not None:
                await look.doubt_by_accounts(deadline - KEPT_FOR_THE_REST)
            return _sheet(look, head, at.not_before_block, {})

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._nodes.deadline

    @staticmethod
    def _own(chain: str) -> None:
        if chain != SOLANA.key:
            raise ValueError(f"{chain!r} is not Solana")


@contextmanager
def _noted(node: SolanaNode) -> Generator[None]:
    """Note an index's failure as its node's, although the node's head is fine. NotIndexed is not such a failure."""
    try:
        yield
    except NotIndexed:
        raise
    except ProviderError as fault:
        provider_reports.failed(provider_reports.node(SOLANA.key, node.index), fault)
        raise


async def _head(node: SolanaNode, at: ReadPoint) -> Head:
    """Return the head at which a read begins; a confirmation begins some slots later than the read that it confirms."""
    if at.endpoint is not None:
        await asyncio.sleep(SLOTS_BETWEEN * SOLANA.block_seconds)
    return await node.head(at.not_before_block)


async def _knows_something(node: SolanaNode) -> None:
    """Raise ProviderConfused for an index that lists nothing at all, or a collection would seem not to exist."""
    await doubt_silence(node, ANY, owners_lists=True)


def _sheet(look: HolderRead, head: Head, not_before: int, trails: Trails) -> TokenSheet:
    """Return the result of a read as a sheet, as of the slot up to which the index had read the chain.

    That is the node's head where the index does not say. Raises ProviderConfused when the slot is too old.
    """
    read = as_of(look.node, head, look.slot, not_before)
    slot = read.block
    return TokenSheet(
        chain=SOLANA.key,
        contract=look.collection,
        block=slot,
        block_time=read.time,
        endpoint=look.node.index,
        source=look.node.source,
        held=look.held,
        unsure=look.unsure,
        trails={owner: _trail(look, owner, trails.get(owner, TokenHints()), slot) for owner in look.owners},
    )


def as_of(node: SolanaNode, head: Head, slot: int | None, not_before: int) -> Head:
    """Return the slot of an answer as a head; for None the node's own. Raises ProviderConfused when it is too old."""
    slot = head.block if slot is None else min(slot, head.block)
    if head.block - slot > STALE_SLOTS:
        raise provider_reports.Stale(node.name, f"its index is {head.block - slot} slots behind")
    if slot < not_before:
        raise provider_reports.Stale(node.name, f"its index is at slot {slot}, before {not_before}")
    return Head(slot, head.time - timedelta(seconds=(head.block - slot) * SOLANA.block_seconds))


def _trail(look: HolderRead, owner: str, before: TokenHints, slot: int) -> TokenHints:
    """Return the earlier hints with the tokens found now, without tokens that another owner has had for long enough."""
    elsewhere = look.gone_from(owner)
    gone = [one for one in before.ids if one.rpartition(":")[2] in elsewhere]
    return before.looked_at(look.held.get(owner, {}), gone, slot, SOLANA.settled_after)


def _mints(trail: TokenHints) -> list[str]:
    """Return a trail's mints; for ids of ANY, the part after the collection."""
    return [one.rpartition(":")[2] for one in trail.ids]
