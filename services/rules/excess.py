"""Rules from before there were limits, far beyond them: all but the oldest are paused, so that nobody else pays."""

import logging

from sqlalchemy import text

from models.db.session import AsyncSession
from services.rules import pausing
from services.rules.expression import MAX_LEAVES
from settings import settings

log = logging.getLogger("holdfast.services.rule_excess")

FAR_BEYOND = 5
"""A server with more than so many times the rules or conditions that a server may have keeps the oldest within the
limits; one with less keeps what it has."""


def reason() -> str:
    """Return why such a rule is paused, for the admins."""
    limits = settings()
    return (
        f"This server has far more rules than a server can have ({limits.rules_per_server} rules with "
        f"{limits.conditions_per_server} conditions). The oldest ones stay active."
    )


async def pause(db: AsyncSession) -> int:
    """Pause what is beyond the limits in servers that are far beyond them, and count it; what it gave stays."""
    limits = settings()
    found = await db.execute(
        text(
            """
            WITH crowded AS (
                SELECT server_id FROM rule WHERE deleted_at IS NULL AND state = 'active' GROUP BY server_id
                HAVING count(*) > LEAST(:far * :rules, :far * :conditions / :leaves)),
            mine AS (
                SELECT r.id, r.server_id, (
                    SELECT count(*) FROM jsonb_path_query(r.expression, 'strict $.** ? (exists(@.chain))')) AS leaves
                FROM rule r JOIN crowded c ON c.server_id = r.server_id
                WHERE r.deleted_at IS NULL AND r.state = 'active'),
            counted AS (
                SELECT id, server_id, row_number() OVER oldest AS rules, sum(leaves) OVER oldest AS conditions,
                       count(*) OVER everything AS all_rules, sum(leaves) OVER everything AS all_conditions
                FROM mine WINDOW oldest AS (PARTITION BY server_id ORDER BY id),
                                 everything AS (PARTITION BY server_id))
            SELECT server_id, array_agg(id ORDER BY id) FROM counted
            WHERE (all_rules > :far * :rules OR all_conditions > :far * :conditions)
            AND (rules > :rules OR conditions > :conditions) GROUP BY server_id ORDER BY server_id
            """
        ),
        {
            "rules": limits.rules_per_server, "conditions": limits.conditions_per_server, "far": FAR_BEYOND,
            "leaves": MAX_LEAVES,
        },
    )  # fmt: skip
    paused = 0
    for server_id, rules in found.all():
        count = await pausing.pause_rules(db, int(server_id), rules, reason(), pausing.TOO_MANY)
        log.warning("paused rules beyond the limits server=%s rules=%s", server_id, count)
        paused += count
    return paused
