"""ERC-1155: how many of which tokens owners have; nothing tells how many there are, so all history must be known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateways.balance_sheet import MOST
from gateways.evm_questions import Silence
from gateways.evm_token_read import BALANCE_OF_ID, MOST_QUESTIONS, TokenRead, word


@dataclass(slots=True)
class Erc1155:
    """One read of one ERC-1155 contract."""

    read: TokenRead

    async def run(self) -> None:
        """Fill the read's amounts. Raises ProviderError when the node fails."""
        read = self.read
        if read.wanted is not None and read.wanted.count * len(read.owners) <= MOST_QUESTIONS // 2:
            exact = list(read.wanted)
            await self._ask({owner: exact for owner in read.owners})  # noqa: C420 (the list is not changed)
            return
        complete, reason = await read.follow(read.owners, many=True)
        await self._ask({owner: read.known([owner]) for owner in read.owners})
        missing = [owner for owner in read.owners if owner not in complete]
        if without := [owner for owner in missing if not read.amounts[owner]]:
            await self._ask(await read.listed(without))
        read.doubt(missing, reason)

    async def _ask(self, ids: Mapping[str, Sequence[int]]) -> None:
        """`balanceOf(owner, id)` for each that matters; what is not answered makes the owner unsure."""
        read = self.read
        pairs = [
            (owner, one)
            for owner, given in ids.items()
            for one in given
            if one not in read.amounts[owner] and read.matters(one)
        ]
        if len(pairs) > MOST_QUESTIONS:
            read.doubt({owner for owner, _ in pairs[MOST_QUESTIONS:]}, "there are too many tokens to ask about")
            pairs = pairs[:MOST_QUESTIONS]
        said = await read.ask([BALANCE_OF_ID + word(owner) + word(one) for owner, one in pairs])
        for (owner, one), amount in zip(pairs, said, strict=True):
            if isinstance(amount, Silence):
                read.doubt([owner], f"the contract gave no answer for token {str(one)[:40]}")
            elif amount:
                read.amounts[owner][one] = min(amount, MOST)
