"""The people of a server whom we know: nobody else is stored, whatever Discord reports."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from models.db.session import AsyncSession
from services.guilds.gateway.shards import SHARD_OF

DELETED_AT_ONCE = 5_000
"""Maximum rows of people we do not know that one transaction deletes."""
MOST_OTHERS = 100
"""Maximum number of servers for which a new person is looked for in all the others. If there are more, people are found
when they use the bot."""
WATCHED_DAYS = 1
"""Days for which a role is watched after a preview asked about it."""


@dataclass(frozen=True, slots=True)
class ReportedMember:
    """A person in a guild as an event reports them; a person who left has no roles."""

    guild_id: str
    discord_id: str
    roles: Collection[str] = ()


async def strangers(db: AsyncSession, reported: Sequence[ReportedMember]) -> frozenset[int]:
    """Return the positions in the sequence of the people whom we have no reason to store.

    One statement answers for all of them. A guild without a row has no strangers: its events wait for the row.
    """
    rows = [
        {"place": place, "guild": one.guild_id, "who": one.discord_id, "roles": list(one.roles)}
        for place, one in enumerate(reported)
    ]
    (found,) = await db.together((_STRANGERS, {"rows": json.dumps(rows)}))
    return frozenset(int(place) for (place,) in found)


async def among(
    db: AsyncSession, server_id: int, people: Iterable[tuple[str, Collection[str]]], admin_roles: Collection[str] = ()
) -> set[str]:
    """Return the ids of those people (id and roles) whom we know or who have one of the `admin_roles`."""
    rows = [{"who": who, "roles": list(roles)} for who, roles in people]
    values = {"server": server_id, "rows": json.dumps(rows), "admins": list(admin_roles)}
    (found,) = await db.together((_AMONG, values))
    return {str(who) for (who,) in found}


async def list_begins(db: AsyncSession, guild_id: str) -> None:
    """Record that a guild's list is being read, so that another process reads it if this one ends too early."""
    await db.execute(
        "UPDATE server SET list_wanted = true WHERE discord_id = :guild AND NOT list_wanted", {"guild": guild_id}
    )


async def list_ended(db: AsyncSession, server_id: int, began: object) -> None:
    """Record that all members who had a watched role when the list began are stored."""
    values = {"server": server_id, "began": began}
    await db.execute("UPDATE server SET list_wanted = false WHERE id = :server AND list_wanted", values)
    await db.execute(
        "UPDATE role_watch SET listed_at = now() WHERE server_id = :server AND listed_at IS NULL AND at <= :began",
        values,
    )


async def want_list(db: AsyncSession, server_id: int) -> None:
    """Have the bot read the list of a server's members, because events about them may have been lost."""
    await db.execute(
        "UPDATE server SET list_wanted = true WHERE id = :server AND NOT list_wanted", {"server": server_id}
    )


async def to_list(db: AsyncSession, numbers: Collection[int] = (0,), count: int = 1) -> list[str]:
    """Return the guilds of these shards (of `count`) whose member list has to be read, previews' first."""
    (found,) = await db.together((_TO_LIST, {"numbers": sorted(numbers), "count": count}))
    return [str(guild_id) for (guild_id,) in found]


async def unlisted(db: AsyncSession, server_id: int, roles: Collection[str]) -> list[str]:
    """Return the roles among these that may have holders who are not stored."""
    values = {"server": server_id, "roles": sorted(roles)}
    (found,) = await db.together((_UNLISTED, values))
    return [str(role_id) for (role_id,) in found]


async def watch(db: AsyncSession, server_id: int, roles: Collection[str]) -> None:
    """Record that everybody who has one of these roles must be stored."""
    await db.execute(
        "INSERT INTO role_watch (server_id, role_id) SELECT :server, r FROM unnest(CAST(:roles AS text[])) r "
        "ORDER BY r ON CONFLICT (server_id, role_id) DO UPDATE SET at = now()",
        {"server": server_id, "roles": sorted(roles)},
    )


async def look_elsewhere(db: AsyncSession, server_id: int | None, discord_id: str, name: str) -> None:
    """Record that a new person must be looked for in all servers except this one, if there are few servers."""
    await db.execute(_LOOK_ELSEWHERE, {"server": server_id, "who": discord_id, "name": name, "most": MOST_OTHERS})


async def forget_strangers(db: AsyncSession, after: int) -> tuple[int, int]:
    """Delete up to DELETED_AT_ONCE stored people whom we do not know, in the server that follows the id `after`.

    Return that server's id, 0 if there is none, and how many were deleted.
    """
    (found,) = await db.together(("SELECT id FROM server WHERE id > :after ORDER BY id LIMIT 1", {"after": after}))
    if not found:
        return 0, 0
    server_id = int(found[0][0])
    gone = await db.execute(_FORGET, {"server": server_id, "most": DELETED_AT_ONCE})
    return server_id, len(gone.all())


async def forget_watches(db: AsyncSession) -> None:
    """Stop watching the roles that no rule, no move and no recent preview needs."""
    await db.execute(_FORGET_WATCHES, {"days": WATCHED_DAYS})


# A person as `p.who` with `p.roles` in the server `s`.
_REASONS = """
    EXISTS (SELECT 1 FROM "user" u WHERE u.discord_id = p.who)
    OR EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = s.id AND g.discord_id = p.who)
    OR EXISTS (SELECT 1 FROM role_watch w WHERE w.server_id = s.id AND w.role_id = ANY(p.roles))
    OR EXISTS (SELECT 1 FROM access a WHERE a.server_id = s.id AND a.discord_id = p.who)
    OR p.who = ANY(s.protected_members)
"""
# A stored row is kept up to date until it is deleted.
_STORED = "EXISTS (SELECT 1 FROM member m WHERE m.server_id = s.id AND m.discord_id = p.who)"
_STRANGERS = f"""
    SELECT p.place
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS p (place integer, guild text, who text, roles text[])
    JOIN server s ON s.discord_id = p.guild WHERE NOT ({_STORED} OR {_REASONS})
"""
_AMONG = f"""
    SELECT p.who FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS p (who text, roles text[])
    JOIN server s ON s.id = :server WHERE {_STORED} OR {_REASONS} OR p.roles && CAST(:admins AS text[])
"""
_TO_LIST = f"""
    SELECT s.discord_id FROM server s WHERE s.bot_invited AND s.id IN (
        SELECT id FROM server WHERE list_wanted UNION SELECT server_id FROM role_watch WHERE listed_at IS NULL)
    AND {SHARD_OF} = ANY(CAST(:numbers AS bigint[]))
    ORDER BY s.id NOT IN (SELECT server_id FROM role_watch WHERE listed_at IS NULL), s.id
"""
_UNLISTED = """
    SELECT r FROM unnest(CAST(:roles AS text[])) r WHERE NOT EXISTS (
        SELECT 1 FROM role_watch w WHERE w.server_id = :server AND w.role_id = r AND w.listed_at IS NOT NULL)
"""
# These people count as gone until they are found: `member_rereads.never_read` lists those who were never read.
_LOOK_ELSEWHERE = """
    INSERT INTO member (server_id, discord_id, name, roles, pending, bot, left_at, seen_at)
    SELECT id, :who, :name, '{}', false, false, now(), to_timestamp(0) FROM server
    WHERE bot_invited AND id IS DISTINCT FROM CAST(:server AS integer)
    AND (SELECT count(*) FROM server WHERE bot_invited) <= :most ORDER BY id
    ON CONFLICT DO NOTHING
"""
# People in the log are kept: they have met us, and changes to them can be undone. Rows that another transaction has
# locked are skipped: it brings news of them, and waiting for several of its rows could deadlock.
_FORGET = f"""
    DELETE FROM member WHERE server_id = :server AND discord_id = ANY(ARRAY(
        SELECT m.discord_id FROM member m JOIN server s ON s.id = m.server_id,
        LATERAL (SELECT m.discord_id AS who, m.roles) p
        WHERE m.server_id = :server AND m.met_at IS NULL AND NOT ({_REASONS}) AND NOT EXISTS (
            SELECT 1 FROM event e WHERE e.server_id = m.server_id AND e.subject = m.discord_id)
        LIMIT :most FOR UPDATE OF m SKIP LOCKED))
    RETURNING 1
"""
_FORGET_WATCHES = """
    DELETE FROM role_watch w WHERE w.at < now() - make_interval(days => :days)
    AND NOT EXISTS (SELECT 1 FROM rule r WHERE r.server_id = w.server_id AND r.role_id = w.role_id
                    AND r.deleted_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM server_move v WHERE v.server_id = w.server_id AND v.state IN ('open', 'approved')
                    AND w.role_id = ANY(v.roles))
"""
