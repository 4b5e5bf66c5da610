"""The cursors of chains: how far each has been followed, and which process follows it."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import select

from gateways.chains.catalogue import CHAINS, evm_chains
from gateways.evm.transfer_logs import COINS as COINS
from gateways.evm.transfer_logs import CONTRACTS as CONTRACTS
from gateways.evm.transfer_logs import WALLETS as WALLETS
from models import Cursor, transaction
from models.db.session import AsyncSession, GuardFailed
from settings import settings

ANY = "any"
LEASE = timedelta(seconds=30)
"""How much longer than the longest pause between two polls a follower keeps its lease."""
RENEWED_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Position:
    """The last settled block up to which a chain has been read; 0 before the first read.

    A block without its hash is not compared with the chain's.
    """

    block: int
    block_hash: str


class CursorTaken(Exception):
    """Another process has taken over the chain."""


@dataclass(frozen=True, slots=True)
class FollowView:
    """How far a chain has been followed: `behind` counts blocks; `fault` is why the last try failed.

    `slices` is the number of polls that it takes to read all wallets, if they are too many for one.
    """

    chain: str
    kind: str
    block: int
    behind: int
    updated_at: datetime
    fault: str | None
    slices: int = 1


def cursor_of(chain: str, kind: str = CONTRACTS) -> str:
    """Return the key of a chain's cursor; wallets have their own, so contracts never wait for them."""
    return chain if kind == CONTRACTS else f"{chain}:{kind}"


def lease() -> timedelta:
    """Return how long a follower's lease lasts after a poll."""
    return LEASE + timedelta(seconds=max(map(settings().follow_pace, evm_chains())))


def registry_on(chain: str) -> str | None:
    """Return the address of the chain's delegation registry in lower case, or None."""
    facts = CHAINS.get(chain)
    return facts.delegates.lower() if facts is not None and facts.delegates is not None else None


async def claim(db: AsyncSession, chains: Sequence[str], owner: str) -> dict[str, Position]:
    """Take or renew the lease on cursors; return the positions of those obtained."""
    # A lease with much time left is not written again, so that a quiet second is one read and no write.
    kept = await _held(db, chains, owner, lease() - RENEWED_EVERY)
    if len(kept) == len(chains):
        return kept
    await db.execute(
        """
        INSERT INTO cursor (chain, block, block_hash, updated_at)
        SELECT chain, 0, '', now() FROM unnest(CAST(:chains AS text[])) AS c (chain)
        WHERE NOT EXISTS (SELECT 1 FROM cursor k WHERE k.chain = c.chain) ORDER BY chain
        ON CONFLICT DO NOTHING
        """,
        {"chains": list(chains)},
    )
    # The fixed order makes overlapping claims wait for each other instead of deadlocking.
    await db.execute(
        """
        UPDATE cursor SET owner = :owner, owned_until = now() + :lease
        WHERE chain IN (
            SELECT chain FROM cursor WHERE chain = ANY(CAST(:chains AS text[]))
            AND (owner IS NULL OR owned_until < now() OR (owner = :owner AND owned_until < now() + :renewed))
            ORDER BY chain FOR UPDATE)
        """,
        {"chains": list(chains), "owner": owner, "lease": lease(), "renewed": lease() - RENEWED_EVERY},
    )
    return await _held(db, chains, owner, timedelta())


async def _held(db: AsyncSession, chains: Sequence[str], owner: str, left: timedelta) -> dict[str, Position]:
    """Return the positions of the cursors whose lease the owner has for longer than `left`."""
    result = await db.execute(
        "SELECT chain, block, block_hash FROM cursor "
        "WHERE chain = ANY(CAST(:chains AS text[])) AND owner = :owner AND owned_until > now() + :left",
        {"chains": list(chains), "owner": owner, "left": left},
    )
    return {str(chain): Position(int(block), str(name)) for chain, block, name in result.all()}


async def release_leases(db: AsyncSession, is_dead: Callable[[str], bool]) -> None:
    """Release the chains of followers that are known to be dead, before their leases expire."""
    result = await db.execute("SELECT DISTINCT owner FROM cursor WHERE owner IS NOT NULL")
    dead = [str(owner) for (owner,) in result.all() if is_dead(str(owner))]
    if dead:
        await db.execute(
            "UPDATE cursor SET owner = NULL, owned_until = NULL WHERE chain IN ("
            "SELECT chain FROM cursor WHERE owner = ANY(CAST(:dead AS text[])) ORDER BY chain FOR UPDATE)",
            {"dead": dead},
        )


@asynccontextmanager
async def advancing(
    cursor: str, owner: str, position: Position, head: int, slices: int = 1
) -> AsyncGenerator[AsyncSession]:
    """Open a transaction that first advances the cursor. Raises CursorTaken, and rolls back, if the lease is lost.

    A lease that ended during a long poll is not lost while no other process has taken it: where every poll is long, the
    chain would not be followed at all.
    """
    values = {
        "block": position.block, "hash": position.block_hash, "head": head, "lease": lease(), "chain": cursor,
        "owner": owner, "slices": slices,
    }  # fmt: skip
    # The lease check shares one round trip with the writes: a lost lease fails the statement and aborts them all.
    statement = """
        WITH advanced AS (
            UPDATE cursor SET block = :block, block_hash = :hash, head = :head, fault = NULL, updated_at = now(),
                   slices = :slices, owned_until = now() + :lease
            WHERE chain = :chain AND owner = :owner RETURNING 1)
        SELECT guard(count(*) > 0, 'the lease is lost') FROM advanced
    """
    try:
        async with transaction() as db:
            db.later(statement, values)
            yield db
    except GuardFailed as fault:
        raise CursorTaken(f"{owner} does not follow {cursor} any more") from fault


async def failed(db: AsyncSession, cursor: str, owner: str, fault: str) -> None:
    """Record why the chain could not be read."""
    await db.execute(
        "UPDATE cursor SET fault = :fault WHERE chain = :chain AND owner = :owner",
        {"fault": fault[:300], "chain": cursor, "owner": owner},
    )


async def still_follows(db: AsyncSession, cursor: str, owner: str) -> None:
    """Record that the follower got an answer and is at work, though its share of the rate limit is used up."""
    await db.execute(
        "UPDATE cursor SET updated_at = now() "
        "WHERE chain = :chain AND owner = :owner AND owned_until > now() AND head > 0 AND fault IS NULL",
        {"chain": cursor, "owner": owner},
    )


async def leave(db: AsyncSession, cursor: str, owner: str) -> None:
    """Record that nothing is followed any more: `views` leaves the cursor out, and its next poll is like the first."""
    await db.execute(
        "UPDATE cursor SET block = 0, block_hash = '', head = 0 WHERE chain = :chain AND owner = :owner",
        {"chain": cursor, "owner": owner},
    )


async def views(db: AsyncSession) -> list[FollowView]:
    """Return how far each chain has been followed: for contracts, for members' wallets, and for their coins.

    Excludes chains that the settings leave to sweeps.
    """
    rows = await db.exec(select(Cursor).order_by(Cursor.chain))
    found: list[FollowView] = []
    for row in rows.all():
        chain, _, kind = row.chain.partition(":")
        if row.head and chain in CHAINS and settings().pause_between_looks(chain) is not None:
            behind = max(0, row.head - row.block)
            found.append(FollowView(chain, kind or CONTRACTS, row.block, behind, row.updated_at, row.fault, row.slices))
    return found
