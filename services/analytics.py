"""Figures over the servers that a person runs."""

from dataclasses import dataclass

from sqlalchemy import text

from models.database import AsyncSession
from services.actors import Actor


@dataclass(frozen=True, slots=True)
class AnalyticsView:
    """The three cards of the dashboard."""

    total_verifications: int
    active_rules: int
    connected_servers: int


async def totals(db: AsyncSession, actor: Actor) -> AnalyticsView:
    """Distinct members with a proven wallet, active rules, and servers with the bot (else all known servers)."""
    result = await db.execute(
        text(
            """
            WITH mine AS (
                SELECT s.id, s.bot_invited FROM access a JOIN server s ON s.id = a.server_id WHERE a.discord_id = :me
            )
            SELECT
              (SELECT count(DISTINCT m.discord_id) FROM member m JOIN mine ON mine.id = m.server_id
               WHERE m.left_at IS NULL AND EXISTS (
                   SELECT 1 FROM wallet w JOIN "user" u ON u.id = w.user_id WHERE u.discord_id = m.discord_id)),
              (SELECT count(*) FROM rule r JOIN mine ON mine.id = r.server_id
               WHERE r.state = 'active' AND r.deleted_at IS NULL),
              (SELECT count(*) FROM mine WHERE bot_invited),
              (SELECT count(*) FROM mine)
            """
        ),
        {"me": actor.discord_id},
    )
    members, rules, with_bot, servers = (int(value) for value in result.one())
    return AnalyticsView(members, rules, with_bot or servers)
