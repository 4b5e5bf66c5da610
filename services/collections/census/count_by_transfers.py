"""Advance a count step by step: each step is stored with its position, so a killed process loses only one step.

On EVM chains two nodes have to agree about every transfer. Settled transfers are added up once and kept; each count
reads the later ones again, so a reorganisation of the newest blocks leaves no trace. Where an index with an API key
lists an ERC-721 collection, its tokens are read at one block instead (`count_at_one_block`). On Solana the list of the
collection is read twice and has to be the same both times, the second time from another node if one is configured.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.tokens.transfer_history import COIN, HistorySlice
from gateways.transport import fair_turns
from gateways.transport.errors import ProviderConfused, ProviderError
from locales import N_
from locales.stored_texts import storable
from models import transaction
from models.db.session import AsyncSession
from services.collections.census import census_queue, count_at_one_block, owned_tokens
from services.collections.census.census_queue import CensusTask, CountTaken
from services.collections.census.owned_tokens import NEWEST, SECOND_READING, SETTLED, TooManyTokens

log = logging.getLogger(f"holdfast.{__name__}")

STEPS_A_TURN = 6
"""How many slices one server's turn reads before another server has its turn."""
OWNERS_COMPARED = 20
"""How many owners of a coin have their balances compared with the balances that the contract states."""
MOST_FAULTS = 6
"""How many failures in a row end a count."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
ONE_NODE = N_("Only one node is set for {chain}, and a count needs a second one that confirms it. Nothing was counted.")
NOT_CONFIRMED = N_("Only one node is set for {chain}: it gave the same list twice, and no other one confirms it.")
SILENT = N_("The nodes of {chain} did not answer, or did not agree. Counted up to block {block}.")
NOT_BEGUN = N_("The nodes of {chain} did not answer, or did not agree. Nothing was counted.")
UNREADABLE = N_("The contract records transfers in a way that names no token, so its holders cannot be counted.")
NO_TRANSFERS = N_("No transfer is recorded up to block {block}, so the holders are not known.")
NO_ASSETS = N_("The index lists no token of this collection, so the holders are not known.")
UNCLEAR = N_("The owners of some tokens of this collection are not known.")
CONTRADICTION = N_(
    "The recorded transfers up to block {block} contradict each other, so the holders cannot be counted from them."
)
DIFFERS = N_(
    "The balances that the contract states at block {block} are not the sums of its transfers, so its holders cannot "
    "be counted from those."
)
TOO_MANY = N_("More than {most} tokens have holders. Counted up to block {block}.")
NO_ROOM = N_("Too many tokens are being counted at the moment. Please try again later.")
OFF = N_("No node is configured for {chain}.")


class Uncountable(Exception):
    """The count ends without a number; the text is the reason, as `locales/stored_texts.py` stores it."""


async def advance(outside: Gateways, task: CensusTask) -> None:
    """Advance a count by one turn, and end its lease. After a provider's failure, try again later, a few times."""
    try:
        await _take_turn(outside, task)
    except CountTaken:
        log.info("lost the lease on a count census=%s", task.id)


async def record_fault(task: CensusTask, reason: str) -> None:
    """Schedule another try after an error of our own; after the last one, end the count with the reason."""
    try:
        await _failed_once(task, reason)
        await _give_back(task)
    except CountTaken:
        log.info("lost the lease on a count census=%s", task.id)


async def _take_turn(outside: Gateways, task: CensusTask) -> None:
    try:
        with fair_turns.on_behalf_of(f"server:{task.server_id}"):
            async with transaction() as db:
                for_any, for_server = await census_queue.make_room(db, task.server_id)
                # A server that has used up its share does not end a count that others wait for.
                is_wanted = for_any and (for_server or await census_queue.refuse(db, task, NO_ROOM))
            if not is_wanted:
                raise Uncountable(NO_ROOM)
            if for_server:
                await (_count_by_list if CHAINS[task.chain].family == "solana" else _add_up_transfers)(outside, task)
    except Uncountable as reason:
        async with transaction() as db:
            await _fail(db, task, str(reason))
    except ProviderError as fault:
        log.info("count interrupted census=%s chain=%s reason=%s", task.id, task.chain, fault)
        await _failed_once(task)
    await _give_back(task)


async def _give_back(task: CensusTask) -> None:
    async with transaction() as db:
        await census_queue.give_back(db, task)


async def _failed_once(task: CensusTask, why: str = "") -> None:
    """Schedule another try; after the last one end the count with the reason `why`, or that the nodes failed."""
    async with transaction() as db:
        stored = await census_queue.read(db, task)
        if stored.faults + 1 < MOST_FAULTS:
            await census_queue.update(db, task, faults=stored.faults + 1)
            await census_queue.give_back(db, task, min(LONGEST_PAUSE, FIRST_PAUSE * 2**stored.faults))
            return
        chain = CHAINS[task.chain].title
        known = stored.block >= 0
        silent = storable(SILENT, chain=chain, block=stored.block) if known else storable(NOT_BEGUN, chain=chain)
        await _fail(db, stored, why or silent)


async def _fail(db: AsyncSession, task: CensusTask, reason: str) -> None:
    await census_queue.update(db, task, state="failed", reason=reason, target=None)


async def _commit(task: CensusTask, **changes: object) -> CensusTask:
    async with transaction() as db:
        return await _update(db, task, **changes)


async def _update(db: AsyncSession, task: CensusTask, **changes: object) -> CensusTask:
    """Write these fields of a count, and return it with them."""
    await census_queue.update(db, task, **changes)
    return replace(task, **changes)  # pyright: ignore[reportArgumentType]


async def _add_up_transfers(outside: Gateways, task: CensusTask) -> None:
    by = _two_nodes(outside, task)
    if task.target is None:
        if (found := await count_at_one_block.read(outside, task, by)) is not None:
            await count_at_one_block.store(task, found)
            return
        task = await _begin(outside, task, by)
    for _ in range(STEPS_A_TURN):
        target = task.target or 0
        if task.block >= target:
            await _end(outside, task, by)
            return
        found = await _read(outside, task, task.block + 1, target, by)
        if task.known is None and task.block >= 0 and found.moves:
            task = await _begin_again(task, found)
            continue
        task = await _keep(task, found)


async def _read(outside: Gateways, task: CensusTask, first: int, last: int, by: Sequence[int]) -> HistorySlice:
    """Return a slice that both nodes give. Once a transfer is known, only nodes that list it are believed to find none.

    Raises ProviderError.
    """
    found = await outside.histories.confirmed(task.chain, task.contract, first, last, by)
    if found.moves or found.unread or (known := task.known) is None:
        return found
    # A node that gives few blocks at a time has thousands of such slices, so the nodes are asked concurrently.
    are_silent = await asyncio.gather(*(_is_silent(outside, task, known, known, node) for node in by))
    if any(are_silent):
        said = f"node {by[are_silent.index(True)] + 1} lists no transfer where there is one"
        raise ProviderConfused(CHAINS[task.chain].title, said)
    if not all(await asyncio.gather(*(_is_silent(outside, task, first, found.last, node) for node in by))):
        raise ProviderConfused(CHAINS[task.chain].title, "its nodes listed no transfers where there are some")
    return found


async def _is_silent(outside: Gateways, task: CensusTask, first: int, last: int, node: int) -> bool:
    """Return whether a node lists no transfer in these blocks. Raises ProviderError."""
    while first <= last:
        part = await outside.histories.read(task.chain, task.contract, first, last, node)
        if part.moves or part.unread:
            return False
        first = part.last + 1
    return True


async def _begin_again(task: CensusTask, found: HistorySlice) -> CensusTask:
    """Read the blocks before the first known transfer once more: only now can an empty answer for them be checked."""
    return await _commit(task, block=-1, known=found.moves[-1].block, moves=0, tokens=0)


def _two_nodes(outside: Gateways, task: CensusTask) -> Sequence[int]:
    """Return the nodes to ask; after a failure a different pair, if more are configured."""
    nodes, title = outside.chains.endpoints(task.chain), CHAINS[task.chain].title
    if nodes < 2:
        raise Uncountable(storable(ONE_NODE if nodes else OFF, chain=title))
    return [(task.faults + place) % nodes for place in range(2)]


async def _begin(outside: Gateways, task: CensusTask, by: Sequence[int]) -> CensusTask:
    """Set the count's target block.

    Begin again at the first block if the block where the last count ended was replaced, or if that count was a
    snapshot. A snapshot knows no transfer, so a node's empty answer for later blocks could not be checked.
    """
    heads = await asyncio.gather(*(outside.histories.settled(task.chain, one) for one in by))
    goal = min(head.block for head in heads)
    is_snapshot = task.tokens > 0 and task.known is None
    if is_snapshot or await _is_replaced(outside, task, goal, by):
        async with transaction() as db:
            await owned_tokens.clear(db, task.id, SETTLED, NEWEST)
            task = await _update(db, task, block=-1, block_hash="", known=None, moves=0, tokens=0)
    return await _commit(task, target=max(goal, task.block))


async def _is_replaced(outside: Gateways, task: CensusTask, goal: int, by: Sequence[int]) -> bool:
    """Return whether a node has a different block at the height where the last count ended."""
    if not task.block_hash or goal < task.block:
        return False
    present = [await outside.histories.block(task.chain, task.block, one) for one in by]
    return any(one.block_hash != task.block_hash for one in present)


async def _keep(task: CensusTask, found: HistorySlice) -> CensusTask:
    """Add a slice to the settled part."""
    _check_kind(found)
    changes = await _changes(task, found)
    async with transaction() as db:
        written = await owned_tokens.add(db, task.id, SETTLED, changes)
        tokens, moves = task.tokens + written.added, task.moves + len(found.moves)
        known = found.moves[-1].block if found.moves else task.known
        task = await _update(db, task, block=found.last, known=known, moves=moves, tokens=tokens, faults=0)
    if written.is_negative:
        await _start_over(task)
        raise Uncountable(storable(CONTRADICTION, block=found.last))
    if tokens > owned_tokens.MOST_TOKENS:
        raise Uncountable(_too_many(found.last))
    return task


async def _changes(task: CensusTask, found: HistorySlice) -> owned_tokens.Amounts:
    try:
        # In a thread, because one log can name half a million tokens and would block the event loop.
        return await asyncio.to_thread(owned_tokens.added_up, found.moves)
    except TooManyTokens:
        raise Uncountable(_too_many(max(task.block, 0))) from None


def _check_kind(found: HistorySlice) -> None:
    if found.unread or len({move.first_id == COIN for move in found.moves}) > 1:
        raise Uncountable(UNREADABLE)


def _too_many(block: int) -> str:
    return storable(TOO_MANY, most=f"{owned_tokens.MOST_TOKENS:,}", block=block)


async def _start_over(task: CensusTask) -> CensusTask:
    async with transaction() as db:
        await owned_tokens.clear(db, task.id, SETTLED, NEWEST, SECOND_READING)
        return await _update(db, task, block=-1, block_hash="", known=None, after=None, again=False, moves=0, tokens=0)


async def _end(outside: Gateways, task: CensusTask, by: Sequence[int]) -> None:
    """Read the blocks after the last settled one, and end the count."""
    heads = await asyncio.gather(*(outside.chains.head(task.chain, one) for one in by))
    marks = [await outside.histories.block(task.chain, task.block, one) for one in by]
    if len({mark.block_hash for mark in marks}) > 1:
        await _failed_once(task)
        return
    last = max(task.block, min(head.block for head in heads))
    changes, moves, start = Counter[tuple[str, int]](), 0, task.block + 1
    while start <= last:
        found = await _read(outside, task, start, last, by)
        _check_kind(found)
        if task.known is None and found.moves:
            await _begin_again(task, found)
            return
        changes.update(await _changes(task, found))
        if len(changes) > owned_tokens.MOST_TOKENS:
            raise Uncountable(_too_many(max(task.block, 0)))
        moves, start = moves + len(found.moves), found.last + 1
    if not task.moves + moves:
        raise Uncountable(storable(NO_TRANSFERS, block=last))
    changes = {place: amount for place, amount in changes.items() if amount}
    async with transaction() as db:
        await owned_tokens.clear(db, task.id, NEWEST)
        await owned_tokens.add(db, task.id, NEWEST, changes)
        if await owned_tokens.is_negative_in_sum(db, task.id):
            await _fail(db, task, storable(CONTRADICTION, block=last))
            return
        of_coin, of_tokens = await owned_tokens.kinds(db, task.id)
        supply, some = await owned_tokens.sampled(db, task.id, OWNERS_COMPARED) if of_coin else (0, {})
    if of_coin and of_tokens:
        raise Uncountable(UNREADABLE)
    if of_coin and not await _is_stated(outside, task, last, by[0], supply, some):
        await _failed_once(task, storable(DIFFERS, block=last))
        return
    async with transaction() as db:
        await census_queue.end(db, task, head=last, block_hash=marks[0].block_hash)
    log.info("count ended census=%s chain=%s block=%s moves=%s", task.id, task.chain, last, task.moves)


async def _is_stated(
    outside: Gateways, task: CensusTask, block: int, node: int, supply: int, some: Mapping[str, int]
) -> bool:
    """Return whether a coin's contract states these balances too. Rebasing coins change balances without transfers.

    The zero address is asked about as well: its amount was burnt, whether or not the total supply includes it.
    """
    owners = [owned_tokens.NOBODY, *some]
    total, burnt, *held = await outside.histories.stated(task.chain, task.contract, owners, block, node)
    return total is not None and total - supply in {0, burnt or 0} and held == list(some.values())


async def _count_by_list(outside: Gateways, task: CensusTask) -> None:
    nodes, title = outside.chains.endpoints(task.chain), CHAINS[task.chain].title
    if not nodes:
        raise Uncountable(storable(OFF, chain=title))
    if task.target is None:
        task = await _commit(await _start_over(task), target=0)
    # The count of failures is not reset after a page, so that a list that is never the same twice ends.
    for _ in range(STEPS_A_TURN):
        node = (task.faults + int(task.again)) % nodes
        page = await outside.collection_owners.page(task.contract, task.after, node)
        if page.unclear:
            raise Uncountable(UNCLEAR)
        listed = {(owner, owned_tokens.number_of(mint)): 1 for mint, owner in page.owners.items()}
        async with transaction() as db:
            part = SECOND_READING if task.again else SETTLED
            written = await owned_tokens.add(db, task.id, part, listed)
            moves = task.moves + written.added
            tokens = task.tokens if task.again else moves
            task = await _update(db, task, moves=moves, tokens=tokens, after=page.after, block=page.slot)
        if moves > owned_tokens.MOST_TOKENS:
            raise Uncountable(_too_many(page.slot))
        if page.after is not None:
            continue
        if not task.again:
            task = await _commit(task, again=True, moves=0)
            continue
        await _compare_lists(task, nodes)
        return


async def _compare_lists(task: CensusTask, nodes: int) -> None:
    """End the count if both readings of the list agree; otherwise read it again, as after a failure."""
    if not task.tokens:
        raise Uncountable(NO_ASSETS)
    async with transaction() as db:
        if await owned_tokens.readings_agree(db, task.id):
            await owned_tokens.clear(db, task.id, SECOND_READING)
            alone = storable(NOT_CONFIRMED, chain=CHAINS[task.chain].title) if nodes < 2 else ""
            await census_queue.end(db, task, head=task.block, block_hash="", reason=alone)
            return
        await census_queue.update(db, task, target=None)
    await _failed_once(task)
