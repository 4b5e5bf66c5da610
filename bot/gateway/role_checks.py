"""Checks of a guild's roles and admins after they changed, once for all changes that arrive together."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import nextcord
from nextcord.ext import commands

from bot.gateway.conversions import guild_facts
from bot.gateway.guild_snapshot import guild_snapshot
from bot.gateway.guild_turns import GuildTurns
from gateways import gateways
from services.guilds.gateway import guild_snapshots
from services.triggers import gateway_events

QUIET, LONGEST_WAIT = 0.3, 2.0
"""Seconds without a change of roles before they are checked, and the longest delay of that: moving one role past 250
others is 250 events."""
ASKED_AGAIN = 30.0
"""Seconds until a guild is checked again if Discord did not say whether a role is gone."""


class RoleChecks:
    """The checks of all guilds. `members_known` returns whether Discord reports members to this session."""

    def __init__(self, bot: commands.AutoShardedBot, turns: GuildTurns, members_known: Callable[[], bool]) -> None:
        self._bot: commands.AutoShardedBot = bot
        self._turns: GuildTurns = turns
        self._members_known: Callable[[], bool] = members_known
        self._running: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that checks its roles once they stop changing."""
        self._changed_at: dict[int, float] = {}
        """By guild, when its roles last changed (loop time)."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that wait to check a guild, or check it."""
        return self._running.values()

    def changed(self, guild_id: int) -> None:
        """Check a guild's roles and admins once they stop changing."""
        self._changed_at[guild_id] = asyncio.get_running_loop().time()
        if guild_id not in self._running:
            self._running[guild_id] = asyncio.create_task(self._check_when_quiet(guild_id))

    async def _check_when_quiet(self, guild_id: int) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while guild_id in self._changed_at:
                latest = clock() + LONGEST_WAIT
                while (left := min(self._changed_at[guild_id] + QUIET, latest) - clock()) > 0:
                    await asyncio.sleep(left)
                # Later changes are checked again.
                del self._changed_at[guild_id]
                if (guild := self._bot.get_guild(guild_id)) is not None:
                    await self.check(guild)
        finally:
            del self._running[guild_id]

    async def check(self, guild: nextcord.Guild) -> None:
        """Store who runs the guild and which roles can be given."""
        if guild.unavailable:
            # Its roles may be incomplete. It is checked once it is available again.
            return
        gone = await gone_roles(self._turns, guild)
        if gone is None:
            asyncio.get_running_loop().call_later(ASKED_AGAIN, self._again, guild.id)

        async def write(db: Any) -> None:
            if self._bot.get_guild(guild.id) is not guild:
                # The bot was removed since, and that is written already.
                return
            facts = guild_facts(guild)
            await gateway_events.who_runs(db, facts, whole=self._members_known())
            await gateway_events.check_roles(db, facts, gone or ())
            await guild_snapshots.keep(db, str(guild.id), guild_snapshot(guild))

        await self._turns.store_in_turn(guild.id, write)

    def _again(self, guild_id: int) -> None:
        if not self._bot.is_closed():
            self.changed(guild_id)


async def gone_roles(turns: GuildTurns, guild: nextcord.Guild) -> Collection[str] | None:
    """Return the roles of rules that neither the library's cache has nor Discord shows when it is asked.

    Return None if Discord does not say. A session that is resumed learns of a new role after other events, and perhaps
    never. Meanwhile an admin may have made a rule for it, and members may have it.
    """
    facts = guild_facts(guild)
    missing = await turns.write(lambda db: gateway_events.missing_roles(db, facts))
    return await gateway_events.gone_roles(gateways(), facts.id, missing)
