"""The lists of guilds' members, read over REST until Discord returns them, and single members read beside them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import nextcord
from nextcord.ext import commands

from bot.gateway.conversions import admin_roles, guild_facts, member_facts
from bot.gateway.guild_snapshot import guild_snapshot
from bot.gateway.guild_turns import GuildTurns
from bot.gateway.role_checks import gone_roles
from gateways import gateways
from services.guilds import members, members_intent
from services.guilds.gateway import guild_snapshots, known_people
from services.guilds.gateway.known_people import ReportedMember
from services.guilds.members import MemberFacts, UnreadableMember
from services.triggers import gateway_events

log = logging.getLogger(f"holdfast.{__name__}")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Pauses in seconds between attempts to read a guild's members."""

LONGEST_REFUSED_PAUSE, REFUSED_APART = 300.0, 10.0
"""The longest pause in seconds before a guild's refused list is tried again, and the pause before any other list while
the lists of two or more guilds are refused. Discord counts refusals by IP address, and blocks an address after 10,000
in 10 minutes (docs/facts.md#discord-invalid-requests)."""

LISTS_AT_ONCE, PART, PAGE = 4, 1_000, 1_000
"""Guilds whose members are read at the same time, members that one transaction writes, and members on one page."""


class ListIncomplete(Exception):
    """Discord's list of a guild's members is incomplete."""


class MemberLists:
    """The reader of guilds' members. `then` runs for a guild after its list, or after it was passed on without one."""

    def __init__(
        self,
        bot: commands.AutoShardedBot,
        turns: GuildTurns,
        then: Callable[[nextcord.Guild], Awaitable[None]],
        *,
        has_intent: bool,
    ) -> None:
        self._bot: commands.AutoShardedBot = bot
        self._turns: GuildTurns = turns
        self._then: Callable[[nextcord.Guild], Awaitable[None]] = then
        self.has_intent: bool = has_intent
        """Whether the session asked for the Members intent; without it the library cannot list members."""
        self.are_reported: bool = has_intent
        """Whether Discord lists members and reports changes to them: both the session and the application have the
        intent."""
        self.running: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that reads its members."""
        self._room: asyncio.Semaphore = asyncio.Semaphore(LISTS_AT_ONCE)
        self._changed: dict[int, set[str]] = {}
        """By guild whose members are being read, the members who changed meanwhile: their entries may be outdated."""
        self._refused: set[int] = set()
        """Guilds whose list Discord has refused since it last returned any list."""
        self._refused_at: float = 0.0
        """When Discord last refused a list (loop time)."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that read members."""
        return self.running.values()

    def waiting(self) -> Collection[int]:
        """Return the guilds whose members are being read.

        A guild whose list Discord refuses is not among them: the database knows that its list has to be read.
        """
        return self.running.keys() - self._refused

    def changed(self, guild_id: int, user_id: int) -> None:
        """Note that a member changed, so that a list that is being read does not overwrite the change."""
        if (changed := self._changed.get(guild_id)) is not None:
            changed.add(str(user_id))

    def begin(self, guild: nextcord.Guild) -> asyncio.Future[None]:
        """Start to read a guild's members, and cancel a running read; the future is done after the first attempt."""
        if (before := self.running.pop(guild.id, None)) is not None:
            before.cancel()
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._pass_on(guild, tried))
        self.running[guild.id] = task
        task.add_done_callback(lambda done: self._ended(guild.id, done, tried))
        return tried

    def _ended(self, guild_id: int, task: asyncio.Task[None], tried: asyncio.Future[None]) -> None:
        if self.running.get(guild_id) is task:
            del self.running[guild_id]
        if not tried.done():
            tried.set_result(None)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("guild event failed guild=%s", guild_id, exc_info=fault)

    async def _pass_on(self, guild: nextcord.Guild, tried: asyncio.Future[None]) -> None:
        """Store the guild, then its members, and try again until Discord returns their list."""
        pause = FIRST_PAUSE

        gone = await gone_roles(self._turns, guild)

        async def available(db: Any) -> None:
            if self._bot.get_guild(guild.id) is not guild:
                # The bot was removed since, and that is written already.
                return
            await gateway_events.guild_available(db, guild_facts(guild), gone or ())
            await guild_snapshots.keep(db, str(guild.id), guild_snapshot(guild))

        await self._turns.write_in_turn(guild.id, available)
        if not self.has_intent:
            await self._then(guild)
            return
        while not self._bot.is_closed() and self._bot.get_guild(guild.id) is guild:
            try:
                async with self._room:
                    await self._room_for_refusals()
                    await self._list(guild)
            except Exception as fault:
                # The library may raise any error for a broken answer. Without the list, joins and leaves during the
                # outage would go unnoticed.
                log.warning("members not read guild=%s reason=%r retry_seconds=%.0f", guild.id, fault, pause)
                log.debug("members not read", exc_info=True)
                if not tried.done():
                    tried.set_result(None)
                await asyncio.sleep(pause)
                refused = isinstance(fault, nextcord.Forbidden | nextcord.NotFound)
                pause = min(2 * pause, LONGEST_REFUSED_PAUSE if refused else LONGEST_PAUSE)
            else:
                self._refused.clear()
                self.are_reported = True
                return

    async def check_intent(self) -> None:
        """Check whether Discord refuses lists to the whole application, which its operator can fix, and log that once.

        Once Discord allows lists again, the members of every guild are listed again.
        """
        is_off = await members_intent.is_off(gateways())
        if is_off is None or self.are_reported == (not is_off):
            return
        self.are_reported = not is_off
        if is_off:
            log.critical("%s", members_intent.NOT_TOLD)
            return
        for guild in self._bot.guilds:
            self.begin(guild)

    async def _room_for_refusals(self) -> None:
        """Wait while the lists of several guilds are refused, because the next one would probably be refused too."""
        clock = asyncio.get_running_loop().time
        while (wait := max(self._refused_at + REFUSED_APART - clock() if len(self._refused) > 1 else 0.0,
                           gateways().discord.refusals.pause())) > 0:  # fmt: skip
            await asyncio.sleep(min(wait, REFUSED_APART))

    async def _list(self, guild: nextcord.Guild) -> None:
        # Over REST: the gateway answers one request for all members in 30 seconds, so a bot that restarts quickly would
        # get no answer.
        name = str(guild.id)
        began = await self._turns.write_in_turn(guild.id, lambda db: gateway_events.list_begins(db, name))
        changed = self._changed[guild.id] = set[str]()
        try:
            listed = await self._list_parts(guild)
        except (nextcord.Forbidden, nextcord.NotFound) as fault:
            self._refused.add(guild.id)
            self._refused_at = asyncio.get_running_loop().time()
            if isinstance(fault, nextcord.Forbidden):
                gateways().discord.refusals.add()
                await self.check_intent()
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            # The library cannot read this member; all others are still read.
            listed = await self._list_readable(guild)
        finally:
            # A replaced read ends after the read that replaces it has begun.
            if self._changed.get(guild.id) is changed:
                del self._changed[guild.id]
        if not listed:
            raise ListIncomplete("the bot itself is not among the members")
        while await self._turns.write_in_turn(guild.id, lambda db: gateway_events.list_ended(db, name, began)):
            pass
        await self._then(guild)

    async def _list_parts(self, guild: nextcord.Guild) -> bool:
        """Pass the members on as the list arrives, and return whether the bot itself is on it."""
        here, part = False, list[MemberFacts]()
        async for member in guild.fetch_members(limit=None):
            here = here or member.id == guild.me.id
            part.append(member_facts(member))
            if len(part) == PART:
                await self._write_part(guild.id, part)
                part = []
        await self._write_part(guild.id, part)
        return here

    async def _list_readable(self, guild: nextcord.Guild) -> bool:
        """Do the same from raw pages, and read each member separately whose entry on the list is unreadable.

        Raises the library's errors for a page that is not a list, and ProviderUnavailable.
        """
        here, after = False, 0
        while page := await self._bot.http.get_members(guild.id, PAGE, after):
            part: list[MemberFacts] = []
            for data in page:
                after = max(after, user_id := int(data["user"]["id"]))
                here = here or user_id == guild.me.id
                try:
                    part.append(members.facts_of(data, str(user_id)))
                except UnreadableMember as fault:
                    log.warning("member could not be read member=%s guild=%s reason=%r", user_id, guild.id, fault)
                    await self.read_member(guild.id, user_id)
            await self._write_part(guild.id, part)
            if len(page) < PAGE:
                break
        return here

    async def read_member(self, guild_id: int, user_id: int) -> None:
        """Read a member from Discord and pass on the answer, while the guild's newer events wait.

        Raises ProviderUnavailable.
        """
        guild, user = str(guild_id), str(user_id)
        async with self._turns.of(guild_id):
            facts = await members.read_from_discord(gateways(), guild, user)
            asked = [ReportedMember(guild, user, facts.roles if facts is not None else ())]
            if await self._turns.write(lambda db: known_people.strangers(db, asked)):
                return
            if facts is None:
                await self._turns.store(guild_id, lambda db: gateway_events.member_left(db, guild, user))
            else:
                await self._turns.store(guild_id, lambda db: gateway_events.member_read(db, guild, facts))

    async def _write_part(self, guild_id: int, part: Sequence[MemberFacts]) -> None:
        """Store a part in its own transaction, with the guild's own events between the parts. Raises ListIncomplete."""

        async def write(db: Any) -> None:
            changed = self._changed.get(guild_id, ())
            guild = self._bot.get_guild(guild_id)
            admins = frozenset[str]() if guild is None else admin_roles(guild)
            unchanged = [one for one in part if one.discord_id not in changed]
            await gateway_events.listed(db, str(guild_id), unchanged, admins)

        if not await self._turns.store_in_turn(guild_id, write):
            # Those on the page must not count as missing from the list.
            raise ListIncomplete("another process reads the members by now")
