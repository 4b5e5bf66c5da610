"""Open challenges: which are watched for a proof transaction, how often, and how the results are stored."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from sqlalchemy.exc import DataError, DBAPIError
from sqlmodel import col

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from models import Challenge, User, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.runtime import schedules
from services.wallets import ownership, proof_watch
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


async def tick(outside: Gateways) -> int:
    """Check the challenges that are due, unless another scheduler does so; return how many.

    Each chain gets one request, whatever the number of challenges.
    """
    async with transaction() as db:
        soon = await schedules.claim(db, SCHEDULE_SOON, SOON)
        everything = await schedules.claim(db, SCHEDULE_ALL, SLOWLY)
        watched = await open_challenges(db, only_at_a_screen=not everything) if soon or everything else []
    if not watched:
        return 0
    await proof_watch.check_challenges(outside, watched, store=store_results_apart)
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

    A challenge that was used up or deleted meanwhile stays as it is.
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
    await _write_points(db, [one])
    seen = asdict(one.seen) if one.seen else {}
    await db.execute(
        update(Challenge)
        .where(col(Challenge.id) == one.challenge_id, col(Challenge.used_at).is_(None))
        .values(seen=seen, note=one.note)
    )


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
