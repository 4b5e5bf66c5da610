"""The servers that a person runs or could add the bot to, the bot's invite links, and a server's roles."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast
from weakref import WeakValueDictionary

from sqlalchemy import delete, func
from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.own_guilds import KEPT_SECONDS, WINDOW
from gateways.discord.types import UserGuild
from gateways.transport.errors import ProviderConfused
from gateways.transport.plain_text import one_line
from locales import _
from models import Access, Server, now
from models.db.database import release
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.discord_text import DEFAULT_COLOR
from services.core.errors import FieldRefused, NotConnected, ProviderUnavailable, ServerNotFound, unavailable
from services.core.json_view import Internal, json_view
from services.guilds import permission_cache, permissions
from services.guilds.gateway import known_guilds, known_people
from services.guilds.role_safety import MANAGE_ROLES, judge, rank
from services.guilds.verification_channel import EMBED, HISTORY, MANAGE_CHANNELS, SEND, VIEW
from services.roles import breaker
from services.rules.views import RuleView
from services.rules.views import of_servers as rules_of_servers
from services.servers import verified_counts
from services.triggers import member_rereads
from settings import settings

PRIORITY_SPEAKER, SEND_SPOKEN, USE_COMMANDS = 1 << 8, 1 << 12, 1 << 31
SERVER_PERMISSIONS = MANAGE_CHANNELS | VIEW | SEND | EMBED | HISTORY | MANAGE_ROLES | USE_COMMANDS
"""The permissions that a server's invite link asks for: those that the bot uses, and the right to use commands, which
people need (docs/facts.md#discord-permissions)."""
NAVIGATION_PERMISSIONS = PRIORITY_SPEAKER | SEND_SPOKEN | MANAGE_ROLES
"""The permissions of the navigation's invite link; the bot uses only Manage Roles."""

DISCORD_CDN = "https://cdn.discordapp.com"
ASK_AGAIN = timedelta(minutes=5)
"""How long the list of a person's servers is used before Discord is asked again."""
BELIEVED = timedelta(hours=1)
"""How long that list is used while Discord cannot be asked."""
LONGEST_NAME = 100
LONGEST_ICON = 500
LONGEST_DESCRIPTION = 500


@json_view
class ServerView:
    """A server as its admins see it; `id` is Discord's, `internalId` ours."""

    id: str
    internal_id: int
    name: str
    icon_url: str | None
    bot_invited: bool
    owner: bool
    verified_members: int
    verification_rules_count: int
    verification_rules: tuple[RuleView, ...]
    held_back: Internal[int]
    """How many roles' removals wait for an admin."""


@json_view
class GuildView:
    """A Discord server that the person runs, on the invite list."""

    id: str
    name: str
    icon: str | None
    icon_url: str | None
    owner: bool
    has_bot: bool


@json_view
class RoleView:
    """A role of a server, and why a rule of this person could not grant it."""

    id: str
    name: str
    color: int
    assignable: bool
    reason: str | None
    short_reason: Internal[str]
    """The reason in a few words; empty if the rule could grant it."""


async def list_servers(db: AsyncSession, actor: Actor) -> list[ServerView]:
    """Return the known servers that the person runs, by name."""
    rows = await db.exec(
        select(Server, Access.owner)
        .join(Access, col(Access.server_id) == col(Server.id))
        .where(Access.discord_id == actor.discord_id)
        .order_by(col(Server.name), col(Server.id))
    )
    return await _views(db, list(rows.all()))


async def get(db: AsyncSession, outside: Gateways, actor: Actor, internal_id: int) -> ServerView:
    """Return one server. Raises ServerNotFound unless the actor runs it now."""
    server = await permissions.require_admin_to_read(db, outside, actor, internal_id)
    return (await _views(db, [(server, server.owner_id == actor.discord_id)]))[0]


async def _views(db: AsyncSession, rows: list[tuple[Server, bool]]) -> list[ServerView]:
    ids = [server.id or 0 for server, _ in rows]
    rules = await rules_of_servers(db, ids)
    verified = await verified_counts.by_server(db, ids)
    waiting = await breaker.waiting(db, ids)
    return [
        ServerView(
            id=server.discord_id,
            internal_id=server.id or 0,
            name=server.name,
            icon_url=icon_url(server.discord_id, server.icon),
            bot_invited=server.bot_invited,
            verification_rules_count=len(rules.get(server.id or 0, ())),
            verification_rules=tuple(rules.get(server.id or 0, ())),
            verified_members=verified.get(server.id or 0, 0),
            held_back=waiting.get(server.id or 0, 0),
            owner=owner,
        )
        for server, owner in rows
    ]


async def sync(db: AsyncSession, outside: Gateways, actor: Actor, *, brief: bool = False) -> int:
    """Read from Discord which servers the person runs; return how many of them we know.

    `brief` waits only a moment for Discord. Raises NotConnected, ProviderUnavailable.
    """
    # The result is used for minutes, so it must not come from a list that is already cached.
    guilds = {guild.id: guild for guild in await _own_guilds(db, outside, actor, max_age=0, brief=brief)}
    known = (await db.exec(select(Server).where(col(Server.discord_id).in_(guilds.keys())))).all()
    mine: dict[int, bool] = {}
    for server in known:
        guild = guilds[server.discord_id]
        server.name, server.icon = guild.name, guild.icon or server.icon
        if guild.owner:
            server.owner_id = actor.discord_id
        db.add(server)
        if guild.is_admin:
            mine[server.id or 0] = guild.owner
            permission_cache.of(outside.discord).keep(actor.discord_id, server.id or 0)
    await allow(db, actor.discord_id, mine)
    await db.execute(
        delete(Access).where(col(Access.discord_id) == actor.discord_id, col(Access.server_id).not_in(mine))
    )
    if known:
        with_bot = [server.id or 0 for server in known if server.bot_invited]
        await member_rereads.met_elsewhere(db, actor.discord_id, actor.username, with_bot)
    return len(mine)


async def look_for(db: AsyncSession, actor: Actor) -> None:
    """Have the bot search its servers for the actor, if the servers are few: Discord did not say where the actor is."""
    await known_people.look_elsewhere(db, None, actor.discord_id, actor.username)


_asking: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()


async def ask_again(db: AsyncSession, outside: Gateways, actor: Actor) -> None:
    """Read from Discord which servers the person runs, if a part of the list is older than ASK_AGAIN.

    Otherwise somebody who left a server while the bot was offline would keep it in their list. While Discord cannot be
    asked, an answer younger than BELIEVED is used; after that NotConnected and ProviderUnavailable are raised.
    """
    if await _age(db, actor) < ASK_AGAIN:
        return
    await release(db)
    lock = _asking.setdefault(actor.user_id, asyncio.Lock())
    async with lock:
        age = await _age(db, actor)
        if age < ASK_AGAIN:
            return
        try:
            await sync(db, outside, actor, brief=age < BELIEVED)
        except (NotConnected, ProviderUnavailable):
            if age >= BELIEVED:
                raise


async def _age(db: AsyncSession, actor: Actor) -> timedelta:
    """Return the age of the oldest part of the person's list; zero for an empty one."""
    oldest = select(func.min(col(Access.checked_at))).where(Access.discord_id == actor.discord_id)
    at = cast("datetime | None", (await db.exec(oldest)).one())
    return timedelta() if at is None else now() - at


async def _own_guilds(
    db: AsyncSession, outside: Gateways, actor: Actor, *, max_age: float = WINDOW, brief: bool = False
) -> list[UserGuild]:
    """Return the person's guilds as Discord lists them; an empty list is checked through the bot before it is believed.

    Raises ProviderUnavailable when the bot sees that the person runs one of the known servers, or cannot see it.
    """
    listed = await permissions.own_guilds(db, outside, actor, max_age=max_age, brief=brief)
    if not listed:
        await _runs_none(db, outside, actor)
    return listed


async def _runs_none(db: AsyncSession, outside: Gateways, actor: Actor) -> None:
    listed = select(Access.server_id).join(Server, col(Server.id) == Access.server_id)
    mine = await db.exec(listed.where(Access.discord_id == actor.discord_id, col(Server.bot_invited).is_(True)))
    for server_id in mine.all():
        try:
            await permissions.require_admin(db, outside, actor, server_id)
        except ServerNotFound:
            continue
        raise unavailable(ProviderConfused("Discord", "it lists no servers for somebody who runs one"))


async def allow(db: AsyncSession, discord_id: str, servers: Mapping[int, bool]) -> None:
    """Add servers to the list of those that a person runs, each with whether they own it.

    Each change by them is still checked live.
    """
    values = {"who": discord_id, "servers": list(servers), "owners": list(servers.values()), "now": now()}
    await db.execute(_ALLOW, values)


# A fixed order, so that overlapping calls wait for each other instead of deadlocking.
_ALLOW = """
    INSERT INTO access (server_id, discord_id, owner, checked_at)
    SELECT s.id, :who, s.owner, :now
    FROM unnest(CAST(:servers AS integer[]), CAST(:owners AS boolean[])) AS s (id, owner) ORDER BY s.id
    ON CONFLICT (server_id, discord_id) DO UPDATE SET owner = EXCLUDED.owner, checked_at = EXCLUDED.checked_at
"""


async def invite_list(db: AsyncSession, outside: Gateways, actor: Actor) -> list[GuildView]:
    """Return every Discord server that the person runs, and whether the bot is in it, ordered by name."""
    guilds = [guild for guild in await _own_guilds(db, outside, actor, max_age=KEPT_SECONDS) if guild.is_admin]
    rows = await db.exec(select(Server.discord_id).where(col(Server.bot_invited).is_(True)))
    with_bot = set(rows.all())
    views = [
        GuildView(guild.id, guild.name, guild.icon, icon_url(guild.id, guild.icon), guild.owner, guild.id in with_bot)
        for guild in guilds
    ]
    return sorted(views, key=lambda view: (view.name.casefold(), view.id))


async def add(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    discord_server_id: str,
    name: str,
    icon: str | None,
    description: str | None,
) -> ServerView:
    """Add a server from the form, for a person who runs it; adding it again updates its fields.

    Raises FieldRefused, ServerNotFound, NotConnected, ProviderUnavailable.
    """
    discord_id, name = discord_server_id.strip(), one_line(name)
    if not discord_id or not name:
        raise FieldRefused("discordServerId", _("Please fill in Discord Server ID and Server Name"))
    if not (discord_id.isascii() and discord_id.isdigit() and 15 <= len(discord_id) <= 20):
        raise FieldRefused("discordServerId", _("A Discord Server ID is a number of about 18 digits."))
    if len(name) > LONGEST_NAME:
        raise FieldRefused(
            "serverName", _("A server's name has at most {longest_name} characters.").format(longest_name=LONGEST_NAME)
        )
    description = "\n".join(map(one_line, (description or "").strip().splitlines()))
    if len(description) > LONGEST_DESCRIPTION:
        raise FieldRefused(
            "description",
            _("A description has at most {longest_description} characters.").format(
                longest_description=LONGEST_DESCRIPTION
            ),
        )
    icon = _checked_icon(icon)
    guild = next(
        (found for found in await _own_guilds(db, outside, actor) if found.id == discord_id and found.is_admin), None
    )
    if guild is None:
        raise ServerNotFound(_("You do not run a Discord server with that ID."))
    server = await known_guilds.ensure_server(db, discord_id, name)
    server.name, server.icon, server.description = name, icon or server.icon or guild.icon, description
    if guild.owner:
        server.owner_id = actor.discord_id
    db.add(server)
    await db.flush()
    await allow(db, actor.discord_id, {server.id or 0: guild.owner})
    await audit.record(db, audit.line("server.added", server_id=server.id, actor=actor.discord_id))
    return (await _views(db, [(server, guild.owner)]))[0]


def _checked_icon(icon: str | None) -> str | None:
    address = (icon or "").strip()
    if not address:
        return None
    known = any(address.startswith(f"{base}/") for base in (DISCORD_CDN, settings().discord_cdn_url))
    if not known or len(address) > LONGEST_ICON:
        raise FieldRefused(
            "serverIcon",
            _("The icon must be an address on Discord's own CDN ({discord_cdn}/…).").format(discord_cdn=DISCORD_CDN),
        )
    return address


def icon_url(guild_id: str, icon: str | None) -> str | None:
    """Return the URL of a server's icon on Discord's CDN."""
    if not icon:
        return None
    return icon if icon.startswith("http") else f"{settings().discord_cdn_url}/icons/{guild_id}/{icon}.png?size=128"


def invite_url(outside: Gateways, guild_id: str) -> str:
    """Return the URL where an admin adds the bot to one server."""
    return outside.oauth.bot_invite_url(guild_id, SERVER_PERMISSIONS)


def navigation_invite_url(outside: Gateways) -> str:
    """Return the navigation's general invite link."""
    return outside.oauth.bot_invite_url(None, NAVIGATION_PERMISSIONS)


async def roles(db: AsyncSession, outside: Gateways, actor: Actor, discord_server_id: str) -> list[RoleView]:
    """Return a server's roles, highest first, without @everyone, each with the reason if it could not be granted.

    Raises ServerNotFound unless the actor runs it, Conflict while the bot is not in it.
    """
    found = await permissions.require_admin_by_discord_id(db, outside, actor, discord_server_id)
    guild, person, bot = found.guild_with_bot()
    views: list[RoleView] = []
    for role in sorted(guild.roles, key=rank, reverse=True):
        if role.id != guild.id:
            refused = judge(role, guild.id, bot, person)
            reason, short = (refused.text, refused.short) if refused else (None, "")
            color = role.color or int(DEFAULT_COLOR[1:], 16)
            views.append(RoleView(role.id, role.name, color, refused is None, reason, short))
    return views
