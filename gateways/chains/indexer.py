"""Indexers' lists of what accounts hold: hints where to look on the chain, checked first, trusted for nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from gateways.chains.token_sheet import LARGEST_ID
from gateways.transport import question_time
from gateways.transport.errors import ProviderError, ProviderRefused
from locales import N_

LISTS = "indexers"
"""Names all indexers together, where several were asked: every indexer lags behind the chain for a while."""
ASKED_AT_ONCE = 4
LOWEST_CONTRACT = 1 << 16
"""The lowest address that is asked: precompiles and system contracts below it answer any call with 32 bytes."""

Item = tuple[bytes, int]
"""A contract and a token's id."""


class ListItem(Protocol):
    """A token on an indexer's list."""

    @property
    def contract(self) -> str: ...
    @property
    def token_id(self) -> str: ...


class ListedAccount(Protocol):
    """Everything that an indexer lists for an account, and the indexer's name."""

    @property
    def items(self) -> Sequence[ListItem]: ...
    @property
    def source(self) -> str: ...


class ChainNotListed(ProviderRefused):
    """The indexer does not have the chain at all, so it does not count as an indexer there."""

    def __init__(self, provider: str, title: str) -> None:
        super().__init__(provider, f"it does not have {title}", status=404)


class Indexer(Protocol):
    """An index that lists what accounts hold. An entry counts only if the chain confirms it."""

    async def account_nfts(self, chain: str, address: str) -> ListedAccount:
        """Return everything that is listed for an address on a chain.

        Raises ProviderError, and its subclass ChainNotListed for a chain that the indexer does not have.
        """
        ...


@dataclass(frozen=True, slots=True)
class Listed:
    """An owner's tokens as indexers list them.

    The list is not `whole` where an indexer failed, or listed a token that cannot be asked about. `alone` names the
    indexer if only one has the chain. No indexer lists everything, so an empty list from one proves nothing.
    """

    items: tuple[Item, ...]
    whole: bool
    alone: str = ""


Listing = Callable[[str], Awaitable[Listed | str]]
"""An owner's list, or why there is none."""


async def listed_of(owners: Sequence[str], listing: Listing, until: float) -> dict[str, Listed | str]:
    """Return every owner's list, reading a few at once; an owner whose turn did not come in time gets a reason."""
    gate = asyncio.Semaphore(ASKED_AT_ONCE)

    async def one(owner: str) -> Listed | str:
        async with gate:
            return await listing(owner)

    if not owners:
        return {}
    tasks = {owner: asyncio.create_task(one(owner)) for owner in owners}
    try:
        with suppress(TimeoutError):
            async with question_time.timeout_at(until):
                await asyncio.wait(tasks.values())
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {
        owner: N_("the indexer was not asked in time") if task.cancelled() else task.result()
        for owner, task in tasks.items()
    }


async def listing(indexers: Sequence[Indexer], chain: str, owner: str) -> Listed | str:
    """Return the indexers' lists for the owner as one, or the reason why there is none."""
    if not indexers:
        return N_("no indexer is set, and without one nobody can list every collection")
    asked = await asyncio.gather(*(_list(one, chain, owner) for one in indexers))
    answers = [one for one in asked if one is not None]
    if not answers:
        return N_("no indexer has this chain, and without one nobody can list every collection")
    faults = [one for one in answers if isinstance(one, str)]
    lists = [one for one in answers if not isinstance(one, str)]
    listed = dict.fromkeys((token.contract, token.token_id) for told in lists for token in told.items)
    items = tuple(dict.fromkeys(item for place in listed if (item := item_of(*place))))
    if faults and not items:
        return faults[0]
    alone = lists[0].source if len(answers) == 1 else ""
    return Listed(items, not faults and len(items) == len(listed), alone)


async def _list(indexer: Indexer, chain: str, owner: str) -> ListedAccount | str | None:
    """Return the list, or the reason why there is none; None if the indexer does not have the chain."""
    try:
        return await indexer.account_nfts(chain, owner)
    except ChainNotListed:
        return None
    except ProviderError as fault:
        return str(fault)


def item_of(contract: str, token: str) -> Item | None:
    """Return the contract and the id; None if they cannot be asked about."""
    try:
        raw = bytes.fromhex(contract.removeprefix("0x"))
        number = int(token)
    except ValueError:
        return None
    usable = len(raw) == 20 and int.from_bytes(raw, "big") >= LOWEST_CONTRACT and 0 <= number <= LARGEST_ID
    return (raw, number) if usable else None
