"""The cog that hears of guilds, members and roles, and passes each on as one use case."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import nextcord
from nextcord.ext import commands
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from bot.facts import guild_facts, member_facts
from models import transaction
from services import channels, guilds

log = logging.getLogger("holdfast.bot")

DATABASE_PAUSE = 2.0
"""Seconds between tries while the database does not answer: no event may be lost by that."""


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between tries to read a guild's members."""


class ListIncomplete(Exception):
    """Discord's list of a guild's members cannot be all of it."""


class Events(commands.Cog):
    """Keeps the product's picture of guilds up to date."""

    def __init__(self, bot: commands.AutoShardedBot) -> None:
        self.bot: commands.AutoShardedBot = bot
        # One event after another: each reads the cache when its turn comes, so the last one written is the newest.
        self.turn: asyncio.Lock = asyncio.Lock()

    @commands.Cog.listener()
    async def on_ready(self) -> None:
        """Tell of every guild, and of those that are gone; after a new session everything may have changed."""
        for guild in self.bot.guilds:
            if not guild.unavailable:
                await self._seen(guild)
        present = [str(guild.id) for guild in self.bot.guilds]
        await self._tell(lambda db: guilds.present(db, present))
        await self._tell(guilds.ready)
        log.info("ready in %s guilds", len(self.bot.guilds))

    @commands.Cog.listener()
    async def on_guild_join(self, guild: nextcord.Guild) -> None:
        """Tell of a new guild."""
        await self._seen(guild)

    @commands.Cog.listener()
    async def on_guild_available(self, guild: nextcord.Guild) -> None:
        """Tell of a guild that was out for a while."""
        if self.bot.is_ready():
            await self._seen(guild)

    @commands.Cog.listener()
    async def on_guild_remove(self, guild: nextcord.Guild) -> None:
        """The bot was removed (an outage is another event)."""
        await self._tell(lambda db: guilds.left(db, str(guild.id)))

    @commands.Cog.listener()
    async def on_guild_update(self, before: nextcord.Guild, after: nextcord.Guild) -> None:
        """A new name, icon or owner."""
        await self._runs(after)

    @commands.Cog.listener()
    async def on_guild_role_update(self, before: nextcord.Role, after: nextcord.Role) -> None:
        """A role moved or got other permissions: who runs the guild and what may be granted can change."""
        await self._runs(after.guild)

    @commands.Cog.listener()
    async def on_guild_role_delete(self, role: nextcord.Role) -> None:
        """A role is gone."""
        await self._runs(role.guild)

    @commands.Cog.listener()
    async def on_member_join(self, member: nextcord.Member) -> None:
        """Somebody came (back)."""
        await self._tell(lambda db: guilds.member_joined(db, str(member.guild.id), member_facts(member)))

    @commands.Cog.listener()
    async def on_member_update(self, before: nextcord.Member, after: nextcord.Member) -> None:
        """Somebody's roles, name or screening changed."""
        if after.id == after.guild.me.id or self._power(before) != self._power(after):
            await self._runs(after.guild)
        await self._tell(lambda db: guilds.member_changed(db, str(after.guild.id), member_facts(after)))

    @commands.Cog.listener()
    async def on_raw_member_remove(self, payload: nextcord.RawMemberRemoveEvent) -> None:
        """Somebody left, whether or not the cache knew them."""
        await self._tell(lambda db: guilds.member_left(db, str(payload.guild_id), str(payload.user.id)))

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: nextcord.abc.GuildChannel) -> None:
        """A channel is gone; it may be the one for verification or for alerts."""
        await self._tell(lambda db: channels.gone(db, str(channel.guild.id), str(channel.id)))

    @staticmethod
    def _power(member: nextcord.Member) -> bool:
        return member.guild_permissions.administrator

    async def _seen(self, guild: nextcord.Guild) -> None:
        pause = FIRST_PAUSE
        while not self.bot.is_closed() and self.bot.get_guild(guild.id) is guild:
            try:
                await self._list(guild)
            except (nextcord.Forbidden, nextcord.NotFound) as fault:
                log.warning("the members of guild %s are not told: %s", guild.id, fault)
                return
            except Exception as fault:
                # Whatever the library makes of an answer that is none: without the list, nobody who came or left
                # meanwhile would be noticed.
                log.warning("the members of guild %s could not be read (%r), again in %.0f s", guild.id, fault, pause)
                log.debug("the reading failed so", exc_info=True)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                await self._tell(lambda db: guilds.seen(db, guild_facts(guild)))
                return

    async def _list(self, guild: nextcord.Guild) -> None:
        # Over REST, because the gateway answers one request for all members in 30 seconds, so a bot that restarts
        # quickly would wait in vain.
        listed = {member.id: member async for member in guild.fetch_members(limit=None)}
        if guild.me.id not in listed:
            raise ListIncomplete(f"the bot itself is not among {len(listed)} members")
        for member in listed.values():
            if guild.get_member(member.id) is None:
                # The library tells of changes only for members that it has in its cache, and has no public way in.
                guild._add_member(member)  # pyright: ignore[reportPrivateUsage]

    async def _runs(self, guild: nextcord.Guild) -> None:
        async def write(db: Any) -> None:
            facts = guild_facts(guild)
            await guilds.who_runs(db, facts)
            await guilds.check_roles(db, facts)

        await self._tell(write)

    async def _tell(self, write: Callable[[Any], Awaitable[None]]) -> None:
        """Pass one thing on when its turn comes, in a transaction of its own, as often as it takes."""
        async with self.turn:
            while True:
                try:
                    async with transaction() as db:
                        await write(db)
                except (OperationalError, InterfaceError, NoneFree) as fault:
                    log.warning("the database did not answer, the event waits: %s", getattr(fault, "orig", fault))
                    await asyncio.sleep(DATABASE_PAUSE)
                else:
                    return
