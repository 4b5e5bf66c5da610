"""What an indexer lists of accounts: hints for where to look on the chain, believed in nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateways.errors import ProviderError
from gateways.token_sheet import LARGEST_ID

ASKED_AT_ONCE = 4
LOWEST_CONTRACT = 1 << 16
"""Below are precompiles and system contracts, which answer anything with 32 bytes."""

Item = tuple[bytes, int]
"""A contract and a token's id."""


class ListItem(Protocol):
    """A token on an indexer's list."""

    @property
    def contract(self) -> str: ...
    @property
    def token_id(self) -> str: ...


class Account(Protocol):
    """All that an indexer lists of an account."""

    @property
    def items(self) -> Sequence[ListItem]: ...


class Indexer(Protocol):
    """Who keeps lists of what accounts hold; believed in nothing that the chain does not confirm."""

    async def account_nfts(self, chain: str, address: str) -> Account:
        """Everything that is listed for an address on one of our chains, or a ProviderError."""
        ...


@dataclass(frozen=True, slots=True)
class Listed:
    """An owner's tokens as an indexer lists them; not the `whole` list where it names what cannot be asked about."""

    items: tuple[Item, ...]
    whole: bool


Listing = Callable[[str], Awaitable[Listed | str]]
"""An owner's list, or why there is none."""


async def listed_of(owners: Sequence[str], listing: Listing, until: float) -> dict[str, Listed | str]:
    """Every owner's list, a few at once; who was not asked in time has none."""
    gate = asyncio.Semaphore(ASKED_AT_ONCE)

    async def one(owner: str) -> Listed | str:
        async with gate:
            return await listing(owner)

    if not owners:
        return {}
    tasks = {owner: asyncio.create_task(one(owner)) for owner in owners}
    left = max(0.0, until - asyncio.get_running_loop().time())
    try:
        await asyncio.wait(tasks.values(), timeout=left)
    finally:
        for task in tasks.values():
            task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {
        owner: "the indexer was not asked in time" if task.cancelled() else task.result()
        for owner, task in tasks.items()
    }


async def listing(indexer: Indexer | None, hints: Sequence[Indexer], chain: str, owner: str) -> Listed | str:
    """What the indexers list of the owner, or why there is no list.

    The list is whole only if `indexer` gave all of its own; `hints` only ever add to it: that they list nothing is
    never believed alone.
    """
    asked = [one for one in (indexer, *hints) if one is not None]
    if not asked:
        return "no indexer is set, and without one nobody can list every collection"
    answers = await asyncio.gather(*(_items(one, chain, owner) for one in asked))
    listed = dict.fromkeys(
        (token.contract, token.token_id) for told in answers if not isinstance(told, str) for token in told
    )
    items = tuple(dict.fromkeys(item for place in listed if (item := item_of(*place))))
    whole = indexer is not None and not isinstance(answers[0], str) and len(items) == len(listed)
    if not items and not whole:
        faults = [one for one in answers if isinstance(one, str)]
        return faults[0] if faults else "one indexer lists nothing, which alone says nothing"
    return Listed(items, whole)


async def _items(indexer: Indexer, chain: str, owner: str) -> Sequence[ListItem] | str:
    try:
        return (await indexer.account_nfts(chain, owner)).items
    except ProviderError as fault:
        return str(fault)


def item_of(contract: str, token: str) -> Item | None:
    """The contract and id, if they can be asked about."""
    try:
        raw = bytes.fromhex(contract.removeprefix("0x"))
        number = int(token)
    except ValueError:
        return None
    usable = len(raw) == 20 and int.from_bytes(raw, "big") >= LOWEST_CONTRACT and 0 <= number <= LARGEST_ID
    return (raw, number) if usable else None
