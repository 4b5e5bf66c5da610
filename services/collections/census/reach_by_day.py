"""A rule's numbers day by day, counted again without a request, for a chart of how many of its holders have arrived.

A rule is counted daily after somebody has requested a count of it or of its collection, and again on the same day when
tokens of its collection have moved. Each count continues from the block of the previous one.
"""

import json
from datetime import date, timedelta
from typing import NamedTuple

from models import Reach
from models.db.session import AsyncSession
from services.collections.census import reach, reach_numbers
from services.collections.census.count_by_transfers import NO_ROOM
from services.rules.expression import parse_stored

SOONEST = timedelta(hours=1)
"""The minimum age of a rule's numbers before it is counted again on the same day."""
SLACK = timedelta(minutes=5)
"""How long before the end of a count a move may be noted that it does not include: moves are noted no more often."""
KEPT_DAYS = 400
SHOWN_DAYS = 30


class ReachOnDay(NamedTuple):
    """A rule's numbers on one day (in UTC)."""

    day: date
    holders: int
    verified: int


async def begin_due(db: AsyncSession) -> None:
    """Begin the count of one rule whose numbers are out of date, in a server without a running daily count.

    Numbers are out of date on the next day (in UTC), and sooner if the followers saw tokens of the collection move. A
    server without room for a count waits, or its rules would come again at once, before those of other servers.
    """
    found = await db.execute(
        """
        SELECT r.id, r.server_id, r.expression FROM rule r
        LEFT JOIN reach_day d ON d.rule_id = r.id AND d.day = CAST(now() AT TIME ZONE 'UTC' AS date)
        LEFT JOIN census c ON c.chain = r.blockchain AND c.contract = r.contract_address
        WHERE r.deleted_at IS NULL AND r.state IN ('active', 'shadow')
        AND (d.rule_id IS NULL OR (d.holders IS NOT NULL AND d.at < c.moved_at + :slack AND d.at < now() - :pause))
        AND (c.id IS NOT NULL
            OR EXISTS (SELECT 1 FROM reach_day e WHERE e.rule_id = r.id AND e.holders IS NOT NULL))
        AND NOT EXISTS (SELECT 1 FROM reach o WHERE o.daily AND o.server_id = r.server_id AND (o.state = 'counting'
            OR (o.state = 'failed' AND o.reason = :no_room AND o.ended_at > now() - :pause)))
        ORDER BY d.at NULLS FIRST, r.id LIMIT 1
        """,
        {"pause": SOONEST, "slack": SLACK, "no_room": NO_ROOM},
    )
    place = found.one_or_none()
    if place is None:
        return
    rule_id, server_id, document = place
    tree = parse_stored(document)
    if (reason := reach_numbers.refusal(tree)) is not None:
        refused = Reach(server_id=server_id, digest=reach.digest_of(tree), reason=reason)
        await _write(db, [int(rule_id)], refused)
        return
    await reach.start(db, server_id, tree, daily=True)


async def note(db: AsyncSession, row: Reach) -> None:
    """Store newly counted numbers as today's numbers of each rule with the same conditions."""
    found = await db.execute(
        "SELECT id, expression FROM rule WHERE server_id = :server AND deleted_at IS NULL ORDER BY id",
        {"server": row.server_id},
    )
    same = [int(rule_id) for rule_id, document in found.all() if reach.digest_of(parse_stored(document)) == row.digest]
    await _write(db, same, row)


async def note_failure(db: AsyncSession, server_id: int, digest: str, reason: str) -> None:
    """Store why a server's rules with these conditions have no numbers today."""
    await note(db, Reach(server_id=server_id, digest=digest, reason=reason))


async def _write(db: AsyncSession, rule_ids: list[int], row: Reach) -> None:
    """Write today's numbers; a failure does not replace numbers of the same conditions."""
    for rule_id in rule_ids:
        await db.execute(
            """
            INSERT INTO reach_day AS d (rule_id, day, holders, verified, chains, reason, digest, at)
            VALUES (:rule, CAST(now() AT TIME ZONE 'UTC' AS date), :holders, :verified, CAST(:chains AS jsonb),
                :reason, :digest, now())
            ON CONFLICT (rule_id, day) DO UPDATE SET holders = EXCLUDED.holders, verified = EXCLUDED.verified,
                chains = EXCLUDED.chains, reason = EXCLUDED.reason, digest = EXCLUDED.digest,
                at = EXCLUDED.at
            WHERE EXCLUDED.holders IS NOT NULL OR d.holders IS NULL OR d.digest <> EXCLUDED.digest
            """,
            {
                "rule": rule_id,
                "holders": row.holders,
                "verified": row.verified,
                "reason": row.reason,
                "digest": row.digest,
                "chains": json.dumps(row.chains),
            },
        )


async def of_rule(db: AsyncSession, server_id: int, rule_id: int) -> list[ReachOnDay]:
    """Return the newest days of a server's rule that have numbers, at most SHOWN_DAYS, the oldest first.

    Days on which the rule had other conditions are left out.
    """
    found = await db.execute(
        """
        SELECT d.day, d.holders, d.verified, d.digest, r.expression FROM reach_day d JOIN rule r ON r.id = d.rule_id
        WHERE d.rule_id = :rule AND r.server_id = :server AND d.holders IS NOT NULL
        ORDER BY d.day DESC LIMIT :most
        """,
        {"rule": rule_id, "server": server_id, "most": SHOWN_DAYS},
    )
    rows = found.all()
    present = reach.digest_of(parse_stored(rows[0].expression)) if rows else ""
    return [ReachOnDay(one.day, int(one.holders), int(one.verified)) for one in reversed(rows) if one.digest == present]


async def newest(db: AsyncSession, server_id: int) -> dict[int, ReachOnDay]:
    """Return the newest numbers of each rule of a server; a rule whose present conditions were not counted has none."""
    found = await db.execute(
        """
        SELECT DISTINCT ON (r.id) r.id, d.day, d.holders, d.verified, d.digest, r.expression
        FROM rule r JOIN reach_day d ON d.rule_id = r.id AND d.holders IS NOT NULL
        WHERE r.server_id = :server AND r.deleted_at IS NULL ORDER BY r.id, d.day DESC
        """,
        {"server": server_id},
    )
    return {
        int(one.id): ReachOnDay(one.day, int(one.holders), int(one.verified))
        for one in found.all()
        if one.digest == reach.digest_of(parse_stored(one.expression))
    }


async def forget(db: AsyncSession) -> None:
    """Delete the days that are no longer kept."""
    await db.execute("DELETE FROM reach_day WHERE day < CURRENT_DATE - CAST(:days AS integer)", {"days": KEPT_DAYS})
