"""Quarantine: stop following an address with more logs than nodes return; sweeps still find its members.

Otherwise one contract, or one wallet that strangers name in their logs, could keep a chain from being followed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateways.evm.transfer_logs import CONTRACTS
from models.db.session import AsyncSession
from services.core import queue

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = timedelta(minutes=10), timedelta(days=1), 6
"""How long an address's first quarantine and the longest one last, and the factor by which each is longer."""
REMEMBERED = timedelta(days=7)
"""How long after its end a quarantine makes the next one longer."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A contract of a server's rules that is not followed right now."""

    server_id: int
    chain: str
    contract: str
    since: datetime
    until: datetime


async def begin(db: AsyncSession, chain: str, kind: str, excessive: Mapping[str, str]) -> None:
    """Stop following these addresses for a while, each with the reason. Call `mark` before it."""
    await db.execute(
        """
        INSERT INTO quarantine (chain, kind, address, reason, times, since, until)
        SELECT :chain, :kind, a, r, 1, now(), now() + :first
        FROM unnest(CAST(:addresses AS text[]), CAST(:reasons AS text[])) AS q (a, r) ORDER BY a
        ON CONFLICT (chain, kind, address) DO UPDATE SET
            reason = EXCLUDED.reason, since = now(), ended_at = NULL, times = quarantine.times + 1,
            until = now() + LEAST(:longest, :first * power(:growth, LEAST(quarantine.times, 9)))
        """,
        {
            "chain": chain, "kind": kind, "addresses": list(excessive), "first": FIRST_PAUSE,
            "reasons": [reason[:300] for reason in excessive.values()], "longest": LONGEST_PAUSE, "growth": GROWTH,
        },
    )  # fmt: skip


async def end(db: AsyncSession, chain: str, kind: str, addresses: Sequence[str]) -> None:
    """Follow these addresses again. Call `mark` before it."""
    await db.execute(
        "UPDATE quarantine SET ended_at = now() "
        "WHERE chain = :chain AND kind = :kind AND address = ANY(CAST(:addresses AS text[]))",
        {"chain": chain, "kind": kind, "addresses": list(addresses)},
    )


async def mark(
    db: AsyncSession, chain: str, kind: str, addresses: Sequence[str], servers: Mapping[str, Collection[int]]
) -> None:
    """Queue the members whom a transfer can concern that is not followed, with the sweep's priority.

    `servers` has the servers whose rules name a contract, by contract.
    """
    if kind == CONTRACTS:
        concerned = sorted({server for address in addresses for server in servers.get(address, ())})
        await queue.mark_servers(db, concerned, queue.SWEPT)
    else:
        queue.mark_holders(db, chain, addresses, queue.SWEPT)


async def of_servers(db: AsyncSession, servers: Sequence[int]) -> list[Quarantined]:
    """Return the contracts of these servers' rules that are not followed right now."""
    result = await db.execute(
        """
        SELECT DISTINCT r.server_id, q.chain, q.address, q.since, q.until FROM quarantine q
        JOIN rule r ON r.deleted_at IS NULL AND r.server_id = ANY(CAST(:servers AS integer[]))
             AND jsonb_path_exists(r.expression, '$.** ? (@.contract == $contract && @.chain == $chain)',
                                   jsonb_build_object('contract', q.address, 'chain', q.chain))
        WHERE q.kind = :kind AND q.ended_at IS NULL ORDER BY 1, 2, 3
        """,
        {"servers": list(servers), "kind": CONTRACTS},
    )
    return [Quarantined(*row) for row in result.all()]


async def clear(db: AsyncSession) -> None:
    """Delete quarantines that ended long ago, and those of addresses that no rule has named since."""
    await db.execute("DELETE FROM quarantine WHERE COALESCE(ended_at, until) < now() - :kept", {"kept": REMEMBERED})
