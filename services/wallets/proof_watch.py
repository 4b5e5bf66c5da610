"""Watch accounts from the creation of a challenge: a proof transaction is found at once, a second node confirms it."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import ceil

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.chains.node_providers import other_nodes
from gateways.evm.rpc.errors import StateMissing, TooMuch
from gateways.evm.transactions import Transaction
from gateways.transport.errors import NotThere, ProviderError
from locales import N_
from locales.stored_texts import storable
from services.runtime.task_cancellation import outcomes
from services.wallets.transaction_check import Judgement, TransactionOutcome, is_bound, judge, judge_memo, marker
from services.wallets.watched_challenge import JudgedTransaction, OpenChallenge, Point, SeenTransaction

log = logging.getLogger(f"holdfast.{__name__}")

MEMOS_AT_ONCE, MEMOS_IN_ALL = 20, 200
"""Memos with a challenge's code that one check judges, and until the wallet counts as too busy to watch."""


async def follow_solana(outside: Gateways, watched: Sequence[OpenChallenge]) -> None:
    """Read each wallet's new signatures, and those of their transactions whose memo has the challenge's code."""
    if any("solana" not in one.points for one in watched):
        slot = (await outside.chains.head("solana")).block
        for one in watched:
            one.points.setdefault("solana", Point(0, slot, one.begins_at(slot)))

    async def follow(one: OpenChallenge) -> None:
        try:
            await _follow_wallet(outside, one)
        except ProviderError:
            # A wallet whose signatures do not come affects no other.
            one.unreachable.add("solana")

    await by_person(watched, follow)


async def _follow_wallet(outside: Gateways, one: OpenChallenge) -> None:
    """Judge the wallet's new memos with the code. Where more is new than is read, older ones need their signature.

    The member knows the code and can send thousands of memos that prove nothing, so each check judges only some.
    """
    point = one.points["solana"]
    if point.scanned >= MEMOS_IN_ALL:
        return
    (newer, is_whole), missing = await outside.solana.newer_signatures(one.address, point.block), None
    named = [signature for signature in newer if signature.memo is not None and one.code in signature.memo]
    judged = point.scanned
    for signature in named[:MEMOS_AT_ONCE]:
        found = await judge_signature(outside, [one], signature.signature)
        if found is None:
            # A node may list a transaction a moment before it returns it, so the list is read again from here.
            missing = missing or signature
            continue
        judged += 1
        if one.judged is not None and one.judged.outcome is not TransactionOutcome.REFUSED:
            return
    if newer:
        first = missing or next(iter(named[MEMOS_AT_ONCE:]), None)
        reached = first.slot - 1 if first else newer[-1].slot
        lost = point.lost or not is_whole or judged >= MEMOS_IN_ALL
        one.points["solana"] = replace(point, block=reached, scanned=judged, lost=lost)


async def judge_signature(outside: Gateways, watched: Sequence[OpenChallenge], signature: str) -> OpenChallenge | None:
    """Judge the transaction with this signature for the newest of a wallet's challenges that it proves.

    Return that challenge, or the newest one if it proves none; None until Solana has finalized the transaction. Raises
    ProviderError.
    """
    found = await outside.solana.memo_transaction(signature)
    if found is None:
        return None
    judged = {one.challenge_id: judge_memo(found, one.wanted) for one in watched}
    proved = (one for one in reversed(watched) if judged[one.challenge_id].outcome is TransactionOutcome.PROVES)
    one = next(proved, watched[-1])
    one.found, one.judged = JudgedTransaction("solana", found.signature, found.slot), judged[one.challenge_id]
    one.note = one.judged.note

    async def ask(endpoint: int) -> TransactionOutcome:
        other = await outside.solana.memo_transaction(signature, endpoint=endpoint)
        return judge_memo(other, one.wanted).outcome if other is not None else TransactionOutcome.WAITS

    await _agree(outside, one, one.judged, "solana", found.endpoint, ask)
    return one


async def _agree(
    outside: Gateways,
    one: OpenChallenge,
    judged: Judgement,
    chain: str,
    first: int,
    ask: Callable[[int], Awaitable[TransactionOutcome]],
) -> None:
    """Have a node other than `first` confirm a transaction that is about to prove a wallet; wait while it disagrees.

    A lying provider must not be able to give a wallet away, so nodes of another one are asked first. Where no other
    node answers, or the chain has only one, a single node is enough: otherwise a node that is down for days would keep
    everybody from proving a wallet.
    """
    if judged.outcome is not TransactionOutcome.PROVES:
        return
    for endpoint in other_nodes(chain, first, outside.chains.endpoints(chain)):
        try:
            outcome = await ask(endpoint)
        except NotThere:
            outcome = TransactionOutcome.WAITS
        except ProviderError:
            continue
        if outcome is not TransactionOutcome.PROVES:
            log.info("nodes disagree about a proof chain=%s challenge=%s", chain, one.challenge_id)
            one.note = storable(_DISAGREE, chain=CHAINS[chain].title)
            one.judged = replace(judged, outcome=TransactionOutcome.WAITS, note=one.note)
        return


OVERLAP, OVERLAP_SECONDS = 3, 5.0
"""Blocks read again, and seconds: a node's answers for its head and for an account may be some blocks apart."""
SCANNED_AT_ONCE, SCANNED_AT_MOST = 300, 2_000
"""Blocks read at once, and the maximum if no node knows the account's past; beyond it, the hash is needed."""
SCANNED_IN_ALL = 10_000
"""Blocks read for one account on one chain until it counts as too busy to watch."""
PORTION = 100
"""Blocks after which a search in older blocks keeps how far it is, for the case that it is not finished in time."""
PEOPLE_AT_ONCE = 16
"""People whose challenges are checked concurrently."""
REORGANISED = 12
_DISAGREE = N_("The nodes of {chain} do not agree about your transaction yet. We look again every few seconds.")


def is_proved(one: OpenChallenge) -> bool:
    """Return whether a transaction that was found proves the challenge's wallet."""
    return one.judged is not None and one.judged.outcome is TransactionOutcome.PROVES


def move_back(one: OpenChallenge, chain: str, point: Point | None) -> None:
    """Take a trail back to where it was, so that the next check finds again what came since."""
    if point is None:
        one.points.pop(chain, None)
    else:
        one.points[chain] = point


async def by_person(watched: Sequence[OpenChallenge], check: Callable[[OpenChallenge], Awaitable[None]]) -> None:
    """Check each person's challenges one after another, and those of PEOPLE_AT_ONCE people at the same time.

    A node that is silent about one keeps nobody else waiting. The order of people differs each time, so that a check
    that ends too early does not always leave out the same ones.
    """
    theirs: dict[int, list[OpenChallenge]] = {}
    for one in watched:
        theirs.setdefault(one.user_id, []).append(one)
    turns = asyncio.Semaphore(PEOPLE_AT_ONCE)

    async def person(listed: Sequence[OpenChallenge]) -> None:
        async with turns:
            for one in listed:
                await check(one)

    tasks = [asyncio.create_task(person(listed)) for listed in random.sample(list(theirs.values()), len(theirs))]
    try:
        if tasks:
            await asyncio.wait(tasks)
    finally:
        ended = await outcomes(*tasks)
    for fault in filter(None, ended):
        raise fault


def chains_of(outside: Gateways, family: str) -> list[str]:
    """Return the chains on which a wallet of the family can be proved by a transaction."""
    if family == "solana":
        return ["solana"] if outside.chains.endpoints("solana") else []
    return outside.transactions.chains()


async def follow_evm(outside: Gateways, chain: str, watched: Sequence[OpenChallenge]) -> None:
    """Read how many transactions the accounts have sent, and find those sent to themselves."""
    known = [one for one in watched if chain in one.points and not one.points[chain].lost]
    new = [one for one in watched if chain not in one.points]
    if new:
        sheet = await outside.transactions.nonces(chain, list({one.address for one in new}), look_at_code=True)
        for one in new:
            contract = one.address in sheet.contracts
            one.points[chain] = Point(sheet.sent[one.address], sheet.block, one.begins_at(sheet.block), contract)
    if known:
        sheet = await outside.transactions.nonces(chain, list({one.address for one in known}))
        await _follow_contracts(outside, chain, [one for one in known if one.points[chain].contract], sheet.block)
        busy: list[tuple[OpenChallenge, int]] = []
        for one in known:
            if chain in one.unreachable or one.points[chain].lost:
                continue
            point, sent = one.points[chain], sheet.sent[one.address]
            if sent > point.nonce:
                busy.append((one, sent))
            else:
                # Fewer than before: a reorganisation, or a node that is behind. Transactions that return are found
                # again.
                one.points[chain] = replace(point, nonce=sent, block=sheet.block)
        await _search(outside, chain, busy, sheet.block)


async def _follow_contracts(outside: Gateways, chain: str, acting: Sequence[OpenChallenge], head: int) -> None:
    """Find the transactions in which contract accounts acted since their points. The caller moves the points.

    A contract can write anything into its own events, so events that cannot be read affect only its own challenge.
    """
    for one in acting:
        if head - one.points[chain].block > SCANNED_AT_MOST:
            one.points[chain] = replace(one.points[chain], lost=True)
    near = [one for one in acting if not one.points[chain].lost]
    if not near:
        return
    first = min(_first_block(chain, one.points[chain]) for one in near)
    if first > head:
        return
    try:
        found = await outside.transactions.of_accounts(chain, {one.address for one in near}, first, head)
    except ProviderError:
        for one in near:
            one.unreachable.add(chain)
        return
    for one in near:
        one.candidates += [each for each in found if each.account == one.address]


async def _search(outside: Gateways, chain: str, busy: list[tuple[OpenChallenge, int]], head: int) -> None:
    """Find the transactions that each account sent to itself since its point, and move the points to the head.

    Accounts that were read a moment ago come first, so that one with a long range does not use up their time.
    """
    missing = {one.challenge_id: head - one.points[chain].block for one, _ in busy}
    fresh = [each for each in busy if missing[each[0].challenge_id] <= PORTION]
    older = [each for each in busy if PORTION < missing[each[0].challenge_id] <= SCANNED_AT_ONCE]
    far = [each for each in busy if missing[each[0].challenge_id] > SCANNED_AT_ONCE]
    for near in filter(None, (fresh, older)):
        first = min(_first_block(chain, one.points[chain]) for one, _ in near)
        try:
            own = await outside.transactions.to_themselves(chain, {one.address for one, _ in near}, first, head)
        except ProviderError:
            for one, _ in near:
                one.unreachable.add(chain)
            continue
        for one, sent in near:
            _move(one, chain, sent, head, own, missing[one.challenge_id])
    # In another order each time, so that one does not always use up the time of the same others.
    for one, sent in random.sample(far, len(far)):
        try:
            await _catch_up(outside, chain, one, sent, head)
        except ProviderError:
            one.unreachable.add(chain)


async def _catch_up(outside: Gateways, chain: str, one: OpenChallenge, sent: int, head: int) -> None:
    """Catch up after a long pause: by a node that knows the account's past, otherwise block by block, or give up.

    A search that is not finished in time goes on from there at the next check.
    """
    point = one.points[chain]
    first = _first_block(chain, point)
    try:
        blocks = await outside.transactions.busy_blocks(chain, one.address, (point.block, point.nonce), (head, sent))
        parts = [(block, block) for block in blocks]
    except (StateMissing, TooMuch):
        if head - first > SCANNED_AT_MOST:
            one.points[chain] = replace(point, lost=True)
            return
        parts = [(begin, min(begin + PORTION - 1, head)) for begin in range(first, head + 1, PORTION)]
    for begin, end in parts:
        own = await outside.transactions.to_themselves(chain, {one.address}, begin, end)
        # Until the end is reached the count stays, so that the account still counts as busy.
        _move(one, chain, point.nonce, end, own, end - begin + 1)
    _move(one, chain, sent, head, [], 0)


def _first_block(chain: str, point: Point) -> int:
    overlap = max(OVERLAP, ceil(OVERLAP_SECONDS / CHAINS[chain].block_seconds))
    return max(point.block - overlap + 1, point.first_block + 1)


def _move(one: OpenChallenge, chain: str, sent: int, head: int, own: Sequence[Transaction], scanned: int) -> None:
    point = one.points[chain]
    total = point.scanned + scanned
    one.candidates += [found for found in own if one.address in {found.sender, found.account}]
    one.points[chain] = replace(point, nonce=sent, block=head, scanned=total, lost=total > SCANNED_IN_ALL)


async def judge_on(outside: Gateways, one: OpenChallenge, chain: str, before: Point | None) -> None:
    """Judge the chain's transaction with the challenge's mark, found now or before, by the chain's present state.

    A challenge remembers one transaction that waits. While one waits on another chain, one that waits here is not
    remembered, and the trail stays at `before`, where the next check finds it again.
    """
    if is_proved(one):
        return
    kept = one.seen, one.note, one.judged, one.found
    elsewhere = one.seen is not None and one.seen.chain != chain
    await _judge_found(outside, one, chain)
    if elsewhere and not is_proved(one):
        waits = one.judged is not None and one.judged.outcome is TransactionOutcome.WAITS and one.judged is not kept[2]
        if waits or one.seen is not kept[0]:
            move_back(one, chain, before)
        one.seen, one.note, one.judged, one.found = kept


async def _judge_found(outside: Gateways, one: OpenChallenge, chain: str) -> None:
    candidates = [found for found in one.candidates if found.chain == chain]
    marked = {found.hash: found for found in candidates if marker(found, one.wanted)}
    if candidates and not marked and one.seen is None:
        one.note = judge(candidates[-1], one.wanted).note
    seen = [one.seen.hash] if one.seen is not None and one.seen.chain == chain else []
    again: Transaction | None = None
    for hash in dict.fromkeys([*seen, *marked]):
        try:
            found = await outside.transactions.transaction(chain, hash, one.address)
        except ProviderError as fault:
            if hash in marked:
                again = again or marked[hash]
            elif isinstance(fault, NotThere):
                _gone(one)
            else:
                one.unreachable.add(chain)
            continue
        await conclude(outside, one, found)
        if one.judged is not None and one.judged.outcome is not TransactionOutcome.REFUSED:
            return
    if again is not None:
        # It was in a block a moment ago, so only this request failed.
        one.note, one.seen = "", _seen(again, 0)


async def conclude(outside: Gateways, one: OpenChallenge, found: Transaction) -> None:
    """Judge a transaction for the challenge, and remember one that waits. A second node confirms one that proves it.

    Raises no ProviderError.
    """
    judged = _take(one, found)

    async def ask(endpoint: int) -> TransactionOutcome:
        other = await outside.transactions.transaction(found.chain, found.hash, one.address, endpoint=endpoint)
        return judge(other, one.wanted).outcome

    await _agree(outside, one, judged, found.chain, found.endpoint, ask)


def _take(one: OpenChallenge, found: Transaction) -> Judgement:
    one.judged = judge(found, one.wanted)
    one.found = JudgedTransaction(found.chain, found.hash, found.block, is_bound(found), bool(found.calls))
    if one.judged.outcome is TransactionOutcome.REFUSED:
        one.note = one.judged.note
        if one.seen is not None and one.seen.hash == found.hash:
            one.seen = None
        return one.judged
    before = one.seen.block if one.seen is not None and one.seen.hash == found.hash else 0
    one.note, one.seen = "", _seen(found, before)
    return one.judged


def _seen(found: Transaction, before: int) -> SeenTransaction:
    """Return the transaction to remember; `before` is its last known block, in case it is in no block now."""
    block = found.block if found.block is not None else before
    needed = CHAINS[found.chain].confirmations
    return SeenTransaction(found.chain, found.hash, block, found.nonce, min(found.confirmations, needed), needed)


def _gone(one: OpenChallenge) -> None:
    """Forget a transaction that left the chain, and search from before it for its replacement."""
    seen, one.seen = one.seen, None
    if seen is not None and seen.chain in one.points:
        point = one.points[seen.chain]
        since = max(seen.block - REORGANISED, point.first_block)
        one.points[seen.chain] = replace(point, nonce=min(seen.nonce, point.nonce), block=since)
    one.note = (
        storable("Your transaction is no longer on {chain}. It is looked for again.", chain=CHAINS[seen.chain].title)
        if seen
        else ""
    )
