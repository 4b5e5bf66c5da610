"""The members of servers and their roles, kept from Discord's events and lists: who joined, changed or left."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, tuple_, update
from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.types import GuildMember as LiveMember
from gateways.discord.types import read_member
from gateways.discord.types import shown_name as shown_name
from gateways.transport.errors import ProviderError
from locales import _
from models import Grant, Member, Rule, User, now
from models.db.session import AsyncSession
from services.accounts import users
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import MemberNotFound, ServerNotFound, unavailable
from services.guilds import rivals
from services.guilds.gateway.known_guilds import server_of

LEFT_AT_ONCE = 1_000
"""Members recorded as gone in one transaction."""


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member as Discord shows them now."""

    discord_id: str
    name: str
    roles: frozenset[str]
    pending: bool = False
    avatar: str | None = None
    bot: bool = False


def facts_from(live: LiveMember) -> MemberFacts:
    """Return the facts of a member read over REST."""
    return MemberFacts(live.user_id, live.display_name, live.roles, live.pending, live.avatar, live.bot)


class UnreadableMember(ValueError):
    """A member's data from Discord does not have the documented form."""


def facts_of(data: object, user_id: str) -> MemberFacts:
    """Return the facts of a member as an event or a list of Discord describes them. Raises UnreadableMember."""
    try:
        return facts_from(read_member(data, user_id))
    except ProviderError as fault:
        raise UnreadableMember(str(fault)) from fault


async def read_from_discord(outside: Gateways, guild_id: str, discord_id: str) -> MemberFacts | None:
    """Return the member from Discord; None only if two different requests say that the member is not there.

    Raises ProviderUnavailable.
    """
    try:
        found = await outside.discord.membership(guild_id, discord_id)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    return None if found is None else facts_from(found)


@dataclass(frozen=True, slots=True)
class MemberContext:
    """The person behind an interaction in a server; the actor's `user_id` is 0 for a person without a row."""

    actor: Actor
    server_id: int
    guild_id: str
    server_name: str


async def find_member(
    db: AsyncSession, guild_id: str, discord_id: str, username: str, *, keep: bool = False
) -> MemberContext:
    """Return the member in the server; `keep` creates a row for a person without one. Raises ServerNotFound."""
    server = await server_of(db, guild_id)
    if server is None or not server.bot_invited:
        raise ServerNotFound(_("This server is not known here yet. Try again in a minute."))
    if keep:
        user_id = await users.ensure(db, discord_id, username)
    else:
        user_id = (await db.exec(select(User.id).where(User.discord_id == discord_id))).first() or 0
    return MemberContext(Actor(user_id, discord_id, username), server.id or 0, guild_id, server.name)


async def current_member(db: AsyncSession, server_id: int, discord_id: str) -> Member:
    """Return the stored member. Raises MemberNotFound for one who left, was never there or is a bot."""
    member = await db.get(Member, (server_id, discord_id), populate_existing=True)
    if member is None or member.left_at is not None or member.bot:
        raise MemberNotFound
    return member


async def seen_many(db: AsyncSession, seen: Iterable[tuple[int, LiveMember]]) -> None:
    """Store members that Discord returned, except those of whom something became known since they were asked for."""
    by_server: dict[int, list[LiveMember]] = {}
    for server_id, live in seen:
        by_server.setdefault(server_id, []).append(live)
    at, clock = now(), time.monotonic()
    for server_id, members in sorted(by_server.items()):
        read_at = {live.user_id: at - timedelta(seconds=clock - live.asked_at) for live in members}
        await keep(db, server_id, [facts_from(live) for live in members], read_at)


async def keep(
    db: AsyncSession, server_id: int, members: Sequence[MemberFacts], read_at: Mapping[str, datetime] | None = None
) -> None:
    """Store these members of a server with their roles.

    `read_at` is when each was read, by the database's clock. Without it, they are news that replaces what is stored.
    """
    rows = [
        {
            "discord_id": member.discord_id, "name": member.name, "avatar": member.avatar,
            "roles": sorted(member.roles), "pending": member.pending, "bot": member.bot,
            "read_at": read_at[member.discord_id].isoformat() if read_at is not None else None,
        }
        for member in members
    ]  # fmt: skip
    if rows:
        await db.execute(_KEEP, {"server": server_id, "rows": json.dumps(rows), "news": read_at is None})


# A fixed order, so that overlapping calls wait for each other instead of deadlocking.
_KEEP = """
    INSERT INTO member (server_id, discord_id, name, avatar, roles, pending, bot, left_at, seen_at)
    SELECT :server, discord_id, name, avatar, roles, pending, bot, NULL, COALESCE(read_at, now())
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS m (
        discord_id text, name text, avatar text, roles text[], pending boolean, bot boolean, read_at timestamptz)
    ORDER BY discord_id
    ON CONFLICT (server_id, discord_id) DO UPDATE SET
        name = EXCLUDED.name, avatar = EXCLUDED.avatar, roles = EXCLUDED.roles, pending = EXCLUDED.pending,
        bot = EXCLUDED.bot, left_at = NULL, seen_at = EXCLUDED.seen_at
        WHERE :news OR GREATEST(member.seen_at, member.left_at) <= EXCLUDED.seen_at
        OR GREATEST(member.seen_at, member.left_at) > clock_timestamp()  -- by a clock that was ahead
"""


async def is_gone(db: AsyncSession, server_id: int, discord_id: str) -> bool:
    """Return whether it is recorded that this member left, so that nothing is left for `left_many` to do."""
    statement = (
        "SELECT 1 FROM member m WHERE m.server_id = :server AND m.discord_id = :who AND m.left_at IS NOT NULL "
        'AND NOT EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = :server AND g.discord_id = :who)'
    )
    (rows,) = await db.together((statement, {"server": server_id, "who": discord_id}))
    return bool(rows)


async def mark_left(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """Mark those whose count depends on these members, who left.

    A vault's holdings count for the member with the oldest claim, which may now be somebody else.
    """
    if addresses := await _wallets_of(db, [discord_id for _, discord_id in gone]):
        await queue.mark_other_delegates(db, addresses, queue.CHANGED, sorted({server_id for server_id, _ in gone}))


async def mark_missing(db: AsyncSession, server_id: int, gone: Sequence[str], also: Sequence[str]) -> None:
    """Mark those whom `mark_left` marks for the members of a server who are `gone`, and the people in `also`.

    All are marked in one statement: two marks of one transaction could deadlock with another mark of many members.
    """
    wallets = await _wallets_of(db, gone)
    await queue.mark_people(db, also, wallets, servers=[server_id], also=[server_id], priority=queue.JOINED)


async def _wallets_of(db: AsyncSession, people: Sequence[str]) -> list[str]:
    """Return the wallets of these people that may count for others through a delegation."""
    wallets = await db.execute(
        'SELECT DISTINCT w.address FROM wallet w JOIN "user" u ON u.id = w.user_id '
        "WHERE w.family = 'evm' AND u.discord_id = ANY(CAST(:people AS text[]))",
        {"people": list(people)},
    )
    return [str(address) for (address,) in wallets.all()]


async def left_many(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """Mark for these members, who left, and record it."""
    if gone:
        # Before any lock on a grant: a reconcile of another delegate may wait for one of these grants.
        await mark_left(db, gone)
        await record_left(db, gone)


async def lock_members(db: AsyncSession, members: Sequence[tuple[int, str]]) -> None:
    """Lock these stored members until the transaction ends. Do it before any lock on their grants."""
    await db.execute(_LOCKED, _named(members))


async def record_left(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """Record that these members left: their grants are deleted, their proofs stay. Call `mark_left` before it."""
    # As in a reconcile that stores a member, before their grants.
    await lock_members(db, gone)
    grants = tuple_(col(Grant.server_id), col(Grant.discord_id)).in_(gone)
    await db.exec(queue.locking_in_order(grants))
    had = (await db.exec(select(Grant.server_id, Grant.discord_id, func.count()).where(grants).group_by(
        col(Grant.server_id), col(Grant.discord_id)
    ))).all()  # fmt: skip
    await _log_left(db, had)
    await db.execute(_LATE_GIFTS, _named(gone))
    await db.execute(delete(Grant).where(grants))
    await db.execute(
        update(Member)
        .where(tuple_(col(Member.server_id), col(Member.discord_id)).in_(gone), col(Member.left_at).is_(None))
        .values(left_at=func.now(), roles=[])
    )
    await _end_memberships(db, gone)


def _named(members: Iterable[tuple[int, str]]) -> dict[str, object]:
    """Return the values of a statement about these members, each a server's id and a Discord id."""
    servers, people = map(list, zip(*members, strict=True))
    return {"servers": servers, "people": people}


_LOCKED = """
    SELECT 1 FROM member m
    JOIN unnest(CAST(:servers AS integer[]), CAST(:people AS text[])) AS g (server_id, discord_id)
    USING (server_id, discord_id) ORDER BY m.server_id, m.discord_id FOR UPDATE OF m
"""


# Gifts that may still arrive for members who left, in case they come back: Discord's answer to such a gift, or the
# event about it, can come after the event that the member left. Discord removes the roles of those who leave, so older
# gifts need no record.
_LATE_GIFTS = """
    INSERT INTO unanswered (server_id, discord_id, role_id, giving, at)
    SELECT server_id, discord_id, role_id, true, now() FROM "grant"
    JOIN unnest(CAST(:servers AS integer[]), CAST(:people AS text[])) AS m (server_id, discord_id)
    USING (server_id, discord_id)
    WHERE state = 'giving' OR (state = 'held' AND updated_at > now() - interval '1 minute')
    ORDER BY server_id, discord_id, role_id
    ON CONFLICT (server_id, discord_id, role_id, giving) DO UPDATE SET at = now()
"""


async def _end_memberships(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """Delete what ends with a membership: truces, and the payout address with the list of who downloaded it."""
    members = "unnest(CAST(:servers AS integer[]), CAST(:people AS text[])) AS g (server_id, discord_id)"
    named = f"""{members} JOIN "user" u
        ON u.discord_id = g.discord_id WHERE c.server_id = g.server_id AND c.user_id = u.id"""
    for statement in (
        f"""
        DELETE FROM truce WHERE (server_id, discord_id, role_id) IN (
            SELECT t.server_id, t.discord_id, t.role_id FROM truce t JOIN {members} USING (server_id, discord_id)
            ORDER BY t.server_id, t.discord_id, t.role_id FOR UPDATE OF t)
        """,
        f"UPDATE member_choice c SET payout_wallet_id = NULL FROM {named} AND c.payout_wallet_id IS NOT NULL",
        f"DELETE FROM payout_listing c USING {named}",
    ):
        await db.execute(statement, _named(gone))


async def came_back(db: AsyncSession, gone_roles: Mapping[tuple[int, str], Sequence[str]]) -> None:
    """Record that these members left and rejoined while we were offline, and that Discord removed these roles."""
    if not gone_roles:
        return
    for (server_id, discord_id), role_ids in gone_roles.items():
        await db.execute(
            delete(Grant).where(
                col(Grant.server_id) == server_id, col(Grant.discord_id) == discord_id,
                col(Grant.role_id).in_(role_ids),
            )
        )  # fmt: skip
    await _end_memberships(db, list(gone_roles))
    await _log_left(db, [(*member, len(role_ids)) for member, role_ids in gone_roles.items()])


async def _log_left(db: AsyncSession, had: Iterable[tuple[int, str, int]]) -> None:
    """Write to the log that these members left, each with how many roles they had from us."""
    lines = (
        audit.line("member.left", server_id=server, subject=who, data={"roles": count}) for server, who, count in had
    )
    await audit.record_all(db, list(lines))


async def joined(db: AsyncSession, server_id: int, member: MemberFacts) -> None:
    """Store a member who joined, and queue them unless they are a bot."""
    if not member.bot:
        await queue.mark_member(db, server_id, member.discord_id, queue.JOINED)
    await keep(db, server_id, [member])


async def changed(db: AsyncSession, server_id: int, member: MemberFacts) -> None:
    """Store a member's new roles, name or screening; queue them if the change can affect a role of ours.

    So can an event about somebody with a wallet who was not known to be there.
    """
    known = await db.get(Member, (server_id, member.discord_id))
    before = set(known.roles) if known else set[str]()
    waited = bool(known and known.pending and not member.pending)
    lost = before - member.roles
    there = known is not None and known.left_at is None and not member.bot
    ours = False
    if lost:
        ours = (
            await db.exec(
                select(Grant.id).where(
                    Grant.server_id == server_id,
                    Grant.discord_id == member.discord_id,
                    Grant.state == "held",
                    col(Grant.role_id).in_(lost),
                )
            )
        ).first() is not None
    # The event that somebody came or returned may have been lost.
    came = not there and not member.bot and await _has_wallet(db, member.discord_id)
    if waited or ours or came:
        await queue.mark_member(db, server_id, member.discord_id, queue.JOINED)
    await keep(db, server_id, [member])
    if waited:
        await db.execute(
            update(Grant)
            .where(
                col(Grant.server_id) == server_id,
                col(Grant.discord_id) == member.discord_id,
                col(Grant.state) == "giving",
            )
            .values(next_at=func.now())
        )
    if there and before ^ member.roles:
        await rivals.record_theirs(db, server_id, member.discord_id, member.roles - before, lost)


async def _has_wallet(db: AsyncSession, discord_id: str) -> bool:
    statement = 'SELECT 1 FROM wallet w JOIN "user" u ON u.id = w.user_id WHERE u.discord_id = :who LIMIT 1'
    (rows,) = await db.together((statement, {"who": discord_id}))
    return bool(rows)


async def listed(db: AsyncSession, server_id: int, members: Sequence[MemberFacts]) -> None:
    """Store a part of a server's member list.

    Queues members who, while we were offline, joined or lost a role that a rule grants: they may have left and
    rejoined.
    """
    result = await db.execute(
        "SELECT discord_id, roles FROM member WHERE server_id = :server AND left_at IS NULL "
        "AND discord_id = ANY(CAST(:people AS text[]))",
        {"server": server_id, "people": [member.discord_id for member in members]},
    )
    had = {str(discord_id): frozenset[str](roles) for discord_id, roles in result.all()}
    ruled = frozenset((await db.exec(select(Rule.role_id).where(Rule.server_id == server_id).distinct())).all())
    stirred = [one.discord_id for one in members if (had.get(one.discord_id, frozenset()) - one.roles) & ruled]
    newcomers = {one.discord_id: one.roles for one in members if one.discord_id not in had and not one.bot}
    # Before they are stored, as by all code that writes about members, and all of them in one statement.
    if stirred or newcomers:
        await queue.mark_listed(db, server_id, stirred, newcomers, queue.JOINED)
    await keep(db, server_id, members)


async def list_ended(db: AsyncSession, server_id: int, began: datetime) -> int:
    """Record as gone the members not seen since the list began; return how many were missing, at most LEFT_AT_ONCE.

    A missing member with a role of ours is only queued, and Discord is asked about them: a truncated list must not
    delete anything from the ledger. `began` is the database's time.
    """
    missing = await _missing(db, server_id, began)
    if not missing:
        return 0
    doubtful = [discord_id for discord_id, ours in missing.items() if ours]
    await mark_missing(db, server_id, [discord_id for discord_id, ours in missing.items() if not ours], doubtful)
    # Together, because two sets of locks in one transaction could deadlock with other locks on many members.
    await lock_members(db, [(server_id, discord_id) for discord_id in missing])
    # The mark may have waited for reconciles that met some of them in the server, or gave them a role.
    still = await _missing(db, server_id, began, list(missing))
    doubtful = [discord_id for discord_id in doubtful if discord_id in still]
    gone = [(server_id, discord_id) for discord_id, ours in still.items() if not (ours or missing[discord_id])]
    if doubtful:
        # Their stored state is deleted, so that their reconcile begins by asking Discord.
        await db.execute(delete(Member).where(col(Member.server_id) == server_id, col(Member.discord_id).in_(doubtful)))
    if gone:
        await record_left(db, gone)
    return len(missing)


async def _missing(
    db: AsyncSession, server_id: int, began: datetime, people: Sequence[str] | None = None
) -> dict[str, bool]:
    """Return members not seen since the list began, each with whether they have a role of ours; at most LEFT_AT_ONCE.

    `people` limits whom; None means all members.
    """
    among = "" if people is None else "AND m.discord_id = ANY(CAST(:people AS text[])) "
    values: dict[str, object] = {"server": server_id, "began": began, "most": LEFT_AT_ONCE}
    result = await db.execute(
        'SELECT m.discord_id, EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = m.server_id '
        "AND g.discord_id = m.discord_id) FROM member m WHERE m.server_id = :server AND m.left_at IS NULL "
        f"AND m.seen_at < :began {among}ORDER BY m.discord_id LIMIT :most",
        values if people is None else {**values, "people": people},
    )
    return {str(discord_id): bool(ours) for discord_id, ours in result.all()}
