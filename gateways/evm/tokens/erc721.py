"""ERC-721: which tokens owners have, each verified by `ownerOf` and all of them counted against `balanceOf`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gateways.evm.tokens.one_word_program import Said, Silence
from gateways.evm.tokens.read_progress import (
    BALANCE_OF,
    MOST_EXACT,
    MOST_QUESTIONS,
    OWNER_OF,
    TOKEN_OF_OWNER,
    TOTAL_SUPPLY,
    TokenRead,
    no_answer_for,
    word,
)
from locales import N_

MOST_LISTED = 2_000
"""The most tokens of one owner that are listed; an owner with a larger balance is never listed in full."""
MOST_SUPPLY = 20_000
"""The most tokens of a collection for which all of them are asked about, to find an owner's."""
FEW = 100
"""The most wanted ids that are asked about in any case."""
FEW_PIECES = 3
"""The most requests for logs that are cheaper than asking about a whole collection."""


@dataclass(slots=True)
class Erc721:
    """One read of one ERC-721 contract."""

    read: TokenRead
    enumerable: bool
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """How many tokens the contract says each owner has; owners that it did not answer for are left out."""
    owner_of: dict[int, Said] = field(default_factory=dict[int, Said])

    async def run(self) -> None:
        """Fill the read's amounts. Raises ProviderError when the node fails."""
        read = self.read
        said = await read.ask([BALANCE_OF + word(owner) for owner in read.owners])
        for owner, count in zip(read.owners, said, strict=True):
            if isinstance(count, Silence):
                read.doubt([owner], N_("the contract gave no answer"))
            else:
                self.counts[owner] = count
        if read.wanted is not None and read.wanted.count <= MOST_EXACT:
            # A few are asked about even if all balances are 0: some collections do not count staked tokens.
            if self._short() or read.wanted.count <= FEW or len(self.counts) < len(read.owners):
                await self._exactly(list(read.wanted))
        elif missing := self._short():
            await self._list(missing)
            read.doubt(self._short(), N_("not all of the tokens could be found"))
        contradicted = [owner for owner, count in self.counts.items() if len(read.amounts[owner]) > count]
        for owner in contradicted:
            read.amounts[owner].clear()
        read.doubt(contradicted, N_("the contract contradicts itself"))

    def _short(self) -> list[str]:
        """Return the owners that have more tokens than were found."""
        return [owner for owner, count in self.counts.items() if len(self.read.amounts[owner]) < count]

    async def _exactly(self, wanted: list[int]) -> None:
        """Ask who owns each wanted id. A revert means that nobody does, if the contract answers for other ids."""
        await self._owners_of(wanted)
        if not self._short():
            return
        failed = [one for one in wanted if self.owner_of[one] in {Silence.NONSENSE, Silence.RAN_OUT}]
        if failed:
            self.read.doubt(self._short(), no_answer_for(failed[0]))
        elif any(self.owner_of[one] is Silence.REVERTED for one in wanted) and not self._speaks():
            await self._list(self._short()[:1])
            if not self._speaks():
                self.read.doubt(self._short(), N_("the contract does not say who owns its tokens"))

    def _speaks(self) -> bool:
        return any(isinstance(said, int) for said in self.owner_of.values())

    async def _list(self, owners: Sequence[str]) -> None:
        """Find these owners' tokens, in one way after another, until their balances are accounted for."""
        too_many = [owner for owner in owners if self.counts[owner] > MOST_LISTED]
        self.read.doubt(too_many, N_("there are too many tokens to list"))
        few = [owner for owner in owners if owner not in too_many]

        def missing() -> list[str]:
            short = set(self._short())
            return [owner for owner in few if owner in short]

        await self._owners_of(self.read.known(few))
        if self.enumerable and missing():
            await self._enumerate(missing())
        if missing():
            await self._follow(missing(), FEW_PIECES)
        if missing():
            await self._whole_supply()
        if missing():
            await self._follow(missing(), None)
        if missing():
            listed = await self.read.listed(missing())
            await self._owners_of(sorted({one for ids in listed.values() for one in ids})[:MOST_EXACT])

    async def _enumerate(self, owners: Sequence[str]) -> None:
        places = list(islice(((one, place) for one in owners for place in range(self.counts[one])), MOST_QUESTIONS))
        said = await self.read.ask([TOKEN_OF_OWNER + word(owner) + word(place) for owner, place in places])
        await self._owners_of(sorted({one for one in said if isinstance(one, int)}))

    async def _follow(self, owners: Sequence[str], pieces: int | None) -> None:
        await self.read.follow(owners, many=False, pieces=pieces)
        await self._owners_of(self.read.known(owners)[:MOST_QUESTIONS])

    async def _whole_supply(self) -> None:
        """Ask about all tokens of the collection, if they are not too many; their ids usually begin at 0 or 1."""
        (supply,) = await self.read.ask([TOTAL_SUPPLY])
        if isinstance(supply, int) and 0 < supply <= MOST_SUPPLY:
            await self._owners_of(range(supply + 1))

    async def _owners_of(self, ids: Iterable[int]) -> None:
        """Ask who owns each id that was not asked about before, and store the tokens of the read's owners."""
        fresh = [one for one in ids if one not in self.owner_of]
        owners = {int(owner, 16): owner for owner in self.read.owners}
        said = await self.read.ask([OWNER_OF + word(one) for one in fresh])
        for one, answer in zip(fresh, said, strict=True):
            if not isinstance(answer, Silence) and answer >> 160:
                answer = Silence.NONSENSE  # no address
            self.owner_of[one] = answer
            if not isinstance(answer, Silence) and answer in owners:
                self.read.amounts[owners[answer]][one] = 1
