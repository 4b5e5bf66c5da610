"""Following the chains: what is watched, how far each chain is read and by whom, and whom a transfer concerns."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlmodel import select

from gateways.chain_table import CHAINS
from models import Cursor, transaction
from models.session import AsyncSession, NotSo
from services import due
from services.rule_places import PlacesByExpression

ANY = "any"
LEASE = timedelta(seconds=30)
RENEWED_EVERY = timedelta(seconds=5)
SIGHTINGS_KEPT = timedelta(days=2)
_places = PlacesByExpression()


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched on one chain: collections by their contracts, and wallets where any token of theirs counts.

    The registry of delegations is among the contracts where a rule counts what is delegated.
    """

    contracts: tuple[str, ...]
    wallets: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.contracts or self.wallets)


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
    """How far a chain is followed: `behind` counts blocks; `fault` is why the last try failed."""

    chain: str
    block: int
    behind: int
    updated_at: datetime
    fault: str | None


async def watched(db: AsyncSession) -> dict[str, Watched]:
    """Per chain what the rules of servers with the bot ask about; paused rules too, since they may be resumed."""
    rows = await db.execute(
        text(
            "SELECT DISTINCT CAST(r.expression AS text), r.delegated FROM rule r JOIN server s ON s.id = r.server_id "
            "WHERE r.deleted_at IS NULL AND s.bot_invited"
        )
    )
    contracts: dict[str, set[str]] = {}
    for expression, delegated in rows.all():
        for chain, contract in _places.of(expression):
            contracts.setdefault(chain, set()).add(contract)
            if delegated and (registry := registry_on(chain)) is not None:
                contracts[chain].add(registry)
    found: dict[str, Watched] = {}
    for chain, wanted in contracts.items():
        evm = CHAINS[chain].family == "evm"
        wallets = await _wallets_where_any_counts(db, chain) if ANY in wanted and evm else ()
        found[chain] = Watched(tuple(sorted(wanted - {ANY})), wallets)
    return found


def registry_on(chain: str) -> str | None:
    """The registry of delegations there, in lower case; None where there is none."""
    facts = CHAINS.get(chain)
    return facts.delegates.lower() if facts is not None and facts.delegates is not None else None


async def _wallets_where_any_counts(db: AsyncSession, chain: str) -> tuple[str, ...]:
    """The EVM wallets of the members of those servers that have a rule about any NFT on the chain.

    With the vaults that delegated to them, where such a rule counts those.
    """
    leaf = f'$.** ? (@.type == "any_nft" && @.chain == "{chain}")'
    result = await db.execute(
        text(
            """
            WITH counted AS (
                SELECT w.address, bool_or(r.delegated) AS delegated FROM wallet w
                JOIN "user" u ON u.id = w.user_id
                JOIN member m ON m.discord_id = u.discord_id AND m.left_at IS NULL
                JOIN server s ON s.id = m.server_id AND s.bot_invited
                JOIN rule r ON r.server_id = s.id AND r.deleted_at IS NULL
                WHERE w.family = 'evm' AND jsonb_path_exists(r.expression, CAST(:leaf AS jsonpath))
                GROUP BY w.address)
            SELECT address FROM counted
            UNION SELECT d.vault FROM delegation d JOIN counted c ON c.address = d.delegate AND c.delegated
            WHERE d.chain = :chain
            ORDER BY 1
            """
        ),
        {"leaf": leaf, "chain": chain},
    )
    return tuple(str(address) for (address,) in result.all())


async def claim(db: AsyncSession, chains: Sequence[str], owner: str) -> dict[str, Position]:
    """Take or renew the lease on chains; those that somebody else has are not in the answer."""
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
        {"chains": list(chains), "owner": owner, "lease": LEASE, "renewed": LEASE - RENEWED_EVERY},
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
    await db.execute(
        text("UPDATE cursor SET owner = NULL, owned_until = NULL WHERE owner = ANY(CAST(:dead AS text[]))"),
        {"dead": dead},
    )


@asynccontextmanager
async def advancing(chain: str, owner: str, position: Position, head: int) -> AsyncGenerator[AsyncSession]:
    """A transaction that begins by noting how far the chain is read. Raises Overtaken, and nothing of it is written,
    when the lease is not ours any more.
    """
    values = {
        "block": position.block, "hash": position.block_hash, "head": head, "lease": LEASE, "chain": chain,
        "owner": owner,
    }  # fmt: skip
    # Without the lease the statement itself fails, and so does all that is sent along with it: whoever is to be looked
    # at because of a transfer does not wait until an answer about the lease has come.
    statement = """
        WITH advanced AS (
            UPDATE cursor SET block = :block, block_hash = :hash, head = :head, fault = NULL, updated_at = now(),
                   owned_until = now() + :lease
            WHERE chain = :chain AND owner = :owner AND owned_until > now() RETURNING 1)
        SELECT 1 / count(*) FROM advanced
    """
    try:
        async with transaction() as db:
            db.later(statement, values)
            yield db
    except NotSo as fault:
        raise Overtaken(f"{owner} does not follow {chain} any more") from fault


async def failed(db: AsyncSession, chain: str, owner: str, fault: str) -> None:
    """Note why the chain could not be read on."""
    await db.execute(
        text("UPDATE cursor SET fault = :fault WHERE chain = :chain AND owner = :owner"),
        {"fault": fault[:300], "chain": chain, "owner": owner},
    )


def concern(db: AsyncSession, chain: str, blocks: Iterable[tuple[str, int]]) -> None:
    """Whose wallets these are (`(address, block)` of what was seen), they are due.

    The blocks are kept: no answer from before them may decide about these wallets.
    """
    newest: dict[str, int] = {}
    for address, block in blocks:
        newest[address] = max(block, newest.get(address, 0))
    if not newest:
        return
    db.later(
        """
        INSERT INTO sighting (chain, address, block, seen_at)
        SELECT CAST(:chain AS text), s.address, s.block, now()
        FROM jsonb_to_recordset(CAST(:seen AS jsonb)) AS s (address text, block bigint)
        WHERE EXISTS (SELECT 1 FROM wallet w WHERE w.family = :family AND w.address = s.address)
        OR EXISTS (SELECT 1 FROM delegation d WHERE d.vault = s.address AND d.chain = CAST(:chain AS text))
        ORDER BY s.address
        ON CONFLICT (chain, address) DO UPDATE
            SET block = GREATEST(sighting.block, EXCLUDED.block), seen_at = now()
        """,
        {
            "chain": chain, "family": CHAINS[chain].family,
            # Of arrays the planner thinks it knows how many rows they are, and so plans anew each time; of this, never.
            "seen": json.dumps([{"address": address, "block": block} for address, block in newest.items()]),
        },
    )  # fmt: skip
    due.mark_holders(db, chain, list(newest), due.SEEN)


async def views(db: AsyncSession) -> list[FollowView]:
    """How far each chain is followed."""
    rows = await db.exec(select(Cursor).order_by(Cursor.chain))
    return [
        FollowView(row.chain, row.block, max(0, row.head - row.block), row.updated_at, row.fault)
        for row in rows.all()
        if row.head
    ]


async def clear_sightings(db: AsyncSession) -> None:
    """Forget sightings that every answer is newer than."""
    await db.execute(text("DELETE FROM sighting WHERE seen_at < now() - :kept"), {"kept": SIGHTINGS_KEPT})
