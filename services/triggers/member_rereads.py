"""People who are read from Discord again in each sweep, while the bot receives no events about members."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text

from models.db.session import AsyncSession
from services.guilds.gateway.shards import SHARD_OF
from services.guilds.members import MemberFacts
from services.runtime import schedules


class KnownMember(NamedTuple):
    """A person in a server: our id of the server, Discord's id of the guild, and of the person."""

    server_id: int
    guild_id: str
    discord_id: str


async def sweep_began(db: AsyncSession) -> datetime | None:
    """Return when the present sweep began; None before the first."""
    (rows,) = await db.together(("SELECT started_at FROM schedule WHERE name = :sweep", {"sweep": schedules.SWEEP}))
    return rows[0][0] if rows else None


async def to_read(
    db: AsyncSession, limit: int, without: Collection[str] = (), numbers: Collection[int] = (0,), count: int = 1
) -> list[KnownMember]:
    """Return people not read since the present sweep began, those read longest ago first.

    Only people with a wallet or a role of ours are read. A person with a wallet who left is read again until
    housekeeping deletes their row, because nothing reports a return. Skips the guilds in `without`, and those of all
    shards (of `count`) except these `numbers`.
    """
    values = {"sweep": schedules.SWEEP, "limit": limit, "without": list(without)}
    (rows,) = await db.together((_TO_READ, {**values, "numbers": sorted(numbers), "count": count}))
    return [KnownMember(*row) for row in rows]


async def never_read(
    db: AsyncSession, limit: int, without: Collection[str] = (), numbers: Collection[int] = (0,), count: int = 1
) -> list[KnownMember]:
    """Return people known from a sign-in, or from their use of the bot elsewhere, who were not read here yet."""
    values = {"limit": limit, "without": list(without), "numbers": sorted(numbers), "count": count}
    (rows,) = await db.together((_NEVER_READ, values))
    return [KnownMember(*row) for row in rows]


_NEVER_READ = f"""
    SELECT s.id, s.discord_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id
    WHERE m.seen_at = to_timestamp(0) AND s.bot_invited AND s.discord_id <> ALL(CAST(:without AS text[]))
    AND {SHARD_OF} = ANY(CAST(:numbers AS bigint[]))
    ORDER BY s.id, m.discord_id LIMIT :limit
"""


_TO_READ = f"""
    SELECT s.id, s.discord_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id
    WHERE s.bot_invited AND NOT m.bot AND s.discord_id <> ALL(CAST(:without AS text[]))
    AND {SHARD_OF} = ANY(CAST(:numbers AS bigint[]))
    AND m.seen_at < (SELECT started_at FROM schedule WHERE name = :sweep)
    AND (EXISTS (SELECT 1 FROM "user" u JOIN wallet w ON w.user_id = u.id WHERE u.discord_id = m.discord_id)
         OR EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = m.server_id AND g.discord_id = m.discord_id))
    ORDER BY m.seen_at, s.id, m.discord_id LIMIT :limit
"""


async def was_read(db: AsyncSession, one: KnownMember) -> None:
    """Record that a person was read, even if they are not in the server."""
    await db.execute(
        text("UPDATE member SET seen_at = now() WHERE server_id = :server AND discord_id = :who"),
        {"server": one.server_id, "who": one.discord_id},
    )


async def differs(db: AsyncSession, server_id: int, facts: MemberFacts) -> bool:
    """Return whether the stored member is not as Discord shows them now."""
    statement = (
        "SELECT name, avatar, roles, pending, left_at, met_at IS NOT NULL FROM member "
        "WHERE server_id = :server AND discord_id = :who"
    )
    (rows,) = await db.together((statement, {"server": server_id, "who": facts.discord_id}))
    shown = (facts.name, facts.avatar, sorted(facts.roles), facts.pending, None, True)
    return [tuple(row) for row in rows] != [shown]


async def first_met(db: AsyncSession, server_id: int, discord_id: str) -> bool:
    """Record that a member used the bot here; return whether it is the first time."""
    first = await db.execute(
        text(
            "UPDATE member SET met_at = now() WHERE server_id = :server AND discord_id = :who AND met_at IS NULL "
            "RETURNING 1"
        ),
        {"server": server_id, "who": discord_id},
    )
    return first.first() is not None


async def met_elsewhere(db: AsyncSession, discord_id: str, name: str, servers: Collection[int]) -> None:
    """Store a person as a member of the servers that Discord listed for them; their roles are read soon.

    A member who is stored already stays unchanged, unless they had left.
    """
    await db.execute(
        text(
            """
            INSERT INTO member (server_id, discord_id, name, roles, pending, bot, seen_at)
            SELECT server_id, :who, :name, '{}', false, false, to_timestamp(0)
            FROM unnest(CAST(:servers AS integer[])) server_id ORDER BY server_id
            ON CONFLICT (server_id, discord_id) DO UPDATE SET left_at = NULL, seen_at = EXCLUDED.seen_at
            WHERE member.left_at IS NOT NULL
            """
        ),
        {"who": discord_id, "name": name, "servers": sorted(servers)},
    )
