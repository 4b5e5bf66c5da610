"""The cog that receives events of guilds, members and roles, and passes each to the services."""

import asyncio
import logging
from collections.abc import Collection

import nextcord
from nextcord.ext import commands

from bot.gateway.conversions import admin_roles
from bot.gateway.guild_turns import GuildTurns
from bot.gateway.member_events import MemberEvent, MemberEvents
from bot.gateway.member_lists import MemberLists
from bot.gateway.role_checks import RoleChecks
from bot.interaction.background import BackgroundCog
from services.guilds import members_intent, verification_channel
from services.guilds.gateway.shards import shard_of
from services.guilds.members import MemberFacts
from services.triggers import gateway_events

log = logging.getLogger(f"holdfast.{__name__}")

READY_WITHIN = 60.0
"""Seconds after which the bot counts as ready although some guilds' members were not read yet."""


class Events(BackgroundCog):
    """The cog that keeps the stored guilds up to date. No guild waits for another one.

    `has_intent` says whether the session asked for the Members intent.
    """

    def __init__(self, bot: commands.AutoShardedBot, *, has_intent: bool = True) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.turns: GuildTurns = GuildTurns()
        self.checks: RoleChecks = RoleChecks(bot, self.turns, lambda: self.lists.are_reported)
        self.lists: MemberLists = MemberLists(bot, self.turns, self.checks.check, has_intent=has_intent)
        self.member_events: MemberEvents = MemberEvents(self.turns, self._store_event)
        self.opened: set[int] | None = None
        """The shards with a new session whose guilds are still to be passed on; None means all shards."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that read members and check roles."""
        return (*self.lists.tasks(), *self.checks.tasks())

    @commands.Cog.listener()
    async def on_ready(self) -> None:
        """Pass on every guild of a new session, and the guilds that are gone, because everything may have changed.

        A resumed session has missed nothing.
        """
        count = self.bot.shard_count or 1
        numbers = list(range(count)) if self.opened is None else sorted(self.opened)

        def present() -> list[nextcord.Guild]:
            return [guild for guild in self.bot.guilds if shard_of(guild.id, count) in numbers]

        tried = [self.lists.begin(guild) for guild in present() if not guild.unavailable]
        if self.opened is not None:
            self.opened.difference_update(numbers)
        await self.turns.write_in_turn(
            0, lambda db: gateway_events.left_others(db, lambda: {str(guild.id) for guild in present()}, numbers, count)
        )
        if tried:
            await asyncio.wait(tried, timeout=READY_WITHIN)
        await self.turns.write_in_turn(0, gateway_events.ready)
        log.info("ready guilds=%s", len(self.bot.guilds))
        if users := members_intent.review_warning(sum(guild.member_count or 0 for guild in self.bot.guilds)):
            log.warning("%s", users)

    @commands.Cog.listener()
    async def on_guild_join(self, guild: nextcord.Guild) -> None:
        """Pass on a new guild."""
        self.lists.begin(guild)

    @commands.Cog.listener()
    async def on_guild_available(self, guild: nextcord.Guild) -> None:
        """Pass on a guild after an outage."""
        if self.bot.is_ready():
            self.lists.begin(guild)

    @commands.Cog.listener()
    async def on_guild_remove(self, guild: nextcord.Guild) -> None:
        """Pass on that the bot was removed from a guild (an outage is another event)."""
        await self.turns.store_in_turn(guild.id, lambda db: gateway_events.left(db, str(guild.id)))

    @commands.Cog.listener()
    async def on_guild_update(self, before: nextcord.Guild, after: nextcord.Guild) -> None:
        """Pass on a new name, icon or owner."""
        self.checks.changed(after.id)

    @commands.Cog.listener()
    async def on_guild_role_update(self, before: nextcord.Role, after: nextcord.Role) -> None:
        """Check the guild after a role moved or changed, because its admins and grantable roles may differ now."""
        self.checks.changed(after.guild.id)

    @commands.Cog.listener("on_guild_role_create")
    @commands.Cog.listener("on_guild_role_delete")
    async def on_other_roles(self, role: nextcord.Role) -> None:
        """Pass on that there is another role or one less, which the guild's snapshot has to show."""
        self.checks.changed(role.guild.id)

    @commands.Cog.listener()
    async def on_member_told(self, guild_id: int, user_id: int, facts: MemberFacts | None, joined: bool) -> None:
        """Pass on that a member joined, changed or left (no facts)."""
        self.lists.changed(guild_id, user_id)
        guild = self.bot.get_guild(guild_id)
        if guild is not None and user_id == guild.me.id:
            self.checks.changed(guild_id)
        is_admin = guild is not None and facts is not None and bool(admin_roles(guild) & facts.roles)
        await self.member_events.add(guild_id, MemberEvent(str(user_id), facts, joined, is_admin))

    async def _store_event(self, guild_id: int, event: MemberEvent) -> None:
        """Store one event about a person we know; the caller holds the guild's turn."""
        guild, facts = str(guild_id), event.facts
        if facts is None:
            await self.turns.store(guild_id, lambda db: gateway_events.member_left(db, guild, event.discord_id))
        elif event.joined:
            await self.turns.store(guild_id, lambda db: gateway_events.member_joined(db, guild, facts))
        else:
            place = self.bot.get_guild(guild_id)
            admins = None if place is None else admin_roles(place)
            await self.turns.store(guild_id, lambda db: gateway_events.member_changed(db, guild, facts, admins))

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: nextcord.abc.GuildChannel) -> None:
        """Pass on that a channel was deleted; it may be the one for verification or for alerts."""
        guild_id = channel.guild.id
        await self.turns.write_in_turn(
            guild_id, lambda db: verification_channel.gone(db, str(guild_id), str(channel.id))
        )

    def is_busy(self, number: int) -> bool:
        """Return whether guilds of this shard are still to be passed on, or their members are being read.

        A guild whose list Discord refuses does not count: the database knows that its list has to be read.
        """
        count = self.bot.shard_count or 1
        waits = self.opened is not None and number in self.opened
        return waits or any(shard_of(guild_id, count) == number for guild_id in self.lists.waiting())
