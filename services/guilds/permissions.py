"""The right to run a server, which Discord is asked about each time that it matters.

Changes ask Discord again, whatever it answered before. Reads (`require_admin_to_read`) share requests in flight,
refuse strangers without a request, and use Discord's last answer for a minute while Discord is away.
"""

import asyncio
import logging
from dataclasses import dataclass

from gateways import Gateways
from gateways.discord.own_guilds import WINDOW
from gateways.discord.rate_limiter import for_person
from gateways.discord.types import Guild, GuildGone, MemberGone, MissingAccess, UserGuild
from gateways.transport.errors import ProviderError, Unauthorized
from locales import _
from models import Access, Member, Server
from models.db import row_ids
from models.db.database import release
from models.db.session import AsyncSession
from services.accounts.users import doubt_discord_grant, fresh_access_token
from services.core.actors import Actor
from services.core.errors import Conflict, Forbidden, NotConnected, ProviderUnavailable, ServerNotFound, unavailable
from services.guilds import permission_cache, shared_reads
from services.guilds.gateway.known_guilds import server_of
from services.guilds.role_safety import RoleStanding, standing
from services.runtime import rate_limits

_log = logging.getLogger(f"holdfast.{__name__}")


@dataclass(frozen=True, slots=True)
class Rights:
    """An admin's present standing in a guild, and the guild as the bot sees it (None if the bot is not in it)."""

    server: Server
    guild: Guild | None
    person: RoleStanding | None
    bot: RoleStanding | None

    def guild_with_bot(self) -> tuple[Guild, RoleStanding, RoleStanding]:
        """Return the guild, and the standings of the person and the bot. Raises Conflict when the bot is not in it."""
        if self.guild is None or self.person is None or self.bot is None:
            raise Conflict(_("The bot is not in this server. Invite it first."))
        return self.guild, self.person, self.bot


async def require_admin(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, *, brief: bool = False
) -> Rights:
    """Return the actor's rights in a server. Raises ServerNotFound unless they own or administer it now.

    `brief` is for reads that can do without Discord: it waits only briefly and then raises ProviderUnavailable.
    """
    await rate_limits.spend_for(rate_limits.READS, actor)
    return await _of(db, outside, actor, await find_server(db, server_id), brief=brief)


async def require_admin_to_read(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> Server:
    """Return the server for a read by somebody who runs it. Raises ServerNotFound for anyone else.

    While Discord does not answer, its last answer counts for `permission_cache.KEPT_SECONDS`, unless the bot has learnt
    since that they no longer run it. Raises TooMany, ProviderUnavailable.
    """
    return (await read_with_guild(db, outside, actor, server_id))[0]


async def read_with_guild(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int
) -> tuple[Server, Guild | None]:
    """Return the server as `require_admin_to_read` does, and the guild as Discord shows it.

    The guild is None while Discord does not answer, or the bot is not in it.
    """
    await rate_limits.spend_for(rate_limits.READS, actor)
    return await _may_read(db, outside, actor, server_id)


async def require_admin_still(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> None:
    """Raise ServerNotFound once the actor of a long read no longer runs the server.

    The bot's reports are read each time. Discord is asked if its last answer is older than
    `permission_cache.KEPT_SECONDS`, without counting that towards the person's limit. Raises ProviderUnavailable.
    """
    stands = permission_cache.of(outside.discord).stands(actor.discord_id, server_id)
    if not (stands and await is_listed(db, actor, server_id)):
        await _may_read(db, outside, actor, server_id)


async def _may_read(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[Server, Guild | None]:
    server = await find_server(db, server_id)
    if server is None or not actor.reaches(server_id) or not await _was_met(db, actor, server_id):
        raise ServerNotFound
    cache = permission_cache.of(outside.discord)
    stands = cache.stands(actor.discord_id, server_id) and await is_listed(db, actor, server_id)
    guild = None
    try:
        guild = await _asked_to_read(db, outside, actor, server, brief=stands)
    except ServerNotFound:
        cache.drop(actor.discord_id, server_id)
        raise
    except ProviderUnavailable as fault:
        if not stands:
            raise
        _log.info("read by Discord's last answer server=%s reason=%s", server_id, fault.message)
    else:
        cache.keep(actor.discord_id, server_id)
    return server, guild


async def check_token(db: AsyncSession, outside: Gateways, actor: Actor) -> None:
    """Raise ServerNotFound for a token whose creator no longer runs its server; accept every person.

    For calls that name no server; all others check the rights when they look up the server. Raises as
    `require_admin_to_read` does.
    """
    if actor.token is not None:
        await require_admin_to_read(db, outside, actor, actor.token.server_id)


async def _asked_to_read(
    db: AsyncSession, outside: Gateways, actor: Actor, server: Server, *, brief: bool
) -> Guild | None:
    """Return the guild, if the bot is in it, once Discord says that the actor runs the server.

    Raises ServerNotFound, ProviderUnavailable.
    """
    if server.bot_invited:
        await release(db)
        asked = shared_reads.of(outside.discord)
        try:
            async with permission_cache.of(outside.discord).limit(actor.discord_id, brief=brief):
                with for_person(actor.discord_id):
                    guild = await asked.guild(outside.discord, server.discord_id, actor.discord_id)
                    member = await asked.member(outside.discord, guild.id, actor.discord_id)
        except (GuildGone, MissingAccess):
            pass  # as in `_asked`
        except MemberGone:
            raise ServerNotFound from None
        except ProviderError as fault:
            raise unavailable(fault) from fault
        else:
            if not standing(guild.id, guild.owner_id, guild.roles, actor.discord_id, member.roles).is_admin:
                raise ServerNotFound
            return guild
    await _by_own_list(db, outside, actor, server, brief=brief)
    return None


async def find_server(db: AsyncSession, server_id: int) -> Server | None:
    """Return the server with this id, or None."""
    # An id beyond the column's range must not become a database error.
    return await db.get(Server, server_id) if row_ids.fits(server_id) else None


async def is_listed(db: AsyncSession, actor: Actor, server_id: int) -> bool:
    """Return whether the actor ran the server according to the latest report by Discord or the bot."""
    if not actor.reaches(server_id) or await find_server(db, server_id) is None:
        return False
    return await db.get(Access, (server_id, actor.discord_id)) is not None


async def _was_met(db: AsyncSession, actor: Actor, server_id: int) -> bool:
    """Return whether the actor is known to have been a member of the server or to have run it.

    Server ids are small numbers: a stranger who tries them all must not make the bot ask Discord about each.
    """
    key = (server_id, actor.discord_id)
    return await db.get(Access, key) is not None or await db.get(Member, key) is not None


async def require_admin_by_discord_id(db: AsyncSession, outside: Gateways, actor: Actor, discord_id: str) -> Rights:
    """Return the actor's rights in the server with this Discord id. Raises as `require_admin` does."""
    await rate_limits.spend_for(rate_limits.READS, actor)
    server = await server_of(db, discord_id)
    return await _of(db, outside, actor, server)


async def require_manage_server(db: AsyncSession, outside: Gateways, actor: Actor, discord_id: str) -> Rights:
    """Return the rights of a person who uses /setup inside Discord, where Manage Server is enough.

    Raises ServerNotFound for a server without the bot, Forbidden without that permission, ProviderUnavailable.
    """
    server = await server_of(db, discord_id)
    if server is None or not server.bot_invited:
        raise ServerNotFound
    await release(db)
    try:
        found = await _standings(outside, actor, server)
    except (GuildGone, MissingAccess, MemberGone):
        raise ServerNotFound from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if not (found.person and found.person.may_manage_server):
        raise Forbidden(_("Only members with the permission Manage Server can set up the verification channel."))
    return found


async def _of(
    db: AsyncSession, outside: Gateways, actor: Actor, server: Server | None, *, brief: bool = False
) -> Rights:
    if server is None or not actor.reaches(server.id):
        raise ServerNotFound
    cache = permission_cache.of(outside.discord)
    try:
        found = await _asked(db, outside, actor, server, brief=brief)
    except ServerNotFound:
        cache.drop(actor.discord_id, server.id or 0)
        raise
    cache.keep(actor.discord_id, server.id or 0)
    return found


async def _asked(db: AsyncSession, outside: Gateways, actor: Actor, server: Server, *, brief: bool) -> Rights:
    if server.bot_invited:
        await release(db)
        try:
            async with permission_cache.of(outside.discord).limit(actor.discord_id, brief=brief):
                return await _through_bot(outside, actor, server)
        except (GuildGone, MissingAccess):
            pass  # the bot was removed a moment ago; the person's own list of guilds can still answer
        except MemberGone:
            raise ServerNotFound from None
        except ProviderError as fault:
            raise unavailable(fault) from fault
    return await _by_own_list(db, outside, actor, server, brief=brief)


async def _by_own_list(db: AsyncSession, outside: Gateways, actor: Actor, server: Server, *, brief: bool) -> Rights:
    guilds = await own_guilds(db, outside, actor, brief=brief)
    if not any(guild.id == server.discord_id and guild.is_admin for guild in guilds):
        raise ServerNotFound
    return Rights(server, None, None, None)


async def _through_bot(outside: Gateways, actor: Actor, server: Server) -> Rights:
    found = await _standings(outside, actor, server)
    if not (found.person and found.person.is_admin):
        raise ServerNotFound
    return found


async def _standings(outside: Gateways, actor: Actor, server: Server) -> Rights:
    with for_person(actor.discord_id):
        me = await shared_reads.of(outside.discord).me(outside.discord)
        guild = await outside.discord.guild(server.discord_id)
        member, bot = await asyncio.gather(
            outside.discord.member(guild.id, actor.discord_id), outside.discord.member(guild.id, me.id)
        )
    person = standing(guild.id, guild.owner_id, guild.roles, actor.discord_id, member.roles)
    return Rights(server, guild, person, standing(guild.id, guild.owner_id, guild.roles, me.id, bot.roles))


async def own_guilds(
    db: AsyncSession, outside: Gateways, actor: Actor, *, max_age: float = WINDOW, brief: bool = False
) -> list[UserGuild]:
    """Return the actor's guilds as Discord lists them for the actor's OAuth grant, at most `max_age` seconds old.

    `brief` waits only briefly, for callers that can do without the list. Raises NotConnected, ProviderUnavailable.
    """
    token = await fresh_access_token(db, outside, actor.user_id)
    await release(db)
    try:
        async with permission_cache.of(outside.discord).limit(actor.discord_id, brief=brief):
            return await outside.oauth.my_guilds(token, max_age=max_age)
    except Unauthorized:
        await doubt_discord_grant(actor.user_id)
        raise NotConnected from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
