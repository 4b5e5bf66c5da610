"""Guild events from the gateway: the bot joined or left, members, and roles that are no longer safe to grant."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func
from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.types import giver as giver
from gateways.transport.errors import ProviderError
from models import Access, Grant, Member, Rule, Server, now
from models.db.session import AsyncSession, joined
from services.core import audit, queue
from services.guilds import members
from services.guilds.gateway import guild_snapshots, known_guilds, known_people
from services.guilds.gateway.known_guilds import server_of as server_of
from services.guilds.gateway.shards import shard_of
from services.guilds.members import MemberFacts
from services.guilds.role_safety import ADMINISTRATOR, find, is_too_low, judge, standing
from services.rules import pausing
from services.runtime import schedules
from services.triggers import member_rereads

log = logging.getLogger(f"holdfast.{__name__}")

BOT_READY = "bot.ready"


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """A guild's role as the gateway shows it."""

    id: str
    name: str
    position: int
    managed: bool
    permissions: int
    giver: str = ""
    """What gives the role instead of people, as in `gateways.discord.types.giver`; empty if people may."""
    color: int = 0


@dataclass(frozen=True, slots=True)
class GuildFacts:
    """A guild that the bot is in, as the gateway shows it."""

    id: str
    name: str
    icon: str | None
    owner_id: str
    bot_id: str
    roles: tuple[RoleFacts, ...]
    members: tuple[MemberFacts, ...]
    """At least the bot. The stored members complete the list of those with the Administrator permission."""
    member_count: int = 0


async def guild_available(db: AsyncSession, guild: GuildFacts, gone: Collection[str] | None = None) -> None:
    """Record that the bot is in this guild, and judge its roles; if it is new there, queue its known members.

    `gone` is as in `check_roles`. Report its members after that: the pages of their list to `listed`, then call
    `list_ended` and `who_runs`.
    """
    server = await known_guilds.ensure_server(db, guild.id, guild.name)
    came = not server.bot_invited
    server.name, server.icon, server.owner_id = guild.name, guild.icon or server.icon, guild.owner_id
    server.bot_invited, server.member_count = True, guild.member_count
    if came:
        server.bot_joined_at, server.bot_left_at = now(), None
    db.add(server)
    await db.flush()
    server_id = server.id or 0
    if came:
        # The rules first, as in each change of rules. Then the queue, as in all code that writes about members.
        await pausing.lock_rules(db, server_id)
        await queue.mark_server(db, server_id, queue.JOINED)
    await check_roles(db, guild, gone)
    if came:
        await audit.record(db, audit.line("bot.joined", server_id=server_id))


async def list_begins(db: AsyncSession, guild_id: str) -> datetime:
    """Return the database's time, by which `list_ended` finds the members that are missing from the list."""
    await known_people.list_begins(db, guild_id)
    return await db.now()


async def listed(
    db: AsyncSession, guild_id: str, part: Sequence[MemberFacts], admin_roles: Collection[str] = ()
) -> None:
    """Store the members on a page of a guild's list whom we know, or who have one of the `admin_roles`."""
    if server := await server_of(db, guild_id):
        people = ((one.discord_id, one.roles) for one in part)
        ours = await known_people.among(db, server.id or 0, people, admin_roles)
        await members.listed(db, server.id or 0, [one for one in part if one.discord_id in ours])


async def list_ended(db: AsyncSession, guild_id: str, began: datetime) -> int:
    """Record as gone some of the members that are missing from the list that began then; return how many."""
    server = await server_of(db, guild_id)
    if server is None:
        return 0
    gone = await members.list_ended(db, server.id or 0, began)
    if not gone:
        await known_people.list_ended(db, server.id or 0, began)
    return gone


async def who_runs(db: AsyncSession, guild: GuildFacts, *, whole: bool = True) -> None:
    """Update the list of people who run the guild, after roles or members changed.

    Without `whole`, the guild's members are unknown, and only its name, picture and owner are stored.
    """
    server = await server_of(db, guild.id)
    if server is not None and server.id is not None:
        server.name, server.icon, server.owner_id = guild.name, guild.icon or server.icon, guild.owner_id
        db.add(server)
        if whole:
            await _who_runs(db, server.id, guild)


async def _who_runs(db: AsyncSession, server_id: int, guild: GuildFacts) -> None:
    admin_roles = {role.id for role in guild.roles if role.permissions & ADMINISTRATOR}
    shown = {one.discord_id for one in guild.members if guild.id in admin_roles or admin_roles & one.roles}
    values = {"server": server_id, "everybody": guild.id in admin_roles, "admin_roles": sorted(admin_roles)}
    (stored,) = await db.together((_ADMINS, values))
    admins = sorted(({guild.owner_id} | shown | {str(one) for (one,) in stored}) - {guild.bot_id})
    # Each list as one parameter: if @everyone is an administrator, everybody is on it.
    whom = {"server": server_id, "admins": joined(admins), "owner": guild.owner_id}
    await db.execute(_FORBID, whom)
    await db.execute(_ALLOW, whom)


_ADMINS = """
    SELECT discord_id FROM member WHERE server_id = :server AND left_at IS NULL
    AND (roles && CAST(:admin_roles AS text[])
         OR :everybody AND EXISTS (SELECT 1 FROM "user" u WHERE u.discord_id = member.discord_id))
"""
_FORBID = """
    DELETE FROM access WHERE server_id = :server
    AND discord_id NOT IN (SELECT unnest(string_to_array(:admins, ',')))
"""
_NO_LONGER = "DELETE FROM access WHERE server_id = :server AND discord_id = :who"
_ALLOW = """
    INSERT INTO access (server_id, discord_id, owner, checked_at)
    SELECT :server, one, one = :owner, now() FROM unnest(string_to_array(:admins, ',')) AS one ORDER BY one
    ON CONFLICT (server_id, discord_id) DO UPDATE SET owner = EXCLUDED.owner, checked_at = EXCLUDED.checked_at
"""


async def left(db: AsyncSession, guild_id: str) -> None:
    """Record that the bot left this guild: pause its rules and cancel its removals. Grants and proofs stay."""
    server = await server_of(db, guild_id)
    if server is None or not server.bot_invited:
        return
    server.bot_invited, server.bot_left_at = False, now()
    db.add(server)
    await guild_snapshots.forget(db, [guild_id])
    of_server = col(Grant.server_id) == server.id
    undone = await db.exec(select(func.count()).select_from(Grant).where(of_server, col(Grant.state) == "taking"))
    left_undone = undone.one()
    await pausing.pause_all(db, server.id or 0, pausing.AWAY_REASON, pausing.AWAY)
    await audit.record(db, audit.line("bot.left", server_id=server.id, data={"removalsLeftUndone": left_undone}))


async def left_others(
    db: AsyncSession, present: Callable[[], Collection[str]], numbers: Collection[int] = (0,), count: int = 1
) -> None:
    """Record that on these shards (of `count`), the bot is in exactly the guilds that `present` returns.

    It may have left others while it was offline. `present` is called once the stored guilds are read: one that invites
    the bot meanwhile is known to the bot before it is stored.
    """
    invited = select(Server.id, Server.discord_id).where(col(Server.bot_invited).is_(True))
    known = (await db.exec(invited.order_by(col(Server.id)))).all()
    there = present()
    gone = {
        server_id: guild_id
        for server_id, guild_id in known
        if guild_id not in there and shard_of(guild_id, count) in numbers
    }
    if gone:
        # Each kind of row of all servers at once, and the servers in the order of their ids, as others lock them.
        theirs = select(Server.id).where(col(Server.id).in_(gone)).order_by(col(Server.id))
        await db.exec(theirs.with_for_update(key_share=True))
        await pausing.lock_rules_where(db, col(Rule.server_id).in_(gone))
    for guild_id in gone.values():
        await left(db, guild_id)


async def ready(db: AsyncSession) -> None:
    """Record that the bot has reported all of its guilds."""
    await schedules.began(db, BOT_READY)


async def missing_roles(db: AsyncSession, guild: GuildFacts) -> frozenset[str]:
    """Return the roles that rules decide about or members have from us, and that are not among the guild's roles.

    Roles that are known to be deleted are left out.
    """
    values = {"guild": guild.id, "there": [role.id for role in guild.roles], "known": [pausing.GONE, pausing.TOO_MANY]}
    return frozenset(str(role_id) for (role_id,) in await db.execute(_MISSING, values))


_MISSING = """
    SELECT DISTINCT r.role_id FROM rule r JOIN server s ON s.id = r.server_id
    WHERE s.discord_id = :guild AND r.role_id <> ALL(CAST(:there AS text[])) AND (
        r.deleted_at IS NULL AND (r.state = 'active' OR r.pause_cause <> ALL(CAST(:known AS text[])))
        OR EXISTS (SELECT FROM "grant" g WHERE g.server_id = r.server_id AND g.role_id = r.role_id))
"""


async def gone_roles(outside: Gateways, guild_id: str, missing: frozenset[str]) -> frozenset[str] | None:
    """Return those of the missing roles that Discord does not show either; None if it does not say."""
    if not missing:
        return missing
    try:
        roles = await outside.discord.roles(guild_id)
    except ProviderError as fault:
        log.warning("roles not read guild=%s reason=%s", guild_id, fault)
        return None
    return missing.difference(role.id for role in roles)


async def check_roles(db: AsyncSession, guild: GuildFacts, gone: Collection[str] | None = None) -> None:
    """Pause the rules whose role is deleted, dangerous, managed, or above the bot.

    A role counts as deleted if the guild does not have it; with `gone`, only if it is one of these, too. Resume the
    rules paused for such a cause whose role can be granted again. Store the present names of roles, and the new colours
    of those that have another one than in the guild's last snapshot.
    """
    server = await server_of(db, guild.id)
    if server is None:
        return
    held = next((member.roles for member in guild.members if member.discord_id == guild.bot_id), None)
    if held is None:
        return  # the bot's own rank is not known yet, and nothing can be judged without it
    bot = standing(guild.id, guild.owner_id, guild.roles, guild.bot_id, held)
    server.bot_permissions, server.bot_too_low = bot.permissions, is_too_low(guild.roles, guild.id, bot)
    db.add(server)
    # Those of deleted rules too, as long as members have them from us.
    used = await db.exec(select(Rule.role_id, Rule.role_name).where(Rule.server_id == server.id).distinct())
    names: dict[str, set[str]] = {}
    for role_id, name in used.all():
        names.setdefault(role_id, set()).add(name)
    before = await guild_snapshots.colors(db, guild.id) if names else {}
    there = {role_id: role for role_id in sorted(names) if (role := find(guild.roles, role_id)) is not None}
    renamed = [role_id for role_id, role in there.items() if names[role_id] != {role.name}]
    recolored = [role_id for role_id, role in there.items() if before.get(role_id, role.color) != role.color]
    judged = {role_id: judge(role, guild.id, bot) for role_id, role in there.items()}
    healthy = [role_id for role_id, refused in judged.items() if refused is None]
    unsafe = {role_id: (one.kept, one.cause) for role_id, one in judged.items() if one is not None}
    deleted = [role_id for role_id in names.keys() - there.keys() if gone is None or role_id in gone]
    await pausing.lock_rules(db, server.id or 0, {*renamed, *recolored, *unsafe, *deleted}, resumed=healthy)
    for role_id in renamed:
        await pausing.role_renamed(db, server.id or 0, role_id, there[role_id].name)
    for role_id in recolored:
        await pausing.role_recolored(db, server.id or 0, role_id, before[role_id], there[role_id].color)
    await pausing.roles_judged(db, server.id or 0, resumed=healthy, paused=unsafe, gone=deleted)


async def member_joined(db: AsyncSession, guild_id: str, member: MemberFacts) -> None:
    """Record that a member joined."""
    if server := await server_of(db, guild_id):
        await members.joined(db, server.id or 0, member)


async def member_changed(
    db: AsyncSession, guild_id: str, member: MemberFacts, admin_roles: frozenset[str] | None = None
) -> None:
    """Record a change of a member's roles, name or screening; any role in `admin_roles` makes them an administrator.

    None means that the server's roles are unknown: who runs it stays as it is.
    """
    server = await server_of(db, guild_id)
    if server is None or server.id is None:
        return
    await members.changed(db, server.id, member)
    if admin_roles is None:
        return
    # Compared with the list itself: another process may have read and stored these roles before the event came.
    runs = bool(admin_roles & member.roles)
    listed = await db.get(Access, (server.id, member.discord_id), populate_existing=True) is not None
    if runs is not listed and guild_id not in admin_roles:
        whom = {"server": server.id, "admins": member.discord_id, "owner": server.owner_id or ""}
        if runs:
            await db.execute(_ALLOW, whom)
        elif member.discord_id != server.owner_id:
            await db.execute(_NO_LONGER, {"server": server.id, "who": member.discord_id})


async def member_read(db: AsyncSession, guild_id: str, member: MemberFacts) -> None:
    """Record a member who was read after a missed event: they may have joined, changed, or neither."""
    if server := await server_of(db, guild_id):
        was = await db.get(Member, (server.id or 0, member.discord_id), populate_existing=True)
        new = was is None or was.left_at is not None
        await (members.joined if new else members.changed)(db, server.id or 0, member)


async def member_met(db: AsyncSession, guild_id: str, member: MemberFacts) -> None:
    """Record a member as an interaction shows them, if that differs from what is stored.

    A new person is looked for in the other servers too, because nothing else reports where they are members.
    """
    server = await server_of(db, guild_id)
    if server is not None and await member_rereads.differs(db, server.id or 0, member):
        await member_read(db, guild_id, member)
        if await member_rereads.first_met(db, server.id or 0, member.discord_id):
            await known_people.look_elsewhere(db, server.id or 0, member.discord_id, member.name)


async def member_left(db: AsyncSession, guild_id: str, discord_id: str) -> None:
    """Record that a member left: their grants are deleted, their proofs stay."""
    if server := await server_of(db, guild_id):
        if not await members.is_gone(db, server.id or 0, discord_id):
            await members.left_many(db, [(server.id or 0, discord_id)])
        await db.execute(_NO_LONGER, {"server": server.id, "who": discord_id})
