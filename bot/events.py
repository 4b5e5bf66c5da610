"""The cog that hears of guilds, members and roles, and passes each on as one use case."""

import asyncio
import logging

import nextcord
from nextcord.ext import commands

from bot.facts import guild_facts, member_facts
from models import transaction
from services import guilds

log = logging.getLogger("holdfast.bot")


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
        async with transaction() as db:
            await guilds.present(db, [str(guild.id) for guild in self.bot.guilds])
            await guilds.ready(db)
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
        async with self.turn, transaction() as db:
            await guilds.left(db, str(guild.id))

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
        async with self.turn, transaction() as db:
            await guilds.member_joined(db, str(member.guild.id), member_facts(member))

    @commands.Cog.listener()
    async def on_member_update(self, before: nextcord.Member, after: nextcord.Member) -> None:
        """Somebody's roles, name or screening changed."""
        if after.id == after.guild.me.id or self._power(before) != self._power(after):
            await self._runs(after.guild)
        async with self.turn, transaction() as db:
            await guilds.member_changed(db, str(after.guild.id), member_facts(after))

    @commands.Cog.listener()
    async def on_raw_member_remove(self, payload: nextcord.RawMemberRemoveEvent) -> None:
        """Somebody left, whether or not the cache knew them."""
        async with self.turn, transaction() as db:
            await guilds.member_left(db, str(payload.guild_id), str(payload.user.id))

    @staticmethod
    def _power(member: nextcord.Member) -> bool:
        return member.guild_permissions.administrator

    async def _seen(self, guild: nextcord.Guild) -> None:
        # Over REST, because the gateway answers one request for all members in 30 seconds, so a bot that restarts
        # quickly would wait in vain; and who is missing on the list counts as gone.
        async for member in guild.fetch_members(limit=None):
            if guild.get_member(member.id) is None:
                # The library tells of changes only for members that it has in its cache, and has no public way in.
                guild._add_member(member)  # pyright: ignore[reportPrivateUsage]
        async with self.turn, transaction() as db:
            await guilds.seen(db, guild_facts(guild))

    async def _runs(self, guild: nextcord.Guild) -> None:
        async with self.turn, transaction() as db:
            facts = guild_facts(guild)
            await guilds.who_runs(db, facts)
            await guilds.check_roles(db, facts)
