"""The forward trail: following accounts from the moment of a challenge, so that what they send is found at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.errors import StateMissing, TooMuch
from gateways.evm.transactions import Transaction
from gateways.transport.errors import NotThere, ProviderError
from services.wallets import watch_memos
from services.wallets.transaction_check import TransactionOutcome, judge, marker
from services.wallets.watch_state import JudgedTransaction, OpenChallenge, Point, SeenTransaction

PATIENCE = 12.0
"""Seconds that one look waits for the slowest chain; what a chain says later is found by the next look."""
OVERLAP = 3
"""Blocks read again: a node may answer for its head and for an account a block or two apart."""
SCANNED_AT_ONCE, SCANNED_AT_MOST = 300, 2_000
"""So many blocks are read straight away; so many when no node knows the account's past; beyond, only the hash helps."""
SCANNED_IN_ALL = 10_000
"""After so many blocks read for one account on one chain it is too busy to be followed."""
REORGANISED = 12


async def look(outside: Gateways, watched: Sequence[OpenChallenge], patience: float = PATIENCE) -> None:
    """One look at all these challenges: one request to each chain, and more only where an account sent something.

    Asks the network alone; the findings are left in `watched`. A chain that fails changes nothing.
    """
    if not watched:
        return
    evm, solana = ([one for one in watched if one.family == family] for family in ("evm", "solana"))
    tasks = {asyncio.create_task(_follow(outside, chain, evm)): chain for chain in chains_of(outside, "evm") if evm}
    if solana:
        tasks[asyncio.create_task(watch_memos.follow(outside, solana))] = "solana"
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for chain, outcome in zip(tasks.values(), outcomes, strict=True):
        if isinstance(outcome, ProviderError | asyncio.CancelledError):
            for one in watched:
                one.unreachable |= {chain} & set(chains_of(outside, one.family))
        elif outcome is not None:
            raise outcome
    for one in evm:
        await _judge(outside, one)


def chains_of(outside: Gateways, family: str) -> list[str]:
    """The chains on which a wallet of the family can be proved by a transaction."""
    if family == "solana":
        return ["solana"] if outside.chains.endpoints("solana") else []
    return outside.transactions.chains()


async def _follow(outside: Gateways, chain: str, watched: Sequence[OpenChallenge]) -> None:
    """Read how many transactions the accounts have sent, and what those who sent some have sent to themselves."""
    known = [one for one in watched if chain in one.points and not one.points[chain].lost]
    if known:
        sheet = await outside.transactions.nonces(chain, list({one.address for one in known}))
        busy: list[tuple[OpenChallenge, int]] = []
        for one in known:
            point, sent = one.points[chain], sheet.sent[one.address]
            if sent > point.nonce:
                busy.append((one, sent))
            else:
                # Fewer than before: a reorganisation, or a node that is behind. What comes again is seen again.
                one.points[chain] = replace(point, nonce=sent, block=sheet.block)
        await _search(outside, chain, busy, sheet.block)
    new = [one for one in watched if chain not in one.points]
    if new:
        sheet = await outside.transactions.nonces(chain, list({one.address for one in new}), look_at_code=True)
        for one in new:
            contract = one.address in sheet.contracts
            one.points[chain] = Point(sheet.sent[one.address], sheet.block, one.begins_at(sheet.block), contract)


async def _search(outside: Gateways, chain: str, busy: list[tuple[OpenChallenge, int]], head: int) -> None:
    """Find what each of these sent to itself since its point, and move the points to the head."""
    near = [(one, sent) for one, sent in busy if head - one.points[chain].block <= SCANNED_AT_ONCE]
    if near:
        first = min(_first_block(one.points[chain]) for one, _ in near)
        own = await outside.transactions.to_themselves(chain, {one.address for one, _ in near}, first, head)
        for one, sent in near:
            _take(one, chain, sent, head, own, head - one.points[chain].block)
    for one, sent in busy:
        if head - one.points[chain].block > SCANNED_AT_ONCE:
            await _catch_up(outside, chain, one, sent, head)


async def _catch_up(outside: Gateways, chain: str, one: OpenChallenge, sent: int, head: int) -> None:
    """We were away for long: by a node that knows the account's past, else block by block; else it is lost."""
    point = one.points[chain]
    first, own = _first_block(point), list[Transaction]()
    try:
        blocks = await outside.transactions.busy_blocks(chain, one.address, (point.block, point.nonce), (head, sent))
        for block in blocks:
            own += await outside.transactions.to_themselves(chain, {one.address}, block, block)
    except (StateMissing, TooMuch):
        if head - first > SCANNED_AT_MOST:
            one.points[chain] = replace(point, lost=True)
            return
        blocks = range(first, head + 1)
        own = await outside.transactions.to_themselves(chain, {one.address}, first, head)
    _take(one, chain, sent, head, own, len(blocks))


def _first_block(point: Point) -> int:
    return max(point.block - OVERLAP + 1, point.first_block + 1)


def _take(one: OpenChallenge, chain: str, sent: int, head: int, own: Sequence[Transaction], scanned: int) -> None:
    point = one.points[chain]
    total = point.scanned + scanned
    one.candidates += [found for found in own if found.sender == one.address]
    one.points[chain] = replace(point, nonce=sent, block=head, scanned=total, lost=total > SCANNED_IN_ALL)


async def _judge(outside: Gateways, one: OpenChallenge) -> None:
    """Judge what bears the challenge's mark, found now or before, as its chain has it at this moment."""
    marked = {(found.chain, found.hash): found for found in one.candidates if marker(found, one.wanted)}
    if one.candidates and not marked and one.seen is None:
        one.note = judge(one.candidates[-1], one.wanted).message
    seen = [(one.seen.chain, one.seen.hash)] if one.seen else []
    for chain, hash in dict.fromkeys([*seen, *marked]):
        try:
            found = await outside.transactions.transaction(chain, hash)
        except ProviderError as fault:
            if (chain, hash) in marked:
                # It stood in a block a moment ago, so it is only this question that failed.
                one.seen = _seen(marked[chain, hash], 0)
            elif isinstance(fault, NotThere):
                _gone(one)
                continue
            else:
                one.unreachable.add(chain)
            return
        take(one, found)
        if one.judged is not None and one.judged.outcome is not TransactionOutcome.REFUSED:
            return


def take(one: OpenChallenge, found: Transaction) -> None:
    """Judge a transaction for the challenge; one that waits for confirmations is remembered."""
    one.found, one.judged = JudgedTransaction(found.chain, found.hash, found.block), judge(found, one.wanted)
    if one.judged.outcome is TransactionOutcome.REFUSED:
        one.note = one.judged.message
        if one.seen is not None and one.seen.hash == found.hash:
            one.seen = None
        return
    before = one.seen.block if one.seen is not None and one.seen.hash == found.hash else 0
    one.note, one.seen = "", _seen(found, before)


def _seen(found: Transaction, before: int) -> SeenTransaction:
    """What is remembered; `before` is the block that it was in, in case it is in none at the moment."""
    block = found.block if found.block is not None else before
    needed = CHAINS[found.chain].confirmations
    return SeenTransaction(found.chain, found.hash, block, found.nonce, min(found.confirmations, needed), needed)


def _gone(one: OpenChallenge) -> None:
    """What was seen is no longer on the chain: look again from before it, for what took its place."""
    seen, one.seen = one.seen, None
    if seen is not None and seen.chain in one.points:
        point = one.points[seen.chain]
        since = max(seen.block - REORGANISED, point.first_block)
        one.points[seen.chain] = replace(point, nonce=min(seen.nonce, point.nonce), block=since)
    one.note = f"Your transaction is no longer on {CHAINS[seen.chain].title}. It is looked for again." if seen else ""
