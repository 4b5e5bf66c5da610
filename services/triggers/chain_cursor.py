"""Following the chains: how far each is read, and by which process."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlmodel import select

from gateways.chains.catalogue import CHAINS
from gateways.evm.transfer_logs import CONTRACTS as CONTRACTS
from gateways.evm.transfer_logs import WALLETS as WALLETS
from models import Cursor, transaction
from models.db.session import AsyncSession, NotSo
from settings import settings

ANY = "any"
LEASE = timedelta(seconds=30)
"""How much longer than the longest pause between two looks a follower keeps a chain without a look."""
RENEWED_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Position:
    """Up to which block a chain has been read for good: 0 before it was read at all. Without its hash the block is not
    compared with the chain's.
    """

    block: int
    block_hash: str


class Overtaken(Exception):
    """Another process follows the chain by now."""


@dataclass(frozen=True, slots=True)
class FollowView:
    """How far a chain is followed: `behind` counts blocks; `fault` is why the last try failed.

    `slices` is in how many turns the wallets are read, where they are too many for one look.
    """

    chain: str
    kind: str
    block: int
    behind: int
    updated_at: datetime
    fault: str | None
    slices: int = 1


def cursor_of(chain: str, kind: str = CONTRACTS) -> str:
    """The key of the cursor by which a chain is followed: wallets have one of their own, so contracts never wait."""
    return chain if kind == CONTRACTS else f"{chain}:{kind}"


def lease() -> timedelta:
    """How long a follower keeps its chains without a look."""
    return LEASE + timedelta(seconds=max(settings().follow_pace.values()))


def registry_on(chain: str) -> str | None:
    """The registry of delegations there, in lower case; None where there is none."""
    facts = CHAINS.get(chain)
    return facts.delegates.lower() if facts is not None and facts.delegates is not None else None


async def claim(db: AsyncSession, chains: Sequence[str], owner: str) -> dict[str, Position]:
    """Take or renew the lease on cursors; those that somebody else has are not in the answer."""
    await db.execute(
        text(
            """
            INSERT INTO cursor (chain, block, block_hash, updated_at)
            SELECT chain, 0, '', now() FROM unnest(CAST(:chains AS text[])) AS c (chain)
            WHERE NOT EXISTS (SELECT 1 FROM cursor k WHERE k.chain = c.chain) ORDER BY chain
            ON CONFLICT DO NOTHING
            """
        ),
        {"chains": list(chains)},
    )
    # A lease that has long to run is not written again, so that a quiet second writes nothing. Always in the same
    # order, so that two claims that overlap wait for each other instead of deadlocking.
    await db.execute(
        text(
            """
            UPDATE cursor SET owner = :owner, owned_until = now() + :lease
            WHERE chain IN (
                SELECT chain FROM cursor WHERE chain = ANY(CAST(:chains AS text[]))
                AND (owner IS NULL OR owned_until < now() OR (owner = :owner AND owned_until < now() + :renewed))
                ORDER BY chain FOR UPDATE)
            """
        ),
        {"chains": list(chains), "owner": owner, "lease": lease(), "renewed": lease() - RENEWED_EVERY},
    )
    result = await db.execute(
        text(
            "SELECT chain, block, block_hash FROM cursor "
            "WHERE chain = ANY(CAST(:chains AS text[])) AND owner = :owner AND owned_until > now()"
        ),
        {"chains": list(chains), "owner": owner},
    )
    return {str(chain): Position(int(block), str(name)) for chain, block, name in result.all()}


async def let_go_of(db: AsyncSession, is_dead: Callable[[str], bool]) -> None:
    """Free at once the chains of followers that are known to be dead."""
    result = await db.execute(text("SELECT DISTINCT owner FROM cursor WHERE owner IS NOT NULL"))
    dead = [str(owner) for (owner,) in result.all() if is_dead(str(owner))]
    if dead:
        await db.execute(
            text(
                "UPDATE cursor SET owner = NULL, owned_until = NULL WHERE chain IN ("
                "SELECT chain FROM cursor WHERE owner = ANY(CAST(:dead AS text[])) ORDER BY chain FOR UPDATE)"
            ),
            {"dead": dead},
        )


@asynccontextmanager
async def advancing(
    cursor: str, owner: str, position: Position, head: int, slices: int = 1
) -> AsyncGenerator[AsyncSession]:
    """A transaction that begins by noting how far the chain is read. Raises Overtaken, and nothing of it is written,
    when the lease is not ours any more.
    """
    values = {
        "block": position.block, "hash": position.block_hash, "head": head, "lease": lease(), "chain": cursor,
        "owner": owner, "slices": slices,
    }  # fmt: skip
    # Without the lease the statement itself fails, and so does all that is sent along with it: whoever is to be looked
    # at because of a transfer does not wait until an answer about the lease has come.
    statement = """
        WITH advanced AS (
            UPDATE cursor SET block = :block, block_hash = :hash, head = :head, fault = NULL, updated_at = now(),
                   slices = :slices, owned_until = now() + :lease
            WHERE chain = :chain AND owner = :owner AND owned_until > now() RETURNING 1)
        SELECT 1 / count(*) FROM advanced
    """
    try:
        async with transaction() as db:
            db.later(statement, values)
            yield db
    except NotSo as fault:
        raise Overtaken(f"{owner} does not follow {cursor} any more") from fault


async def failed(db: AsyncSession, cursor: str, owner: str, fault: str) -> None:
    """Note why the chain could not be read on."""
    await db.execute(
        text("UPDATE cursor SET fault = :fault WHERE chain = :chain AND owner = :owner"),
        {"fault": fault[:300], "chain": cursor, "owner": owner},
    )


async def views(db: AsyncSession) -> list[FollowView]:
    """How far each chain is followed, once for its contracts and once for members' wallets.

    Chains that the settings leave to the rounds are not among them.
    """
    pace = settings().follow_pace
    rows = await db.exec(select(Cursor).order_by(Cursor.chain))
    found: list[FollowView] = []
    for row in rows.all():
        chain, _, kind = row.chain.partition(":")
        if row.head and pace.get(chain, 1):
            behind = max(0, row.head - row.block)
            found.append(FollowView(chain, kind or CONTRACTS, row.block, behind, row.updated_at, row.fault, row.slices))
    return found
