"""People who are read from Discord again in each sweep: all whom we know, or, if Discord reports members, who left."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from models.db.session import AsyncSession
from services.guilds.gateway.shards import SHARD_OF
from services.guilds.members import MemberFacts
from services.runtime import schedules

FEW = 10
"""People who left a server and are read one by one in a sweep, however short its list of members is."""
PER_REQUEST, PER_PERSON = 1_000, 2
"""Members in one answer of the list, and requests that show that one person is not in the server."""


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
    """Return people known from a sign-in or from the bot elsewhere who were not read here yet, and those who left.

    Somebody who left is among them after `read_who_left` and until they are read. Members come first, then those who
    left last. `without`, `numbers` and `count` are as in `to_read`.
    """
    values = {"limit": limit, "without": list(without), "numbers": sorted(numbers), "count": count}
    (rows,) = await db.together((_NEVER_READ, values))
    return [KnownMember(*row) for row in rows]


_NEVER_READ = f"""
    SELECT s.id, s.discord_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id
    WHERE m.seen_at = to_timestamp(0) AND s.bot_invited AND s.discord_id <> ALL(CAST(:without AS text[]))
    AND {SHARD_OF} = ANY(CAST(:numbers AS bigint[]))
    ORDER BY m.left_at DESC NULLS FIRST, s.id, m.discord_id LIMIT :limit
"""


async def read_who_left(db: AsyncSession) -> None:
    """Have the bot read people with a wallet who left, because Discord may have lost the event of their return.

    If they are many in a server, its list of members is read instead, because that needs fewer requests. The pauses
    between two readings of a person grow with the time since they left, until housekeeping deletes their row.
    """
    values = {"few": FEW, "page": PER_REQUEST, "each": PER_PERSON}
    await db.execute(_READ_WHO_LEFT, values)


# What another transaction has locked is skipped: it brings news, and waiting for it could deadlock.
_READ_WHO_LEFT = """
    WITH gone AS MATERIALIZED (
        SELECT m.server_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id
        WHERE m.left_at IS NOT NULL AND NOT m.bot AND s.bot_invited
        AND (now() - m.seen_at) * 4 >= now() - m.left_at
        AND EXISTS (SELECT 1 FROM "user" u JOIN wallet w ON w.user_id = u.id WHERE u.discord_id = m.discord_id)
    ), place AS (
        SELECT s.id, count(*) * :each > GREATEST(:few * :each, s.member_count / :page) AS listed
        FROM gone g JOIN server s ON s.id = g.server_id GROUP BY s.id
    ), lists AS (
        UPDATE server SET list_wanted = true WHERE id IN (
            SELECT s.id FROM server s JOIN place p ON p.id = s.id AND p.listed
            WHERE NOT s.list_wanted FOR NO KEY UPDATE OF s SKIP LOCKED)
    )
    UPDATE member SET seen_at = to_timestamp(0) WHERE (server_id, discord_id) IN (
        SELECT m.server_id, m.discord_id FROM member m
        JOIN gone g ON g.server_id = m.server_id AND g.discord_id = m.discord_id
        JOIN place p ON p.id = m.server_id AND NOT p.listed
        WHERE m.left_at IS NOT NULL AND m.seen_at > to_timestamp(0) FOR NO KEY UPDATE OF m SKIP LOCKED)
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
        "UPDATE member SET seen_at = now() WHERE server_id = :server AND discord_id = :who",
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
        "UPDATE member SET met_at = now() WHERE server_id = :server AND discord_id = :who AND met_at IS NULL "
        "RETURNING 1",
        {"server": server_id, "who": discord_id},
    )
    return first.first() is not None


async def met_elsewhere(db: AsyncSession, discord_id: str, name: str, servers: Collection[int]) -> None:
    """Store a person as a member of the servers that Discord listed for them; their roles are read soon.

    A member who is stored already stays unchanged, unless they had left.
    """
    await db.execute(
        """
        INSERT INTO member (server_id, discord_id, name, roles, pending, bot, seen_at)
        SELECT server_id, :who, :name, '{}', false, false, to_timestamp(0)
        FROM unnest(CAST(:servers AS integer[])) server_id ORDER BY server_id
        ON CONFLICT (server_id, discord_id) DO UPDATE SET left_at = NULL, seen_at = EXCLUDED.seen_at
        WHERE member.left_at IS NOT NULL
        """,
        {"who": discord_id, "name": name, "servers": sorted(servers)},
    )
