"""Open challenges: which are watched for a proof transaction, how often, and how the results are stored."""

import asyncio
import json
import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sqlalchemy.exc import DataError, DBAPIError

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from models import Challenge, User, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.runtime import schedules
from services.runtime.retries import database_errors_logged
from services.runtime.task_cancellation import outcomes
from services.wallets import chain_checks, ownership, proof_watch
from services.wallets.ownership import SPENT, WalletProof
from services.wallets.transaction_check import TransactionOutcome
from services.wallets.watched_challenge import OpenChallenge, Point, SeenTransaction

log = logging.getLogger(f"holdfast.{__name__}")

METHOD = "transaction"
SOON, SLOWLY = timedelta(seconds=5), timedelta(seconds=60)
"""How often challenges with an open screen (or a waiting transaction) are checked, and how often all others."""
SCREEN_OPEN = timedelta(seconds=15)
"""A screen that asked within this time counts as open."""
SCHEDULE_SOON, SCHEDULE_ALL = "challenges.soon", "challenges.all"
MOST_OF_ONE = 20
"""How many open challenges are watched per person; the others need the transaction's hash.

Those with a transaction that waits come first, then the newest.
"""
WAITED_FOR = timedelta(hours=1)
"""How long after a challenge's end a transaction that was seen before may still get its confirmations."""

_OPEN = """
    SELECT c.id FROM (
        SELECT id, screen_at, seen,
               row_number() OVER (PARTITION BY user_id ORDER BY seen <> '{}' DESC, id DESC) AS place
        FROM challenge WHERE used_at IS NULL AND expires_at > now() - CAST(:waited AS interval)
        AND (expires_at > now() OR seen <> '{}')
        AND EXISTS (SELECT 1 FROM trail WHERE trail.challenge_id = challenge.id)
    ) c WHERE c.place <= :most
"""
_AT_A_SCREEN = " AND (c.screen_at > now() - CAST(:open AS interval) OR c.seen <> '{}')"


async def prepare(db: AsyncSession) -> None:
    """Create the rows of both schedules if they are missing."""
    await schedules.ensure(db, SCHEDULE_SOON, SOON)
    await schedules.ensure(db, SCHEDULE_ALL, SLOWLY)


class ChainChecks:
    """The checks of chains that run, at most one for each chain, so that a slow chain delays no other."""

    def __init__(self) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._overdue = set[str]()
        """Chains whose last check of all challenges could not begin, because an earlier check still ran."""

    def idle(self, outside: Gateways) -> set[str]:
        """Return the chains that are not being checked. Raises the error of a check that failed."""
        for chain, task in list(self.tasks.items()):
            if task.done():
                del self.tasks[chain]
                task.result()
        known = {chain for family in chain_checks.FAMILIES for chain in proof_watch.chains_of(outside, family)}
        return known - self.tasks.keys()

    def is_overdue(self, idle: AbstractSet[str]) -> bool:
        """Return whether one of these chains has missed a check of all challenges."""
        return bool(self._overdue & idle)

    def begin(
        self, outside: Gateways, idle: AbstractSet[str], watched: Sequence[OpenChallenge], *, everything: bool
    ) -> None:
        """Begin to check the challenges on these chains."""
        self._overdue = (self._overdue | (self.tasks.keys() if everything else set[str]())) - idle
        for family in chain_checks.FAMILIES:
            for chain in sorted(idle & set(proof_watch.chains_of(outside, family))):
                if theirs := [one.on(chain) for one in watched if one.family == family]:
                    self.tasks[chain] = asyncio.create_task(_check(outside, chain, theirs))

    async def ended(self) -> None:
        """Wait until all checks have ended. Raises the error of one that failed."""
        for task in list(self.tasks.values()):
            await task

    async def stop(self) -> None:
        """Cancel all checks, and wait until they have ended."""
        await outcomes(*self.tasks.values())


async def _check(outside: Gateways, chain: str, watched: Sequence[OpenChallenge]) -> None:
    with database_errors_logged(log, "challenges will be polled again"):
        await chain_checks.check_chain(outside, chain, watched, store=store_results_apart)


async def tick(outside: Gateways, checks: ChainChecks) -> int:
    """Begin to check the challenges that are due, unless another scheduler does so; return how many.

    Each chain gets one request, whatever the number of challenges. A chain whose last check still runs is left out.
    """
    idle = checks.idle(outside)
    async with transaction() as db:
        soon = await schedules.claim(db, SCHEDULE_SOON, SOON)
        everything = soon and await schedules.claim(db, SCHEDULE_ALL, SLOWLY)
        whole = everything or checks.is_overdue(idle)
        watched = await open_challenges(db, only_at_a_screen=not whole) if soon or whole else []
    checks.begin(outside, idle, watched, everything=everything)
    return len(watched)


async def store_results_apart(watched: Sequence[OpenChallenge]) -> None:
    """Store a check of many people's challenges, so that an error in one does not affect the others.

    A trail that moved past an unwritten proof would never find it again, so a challenge with more to write than its
    trail gets its own transaction for everything. So does each if the database refuses a number of one of them, because
    a node may answer with any number.
    """
    apart = [one for one in watched if _changed(one)]
    try:
        async with transaction() as db:
            await _write_points(db, [one for one in watched if not _changed(one)])
    except DataError:
        apart = list(watched)
    for one in apart:
        try:
            async with transaction() as db:
                await store_result(db, one)
        except DBAPIError as fault:
            log.warning("challenge not stored, will be checked again id=%s reason=%s", one.challenge_id, fault.orig)


def _changed(one: OpenChallenge) -> bool:
    """Return whether a check found more than progress of the trail."""
    return one.judged is not None or (one.seen, one.note) != one.stored


async def open_challenges(db: AsyncSession, *, only_at_a_screen: bool) -> list[OpenChallenge]:
    """Return the watched challenges; only those with an open screen or a waiting transaction, or all."""
    found = await db.execute(
        _OPEN + (_AT_A_SCREEN if only_at_a_screen else ""),
        {"most": MOST_OF_ONE, "waited": WAITED_FOR, "open": SCREEN_OPEN},
    )
    return await load(db, [int(number) for (number,) in found.all()])


async def load(db: AsyncSession, ids: Sequence[int]) -> list[OpenChallenge]:
    """Return these challenges with their trails, as a check needs them."""
    if not ids:
        return []
    rows = await db.execute(
        """
        SELECT c.id, c.user_id, c.family, c.address, c.code, c.amount_wei, c.created_at, c.seen, c.note,
               t.chain, t.nonce, t.block, t.first_block, t.contract, t.scanned, t.lost
        FROM challenge c LEFT JOIN trail t ON t.challenge_id = c.id
        WHERE c.id = ANY(CAST(:ids AS integer[])) ORDER BY c.id
        """,
        {"ids": list(ids)},
    )
    watched: dict[int, OpenChallenge] = {}
    for row in rows.all():
        number, seen, note = int(row.id), seen_of(row.seen), str(row.note)
        one = watched.setdefault(
            number,
            OpenChallenge(
                number, row.user_id, row.family, row.address, row.code, int(row.amount_wei), row.created_at, {}, seen,
                note, (seen, note),
            ),
        )  # fmt: skip
        if row.chain is not None:
            one.points[str(row.chain)] = Point(
                row.nonce, row.block, row.first_block, row.contract, row.scanned, row.lost
            )  # fmt: skip
    return list(watched.values())


def seen_of(stored: dict[str, Any]) -> SeenTransaction | None:
    """Return the waiting transaction stored in the challenge's row."""
    return SeenTransaction(**stored) if stored else None


async def store_result(db: AsyncSession, one: OpenChallenge) -> None:
    """Store the result of a check, and make a proved wallet the person's. Do it first in the transaction.

    A challenge that was used up or deleted meanwhile stays as it is, and so does one for which another check has stored
    another transaction.
    """
    if not _changed(one):
        await _write_points(db, [one])
        return
    row = await db.get(Challenge, one.challenge_id, populate_existing=True)
    if row is None:
        return
    if row.used_at is None and one.judged is not None and one.judged.outcome is TransactionOutcome.PROVES:
        # Before the points: a proof locks the person, a deletion of their data too, and both before the challenge.
        await _prove(db, one, row)
    seen = json.dumps(asdict(one.seen) if one.seen else {})
    before = one.stored[0].hash if one.stored[0] else ""
    # Another check may have stored the same transaction meanwhile: what was found about it here counts.
    judged = one.found.hash if one.found is not None else before
    written = await db.execute(
        """
        UPDATE challenge SET seen = CASE WHEN used_at IS NULL THEN CAST(:seen AS jsonb) ELSE seen END,
            note = CASE WHEN used_at IS NULL THEN :note ELSE note END
        WHERE id = :id AND (used_at IS NOT NULL OR coalesce(seen ->> 'hash', '') IN (:before, :judged)) RETURNING id
        """,
        {"id": one.challenge_id, "seen": seen, "note": one.note, "before": before, "judged": judged},
    )
    if written.first() is not None:
        # Otherwise another chain's check has stored a transaction that waits, and what was found here is found again.
        await _write_points(db, [one])


async def _prove(db: AsyncSession, one: OpenChallenge, row: Challenge) -> None:
    """Make the wallet the person's, or note why that is not possible."""
    user = await db.get(User, one.user_id)
    if user is None:
        return
    try:
        await ownership.keep(db, Actor(one.user_id, user.discord_id, user.username), row, proof(one))
    except (ownership.AlreadySpent, ownership.TooManyWallets, ownership.HeldByAnother) as fault:
        one.seen = None
        one.note = fault.note if isinstance(fault, ownership.TooManyWallets) else _REFUSALS[type(fault)]
    except ownership.PersonGone:
        pass  # nothing is left to store


_REFUSALS: dict[type[Exception], str] = {ownership.AlreadySpent: SPENT, ownership.HeldByAnother: ownership.HELD}
"""The sentence to store for each error that has none itself."""


def proof(one: OpenChallenge) -> WalletProof:
    """Return the proof to store with a wallet that the transaction found has proved."""
    assert one.found is not None
    assert one.judged is not None
    evidence = {
        "marker": one.judged.marker, "source": CHAINS[one.found.chain].title, "chain": one.found.chain,
        "hash": one.found.hash, "block": one.found.block,
    }  # fmt: skip
    spent = ownership.spent_by(one.found.hash, one.address) if one.found.part else one.found.hash
    bound = one.found.chain if one.found.bound else ""
    return WalletProof(METHOD, evidence, strong=True, spends=(spent, one.found.chain), chain=bound)


async def _write_points(db: AsyncSession, watched: Sequence[OpenChallenge]) -> None:
    """Write all points in one statement, except those of deleted challenges.

    A fixed order makes two checks of one challenge wait for each other instead of deadlocking. The challenges are
    locked first, as a deletion does it: it waits for the check or the check for it, and the check leaves out what it
    deleted.
    """
    points = [(one.challenge_id, chain, point) for one in watched for chain, point in one.points.items()]
    if not points:
        return
    columns: dict[str, list[Any]] = {
        "ids": [number for number, _, _ in points],
        "chains": [chain for _, chain, _ in points],
        **{
            f"{name}s": [getattr(point, name) for _, _, point in points]
            for name in ("nonce", "block", "first_block", "contract", "scanned", "lost")
        },
    }
    await db.execute(
        """
        INSERT INTO trail (challenge_id, chain, nonce, block, first_block, contract, scanned, lost)
        SELECT p.* FROM unnest(
            CAST(:ids AS integer[]), CAST(:chains AS text[]), CAST(:nonces AS bigint[]), CAST(:blocks AS bigint[]),
            CAST(:first_blocks AS bigint[]), CAST(:contracts AS boolean[]), CAST(:scanneds AS integer[]),
            CAST(:losts AS boolean[])
        ) AS p (challenge_id, chain, nonce, block, first_block, contract, scanned, lost)
        JOIN (SELECT id FROM challenge WHERE id = ANY(CAST(:ids AS integer[])) ORDER BY id FOR KEY SHARE) c
            ON c.id = p.challenge_id
        ORDER BY p.challenge_id, p.chain
        ON CONFLICT (challenge_id, chain) DO UPDATE SET nonce = EXCLUDED.nonce, block = EXCLUDED.block,
            scanned = EXCLUDED.scanned, lost = EXCLUDED.lost
        """,
        columns,
    )
