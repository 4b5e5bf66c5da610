"""Sightings: the block in which a wallet was last seen in a transfer, and the marks that queue its member."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from gateways.chains.catalogue import CHAINS
from models.db.session import AsyncSession
from services.core import queue
from services.triggers.chain_cursor import ANY

KEPT = timedelta(days=2)
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 120.0
"""Seconds between two marks of one wallet by one contract's logs; doubled each time while they continue."""
NOTED_EVERY = timedelta(minutes=5)
"""Minimum time between two records that the tokens of a counted collection moved."""
MOST_REMEMBERED = 100_000
"""Wallets and contracts whose last marks are remembered; the oldest are dropped first."""


class Moved(NamedTuple):
    """An address that a token of the contract left or reached, in this block.

    The contract is ANY if wallets are followed instead of contracts.
    """

    contract: str
    address: str
    block: int


@dataclass
class Marks:
    """When each wallet was last marked, or will be, by contract: strangers can write many logs that name a wallet.

    The first mark is immediate. Further ones within the pause become one mark at the end of the pause.
    """

    _last: dict[tuple[str, str], tuple[float, float]] = field(
        default_factory=dict[tuple[str, str], tuple[float, float]]
    )
    """The time of the newest mark, which may lie ahead, and the pause after it."""

    def pause(self, contract: str, address: str, clock: float) -> float:
        """Return the seconds until the mark for a log seen at `clock`; 0.0 for at once."""
        place = contract, address
        last, pause = self._last.get(place, (float("-inf"), FIRST_PAUSE))
        if clock < last:
            return last - clock
        if clock < last + pause:
            moment, pause = last + pause, min(2 * pause, LONGEST_PAUSE)
        else:
            moment, pause = clock, pause if clock < last + 2 * pause else FIRST_PAUSE
        self._last.pop(place, None)
        self._last[place] = moment, pause
        while len(self._last) > MOST_REMEMBERED:
            del self._last[next(iter(self._last))]
        return moment - clock


def record_moves(
    db: AsyncSession,
    chain: str,
    moved: Collection[Moved],
    servers: Mapping[str, Collection[int]],
    marks: Marks,
    clock: float,
) -> None:
    """Store the sightings, and queue the wallets' owners in the `servers` whose rules name the contract.

    After that, no answer from before these blocks decides about the wallets. `clock` is loop time.
    """
    newest: dict[str, int] = {}
    for _, address, block in moved:
        newest[address] = max(block, newest.get(address, 0))
    if not newest:
        return
    db.later(
        """
        INSERT INTO sighting (chain, address, block, seen_at)
        SELECT CAST(:chain AS text), s.address, s.block, now()
        FROM jsonb_to_recordset(CAST(:seen AS jsonb)) AS s (address text, block bigint)
        WHERE EXISTS (SELECT 1 FROM wallet w WHERE w.family = :family AND w.address = s.address
                      AND w.chain IN ('', CAST(:chain AS text)))
        OR EXISTS (SELECT 1 FROM delegation d WHERE d.vault = s.address AND d.chain = CAST(:chain AS text))
        ORDER BY s.address
        ON CONFLICT (chain, address) DO UPDATE
            SET block = GREATEST(sighting.block, EXCLUDED.block), seen_at = now()
        """,
        {
            "chain": chain, "family": CHAINS[chain].family,
            # JSON, because with an array the planner estimates its rows, and so plans each time.
            "seen": json.dumps([{"address": address, "block": block} for address, block in newest.items()]),
        },
    )  # fmt: skip
    _note_move(db, chain, moved)
    # Any token counts for a rule about any NFT, including a token of a contract that other rules name.
    places = {(contract, address) for contract, address, _ in moved} | {(ANY, address) for address in newest}
    _mark(db, chain, [place for place in places if servers.get(place[0])], servers, newest, marks, clock)


def _note_move(db: AsyncSession, chain: str, moved: Collection[Moved]) -> None:
    """Record that the censuses of these contracts are out of date; skip one that is being advanced just now."""
    contracts = {one.contract for one in moved} - {ANY}
    if contracts:
        db.later(
            """
            UPDATE census SET moved_at = now() WHERE id IN (
                SELECT id FROM census WHERE chain = :chain AND contract = ANY(string_to_array(:contracts, ','))
                AND (moved_at IS NULL OR moved_at < now() - :pause) FOR UPDATE SKIP LOCKED)
            """,
            {"chain": chain, "contracts": ",".join(sorted(contracts)), "pause": NOTED_EVERY},
        )


def _mark(
    db: AsyncSession,
    chain: str,
    places: Iterable[tuple[str, str]],
    servers: Mapping[str, Collection[int]],
    newest: Mapping[str, int],
    marks: Marks,
    clock: float,
) -> None:
    seen = [
        {"contract": contract, "address": address, "block": newest[address],
         "pause": marks.pause(contract, address, clock)}
        for contract, address in sorted(places)
    ]  # fmt: skip
    if not seen:
        return
    asking = {contract: list(servers[contract]) for contract in {str(one["contract"]) for one in seen}}
    # A running reconcile does not know this block, so the version is always raised. A repeated mark is delayed: it does
    # not make a queued reconcile start later, and it makes a running one repeat soon.
    db.later(
        """
        WITH seen AS MATERIALIZED (
            SELECT contract, address, pause FROM jsonb_to_recordset(CAST(:seen AS jsonb))
                AS s (contract text, address text, pause float8)),
        asking AS MATERIALIZED (
            SELECT a.key AS contract, CAST(i.id AS integer) AS server_id
            FROM jsonb_each(CAST(:asking AS jsonb)) a, jsonb_array_elements_text(a.value) AS i (id)),
        concerned AS (
            SELECT m.server_id, m.discord_id, min(p.pause) AS pause
            FROM (SELECT contract, address, pause FROM seen UNION ALL
                  SELECT s.contract, d.delegate, s.pause FROM seen s
                  JOIN delegation d ON d.chain = :chain AND d.vault = s.address) p
            JOIN wallet w ON w.family = :family AND w.address = p.address AND w.chain IN ('', :chain)
            JOIN "user" u ON u.id = w.user_id
            JOIN member m ON m.discord_id = u.discord_id AND m.left_at IS NULL
            JOIN server s ON s.id = m.server_id AND s.bot_invited
            WHERE (p.contract, m.server_id) IN (SELECT contract, server_id FROM asking)
            GROUP BY m.server_id, m.discord_id),
        marked AS (
            INSERT INTO due (kind, key, priority, due_at, version, seen, attempts, turn)
            SELECT 'member', c.server_id || ':' || c.discord_id, :priority,
                   now() + c.pause * interval '1 second', 1, 1, 0,
                   row_number() OVER (PARTITION BY c.server_id ORDER BY c.discord_id)
            FROM concerned c ORDER BY 2
            ON CONFLICT (kind, key) DO UPDATE SET
                version = due.version + 1,
                seen = due.seen + 1,
                priority = GREATEST(due.priority, EXCLUDED.priority),
                turn = LEAST(due.turn, EXCLUDED.turn),
                attempts = 0,
                due_at = CASE WHEN due.claimed_until > now() AND EXCLUDED.due_at > now()
                              THEN LEAST(EXCLUDED.due_at, now() + :soon)
                              ELSE LEAST(due.due_at, EXCLUDED.due_at) END
            RETURNING 1)
        SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify(:channel, '') END FROM marked
        """,
        {
            "seen": json.dumps(seen), "asking": json.dumps(asking), "chain": chain, "family": CHAINS[chain].family,
            "priority": queue.SEEN, "soon": timedelta(seconds=FIRST_PAUSE), "channel": queue.CHANNEL,
        },
    )  # fmt: skip


async def clear(db: AsyncSession) -> None:
    """Delete sightings older than every stored answer."""
    await db.execute("DELETE FROM sighting WHERE seen_at < now() - :kept", {"kept": KEPT})
