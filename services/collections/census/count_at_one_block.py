"""Count an ERC-721 collection as it is at one block, without its history.

An index with an API key lists a collection's tokens in one or two calls; the history of transfers may take thousands.
The list alone decides nothing: two nodes have to name the same owner of each token at the same settled block, and the
number of tokens with an owner has to equal the contract's `totalSupply`. If any of this fails, the history is read.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from gateways import Gateways
from gateways.transport.errors import ProviderError
from models import transaction
from services.collections import standards
from services.collections.census import census_queue, owned_tokens
from services.collections.census.census_queue import CensusTask
from services.collections.census.owned_tokens import NEWEST, SETTLED

log = logging.getLogger(f"holdfast.{__name__}")

MOST_LISTED = 50_000
"""The most tokens of a collection that is read in this way: each node is asked about each token."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The owner of each token at a settled block."""

    block: int
    block_hash: str
    owners: dict[int, str]


async def read(outside: Gateways, task: CensusTask, by: Sequence[int]) -> Snapshot | None:
    """Return the collection at a settled block, or None if that cannot be proved or no index lists it."""
    if not outside.listings:
        return None
    place = task.chain, task.contract
    async with transaction() as db:
        standard = (await standards.known(db, [place])).get(place, "")
    if not standard.startswith(standards.ONE_BY_ONE):
        return None
    try:
        listed = sorted(await outside.listings[0].contract_tokens(*place, MOST_LISTED))
        if not listed:
            return None
        heads = await asyncio.gather(*(outside.histories.settled(task.chain, one) for one in by))
        block = min(head.block for head in heads)
        marks = [await outside.histories.block(task.chain, block, one) for one in by]
        first, *others = [
            await outside.histories.owners(*place, listed, mark, node) for mark, node in zip(marks, by, strict=True)
        ]
    except ProviderError as fault:
        log.info("no snapshot of a collection census=%s chain=%s reason=%s", task.id, task.chain, fault)
        return None
    agree = first is not None and all(one == first for one in others)
    if not agree or first is None or len({mark.block_hash for mark in marks}) > 1:
        log.info("no snapshot of a collection census=%s chain=%s reason=unproved", task.id, task.chain)
        return None
    return Snapshot(block, marks[0].block_hash, first)


async def store(task: CensusTask, found: Snapshot) -> None:
    """End the count with a snapshot, which replaces everything that was counted before."""
    owned = {(owner, token): 1 for token, owner in found.owners.items()}
    async with transaction() as db:
        await owned_tokens.clear(db, task.id, SETTLED, NEWEST)
        await owned_tokens.add(db, task.id, SETTLED, owned)
        # No transfers were read, so a later count of transfers has to begin at the first block.
        await census_queue.update(db, task, block=found.block, known=None, moves=0, tokens=len(owned))
        await census_queue.end(db, task, head=found.block, block_hash=found.block_hash)
    log.info("count ended census=%s chain=%s block=%s tokens=%s", task.id, task.chain, found.block, len(owned))
