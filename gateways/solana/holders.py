"""One read of the holders of a Solana collection, or of any NFT: by pages of wallets, by collection, or by asset."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from gateways.solana.das_assets import A_PAGE, Asset, Kind, assets
from gateways.solana.das_lists import by_collection, by_owner, everything, pages
from gateways.solana.empty_answers import ANY, CONTRADICTS, LOST, NODE_KNOWS_MORE, doubt_silence, mints_of
from gateways.solana.node import SolanaNode
from gateways.transport import question_time
from gateways.transport.errors import ProviderBusy, ProviderDown, ProviderError
from locales import N_

MOST_PAGES = 20
"""The most pages of one wallet's list, which is 20,000 assets."""
FEW = 100
"""Assets in a page while a single NFT is enough."""
OWNERS_A_PART = 50
"""Owners whose token accounts are read from the node at a time."""
SHARE_FOR_LISTS = 0.6
"""Share of the whole time for lists; the rest is for checking empty results."""
NOT_IN_TIME = N_("its list did not come in time")
ACCOUNTS_NOT_IN_TIME = N_("the node was not asked for its token accounts in time")
TOO_MANY = N_("owns too many assets to read them all")
UNCLEAR = N_("owns something of a kind that is not known here")
NOT_ITS_OWN = N_("its list has somebody else's assets")
UNKNOWN_ID = N_("the index does not know one of the tokens")
UNGROUPED = N_("the index does not say whether one of its tokens is in the collection")
OWNERLESS = N_("the index does not say who owns one of the tokens")


@dataclass(slots=True)
class HolderRead:
    """One endpoint's answers about `owners`, for one collection or for ANY.

    `held` and `unsure` are as in a TokenSheet. `slot` is the earliest slot up to which an answer was indexed; None
    where the index does not say.
    """

    node: SolanaNode
    collection: str
    owners: Sequence[str]
    held: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    unsure: dict[str, str] = field(default_factory=dict[str, str])
    slot: int | None = None
    _known: dict[str, Asset | None] = field(default_factory=dict[str, Asset | None])
    _named: frozenset[str] | None = None
    """The requested single assets; None where any asset of the collection counts."""
    _lists_work: bool = False
    _gone: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    async def at_collection(self, most_pages: int) -> bool:
        """Read the whole collection; return False, with nothing learned, if it has more than `most_pages` pages.

        Raises ProviderError, also for an index that lists nothing of the collection.
        """
        read = await everything(self.node, by_collection(self.collection), most_pages)
        if read is None:
            return False
        if not read:
            await doubt_silence(self.node, self.collection, owners_lists=False)
        wanted = set(self.owners)
        for page in read:
            self._note(page.slot)
            for asset in page.assets:
                self._known[asset.id] = asset
                if asset.owner in wanted:
                    self._take(asset)
                    if asset.counts and self.collection not in asset.named:
                        self.unsure[asset.owner] = UNGROUPED
        return True

    async def at_wallets(self, deadline: float) -> None:
        """Read each owner's list. Raises ProviderError when no list came, or when empty lists cannot be believed.

        For ANY, a list is read until it shows an NFT.
        """
        faults: dict[str, ProviderError] = {}

        async def one(owner: str) -> None:
            try:
                reason = await self._wallet(owner)
            except ProviderError as fault:
                faults[owner], reason = fault, str(fault)
            waiting.discard(owner)
            if reason is not None:
                self.unsure[owner] = reason

        waiting = set(self.owners)
        # In random order, so that slow owners do not delay the same others each time.
        order = random.sample(list(self.owners), len(self.owners))
        begun = question_time.now()
        try:
            async with question_time.timeout_at(begun + (deadline - begun) * SHARE_FOR_LISTS):
                await asyncio.gather(*(one(owner) for owner in order))
        except TimeoutError:
            self.unsure |= dict.fromkeys(waiting, NOT_IN_TIME)
        if self.owners and len(faults) + len(waiting) == len(self.owners):
            raise next(iter(faults.values()), ProviderDown(self.node.name, NOT_IN_TIME))
        await self._believe_nothing()
        await self._count_once()

    async def _count_once(self) -> None:
        """Ask who owns each token that is on the lists of two owners, between whom it moved while these were read.

        It counts for the owner that the index names. The others become unsure: their lists show a token that they lack.
        """
        listed: dict[str, list[str]] = {}
        for owner, names in self.held.items():
            for name in names:
                listed.setdefault(name, []).append(owner)
        twice = {name: owners for name, owners in listed.items() if len(owners) > 1}
        await self._look_up(_mint(name) for name in twice)
        for name, owners in twice.items():
            known = self._known[_mint(name)]
            for owner in owners:
                if known is None or known.owner != owner:
                    del self.held[owner][name]
                    self.unsure[owner] = CONTRADICTS
        self.held = {owner: names for owner, names in self.held.items() if names}

    async def _wallet(self, owner: str) -> str | None:
        """Read one owner's list; return why it may be incomplete, or None."""
        count = 0
        async for page in pages(self.node, by_owner(owner), FEW if self.collection == ANY else A_PAGE):
            self._note(page.slot)
            self._lists_work = True
            for asset in page.assets:
                if asset.owner == owner:
                    self._take(asset)
                elif asset.counts:
                    return NOT_ITS_OWN
            count += 1
            if self.collection == ANY and owner in self.held:
                return None
            if count >= MOST_PAGES:
                return TOO_MANY
        return self.unsure.get(owner)

    async def _believe_nothing(self) -> None:
        """Raise ProviderConfused for empty lists from an index whose lists do not work."""
        proved = bool(self.held) or (self.collection == ANY and self._lists_work)
        if not proved and self.nothing():
            await doubt_silence(self.node, self.collection, owners_lists=self._lists_work)

    async def at_assets(self, ids: Sequence[str]) -> None:
        """Read single assets. Each names its owner, so no list has to be believed."""
        wanted = set(self.owners)
        found = await assets(self.node, ids)
        self._known |= found
        self._named = frozenset(ids)
        for asset in found.values():
            if asset is None:
                self.unsure |= dict.fromkeys(self.owners, UNKNOWN_ID)
            elif not asset.owner and self._counts(asset):
                self.unsure |= dict.fromkeys(self.owners, OWNERLESS)
            elif asset.owner in wanted:
                self._take(asset)
                if self._is_ungrouped(asset):
                    self.unsure[asset.owner] = UNGROUPED

    def nothing(self) -> list[str]:
        """Return the owners for whom nothing was seen and nothing is unsure."""
        return [owner for owner in self.owners if owner not in self.held and owner not in self.unsure]

    async def doubt_by_trails(self, trails: Mapping[str, Iterable[str]]) -> None:
        """Check mints that an owner had before and now lacks: the index must know where each one is.

        Owners of lost or contradicting mints become unsure, and so do owners of mints that are in no collection now, or
        that the index no longer calls NFTs. A mint may have moved between two of the owners after the list of its new
        owner was made, and before that of the former one: then it is on neither.
        """
        missing = {
            owner: [mint for mint in trails[owner] if mint not in self._mints(owner)]
            for owner in self.owners
            if owner in trails and owner not in self.unsure and not self._has_enough(owner)
        }
        await self._look_up(mint for mints in missing.values() for mint in mints)
        owners = set(self.owners)
        for owner, mints in missing.items():
            for mint in mints:
                known = self._known[mint]
                if known is None:
                    self.unsure[owner] = LOST
                elif not known.owner and self._counts(known):
                    self.unsure[owner] = OWNERLESS
                elif known.owner == owner and self._is_ungrouped(known):
                    self.unsure[owner] = UNGROUPED
                elif known.owner == owner and known.kind is Kind.OTHER and self._counts(replace(known, kind=Kind.NFT)):
                    # It counted before: the index names its kind differently now, and nobody has sold it.
                    self.unsure[owner] = UNCLEAR
                elif known.owner != owner or not self._counts(known):
                    self._gone.setdefault(owner, set()).add(mint)
                    if known.owner in owners and self._counts(known) and self._lacks(known.owner, mint):
                        self.unsure[known.owner] = CONTRADICTS
                else:
                    self.unsure[owner] = CONTRADICTS

    def gone_from(self, owner: str) -> AbstractSet[str]:
        """Return the owner's earlier mints that now belong to somebody else or are burnt, according to the index."""
        return self._gone.get(owner, frozenset[str]())

    async def doubt_by_accounts(self, deadline: float) -> None:
        """Make owners unsure whose token accounts at the node show more than the index did.

        The accounts are read for a few owners at a time. Owners whose turn has not come by `deadline` (loop time), or
        before the node asks for a pause, become unsure as well.
        """
        # In random order, so that the last owners are not the same each time.
        asked = [one for one in self.owners if one not in self.unsure and not self._has_enough(one)]
        waiting = random.sample(asked, len(asked))
        for start in range(0, len(waiting), OWNERS_A_PART):
            try:
                async with question_time.timeout_at(deadline):
                    goes_on = await self._doubt_by_accounts(waiting[start : start + OWNERS_A_PART])
            except TimeoutError:
                goes_on, start = False, start - OWNERS_A_PART
            if not goes_on:
                left = waiting[start + OWNERS_A_PART :]
                self.unsure |= {owner: ACCOUNTS_NOT_IN_TIME for owner in left if owner not in self.unsure}
                return

    async def _doubt_by_accounts(self, owners: Sequence[str]) -> bool:
        """Read the token accounts of these owners; return False if the node asks for a pause."""

        async def one(owner: str) -> tuple[str, frozenset[str] | ProviderError]:
            try:
                mints = await mints_of(self.node, owner) - self._mints(owner)
                return owner, mints if self._named is None else mints & self._named
            except ProviderError as fault:
                return owner, fault

        shown = dict(await asyncio.gather(*(one(owner) for owner in owners)))
        await self._look_up(mint for mints in shown.values() if isinstance(mints, frozenset) for mint in mints)
        for owner, mints in shown.items():
            if isinstance(mints, ProviderError):
                self.unsure[owner] = str(mints)
            elif any(one is None or self._counts(replace(one, burnt=False)) for one in map(self._known.get, mints)):
                # What the node shows is not burnt, whatever the index says.
                self.unsure[owner] = NODE_KNOWS_MORE
        return not any(isinstance(mints, ProviderBusy) for mints in shown.values())

    async def _look_up(self, mints: Iterable[str]) -> None:
        fresh = [mint for mint in dict.fromkeys(mints) if self._known.get(mint) is None]
        if fresh:
            self._known |= await assets(self.node, fresh)

    def _has_enough(self, owner: str) -> bool:
        """Return whether no further asset of the owner can change the answer."""
        return self.collection == ANY and owner in self.held

    def _lacks(self, owner: str, mint: str) -> bool:
        """Return whether the owner's list should have shown a mint and did not."""
        return not self._has_enough(owner) and mint not in self._mints(owner)

    def _mints(self, owner: str) -> set[str]:
        return {_mint(name) for name in self.held.get(owner, ())}

    def _counts(self, asset: Asset) -> bool:
        return asset.counts and self.collection in {ANY, asset.collection}

    def _is_ungrouped(self, asset: Asset) -> bool:
        """Return whether an asset would count if it were in the collection, and the index names no collection for it.

        An index may have lost what it knew of the asset's collection.
        """
        return asset.counts and self.collection != ANY and not asset.named

    def _take(self, asset: Asset) -> None:
        """Note an asset for its owner, if it counts for this read."""
        if not self._counts(asset):
            return
        if asset.kind is Kind.UNCLEAR:
            self.unsure[asset.owner] = UNCLEAR
        else:
            name = asset.id if self.collection != ANY else f"{asset.collection or asset.id}:{asset.id}"
            self.held.setdefault(asset.owner, {})[name] = 1

    def _note(self, slot: int | None) -> None:
        if slot is not None:
            self.slot = slot if self.slot is None else min(slot, self.slot)


def _mint(name: str) -> str:
    """Return the mint in a name; the name of an asset in ANY begins with its collection."""
    return name.rpartition(":")[2]
