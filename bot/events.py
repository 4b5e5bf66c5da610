"""The cog that receives events of guilds, members and roles, and passes each to the services."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar

import nextcord
from nextcord.ext import commands

from bot.conversions import admin_roles, guild_facts, member_facts
from bot.gateway.guild_snapshot import guild_snapshot
from bot.gateway.member_reports import MemberReport, MemberReports
from bot.interaction.background import BackgroundCog
from gateways import gateways
from models import transaction
from services.guilds import channels, members, members_intent
from services.guilds.gateway import guild_snapshots, known_people
from services.guilds.gateway.known_people import ReportedMember
from services.guilds.gateway.shards import shard_of
from services.guilds.members import MemberFacts, UnreadableMember
from services.runtime.database_faults import is_the_databases, log_fault
from services.triggers import gateway_events

log = logging.getLogger(f"holdfast.{__name__}")

DATABASE_PAUSE = 2.0
"""Seconds between attempts while the database does not answer, so that no event is lost."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Pauses in seconds between attempts to read a guild's members."""

LONGEST_REFUSED_PAUSE, REFUSED_APART = 300.0, 10.0
"""The longest pause in seconds before a guild's refused list is tried again, and the pause before any other list while
the lists of two or more guilds are refused. Discord counts refusals by IP address, and blocks an address after 10,000
in 10 minutes (docs/facts.md#discord-invalid-requests)."""

LISTS_AT_ONCE, PART, PAGE = 4, 1_000, 1_000
"""Guilds whose members are read at the same time, members that one transaction writes, and members on one page."""

READY_WITHIN = 60.0
"""Seconds after which the bot counts as ready although some guilds' members were not read yet."""

QUIET, LONGEST_WAIT = 0.3, 2.0
"""Seconds without a change of roles before they are judged, and the longest delay of that: moving one role past 250
others is 250 events."""

T = TypeVar("T")


class ListIncomplete(Exception):
    """Discord's list of a guild's members is incomplete."""


class Events(BackgroundCog):
    """The cog that keeps the stored guilds up to date. No guild waits for another one."""

    def __init__(self, bot: commands.AutoShardedBot, *, told: bool = True) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.told: bool = told
        """Whether the session asked for the Members intent; without it the library cannot list members."""
        # The events of a guild run one after another. Each reads the cache when its turn comes, so the last one written
        # is the newest.
        self.turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.lists: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that reads its members."""
        self.room: asyncio.Semaphore = asyncio.Semaphore(LISTS_AT_ONCE)
        self.reports: MemberReports = MemberReports(self.turns, self.write, self._report)
        self.touched: dict[int, set[str]] = {}
        """By guild whose members are being read, the members who changed meanwhile: their entries may be outdated."""
        self.checks: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that judges its roles once they stop changing."""
        self.stirred: dict[int, float] = {}
        """By guild, when its roles last changed (loop time)."""
        self.refused: set[int] = set()
        """Guilds whose list Discord has refused since it last returned any list."""
        self.opened: set[int] | None = None
        """The shards with a new session whose guilds are still to be passed on; None means all shards."""
        self.refused_at: float = 0.0
        """When Discord last refused a list (loop time)."""
        self.untold: bool = not told
        """Whether Discord lists no members and reports no changes to them: the session or the application lacks the
        intent."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that read members and judge roles."""
        return (*self.lists.values(), *self.checks.values())

    @commands.Cog.listener()
    async def on_ready(self) -> None:
        """Pass on every guild of a new session, and the guilds that are gone, because everything may have changed.

        A resumed session has missed nothing.
        """
        count = self.bot.shard_count or 1
        numbers = list(range(count)) if self.opened is None else sorted(self.opened)
        guilds = [guild for guild in self.bot.guilds if shard_of(guild.id, count) in numbers]
        tried = [self._begin(guild) for guild in guilds if not guild.unavailable]
        if self.opened is not None:
            self.opened.difference_update(numbers)
        present = [str(guild.id) for guild in guilds]
        await self._tell(0, lambda db: gateway_events.left_others(db, present, numbers, count))
        if tried:
            await asyncio.wait(tried, timeout=READY_WITHIN)
        await self._tell(0, gateway_events.ready)
        log.info("ready guilds=%s", len(self.bot.guilds))
        if users := members_intent.review_warning(sum(guild.member_count or 0 for guild in self.bot.guilds)):
            log.warning("%s", users)

    @commands.Cog.listener()
    async def on_guild_join(self, guild: nextcord.Guild) -> None:
        """Pass on a new guild."""
        self._begin(guild)

    @commands.Cog.listener()
    async def on_guild_available(self, guild: nextcord.Guild) -> None:
        """Pass on a guild after an outage."""
        if self.bot.is_ready():
            self._begin(guild)

    @commands.Cog.listener()
    async def on_guild_remove(self, guild: nextcord.Guild) -> None:
        """Pass on that the bot was removed from a guild (an outage is another event)."""
        await self._tell(guild.id, lambda db: gateway_events.left(db, str(guild.id)))

    @commands.Cog.listener()
    async def on_guild_update(self, before: nextcord.Guild, after: nextcord.Guild) -> None:
        """Pass on a new name, icon or owner."""
        self._changed(after.id)

    @commands.Cog.listener()
    async def on_guild_role_create(self, role: nextcord.Role) -> None:
        """Keep the guild's snapshot with its new role."""
        self._changed(role.guild.id)

    @commands.Cog.listener()
    async def on_guild_role_update(self, before: nextcord.Role, after: nextcord.Role) -> None:
        """Judge the guild after a role moved or changed, because its admins and grantable roles may differ now."""
        self._changed(after.guild.id)

    @commands.Cog.listener()
    async def on_guild_role_delete(self, role: nextcord.Role) -> None:
        """Pass on that a role was deleted."""
        self._changed(role.guild.id)

    @commands.Cog.listener()
    async def on_member_told(self, guild_id: int, user_id: int, facts: MemberFacts | None, joined: bool) -> None:
        """Pass on that a member joined, changed or left (no facts)."""
        if (touched := self.touched.get(guild_id)) is not None:
            touched.add(str(user_id))
        place = self.bot.get_guild(guild_id)
        if place is not None and user_id == place.me.id:
            self._changed(guild_id)
        is_admin = place is not None and facts is not None and bool(admin_roles(place) & facts.roles)
        await self.reports.add(guild_id, MemberReport(str(user_id), facts, joined, is_admin))

    async def _report(self, guild_id: int, report: MemberReport) -> None:
        """Store one event about a person we know; the caller holds the guild's turn."""
        guild, facts = str(guild_id), report.facts
        if facts is None:
            await self.write(lambda db: gateway_events.member_left(db, guild, report.discord_id))
        elif report.joined:
            await self.write(lambda db: gateway_events.member_joined(db, guild, facts))
        else:
            place = self.bot.get_guild(guild_id)
            mighty = None if place is None else admin_roles(place)
            await self.write(lambda db: gateway_events.member_changed(db, guild, facts, mighty))

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: nextcord.abc.GuildChannel) -> None:
        """Pass on that a channel was deleted; it may be the one for verification or for alerts."""
        guild_id = channel.guild.id
        await self._tell(guild_id, lambda db: channels.gone(db, str(guild_id), str(channel.id)))

    def is_busy(self, number: int) -> bool:
        """Return whether guilds of this shard are still to be passed on, or their members are being read.

        A guild whose list Discord refuses does not count: the database knows that its list has to be read.
        """
        count = self.bot.shard_count or 1
        waits = self.opened is not None and number in self.opened
        return waits or any(shard_of(guild_id, count) == number for guild_id in self.lists.keys() - self.refused)

    def list_again(self, guild: nextcord.Guild) -> None:
        """Read a guild's members again, until Discord returns the list."""
        self._begin(guild)

    def _begin(self, guild: nextcord.Guild) -> asyncio.Future[None]:
        """Start to read a guild's members, and cancel a running read; the future is done after the first attempt."""
        if (before := self.lists.pop(guild.id, None)) is not None:
            before.cancel()
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._seen(guild, tried))
        self.lists[guild.id] = task
        task.add_done_callback(lambda done: self._list_over(guild.id, done, tried))
        return tried

    def _list_over(self, guild_id: int, task: asyncio.Task[None], tried: asyncio.Future[None]) -> None:
        if self.lists.get(guild_id) is task:
            del self.lists[guild_id]
        if not tried.done():
            tried.set_result(None)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("guild event failed guild=%s", guild_id, exc_info=fault)

    async def _seen(self, guild: nextcord.Guild, tried: asyncio.Future[None]) -> None:
        pause = FIRST_PAUSE

        async def seen(db: Any) -> None:
            await gateway_events.guild_available(db, guild_facts(guild))
            await guild_snapshots.keep(db, str(guild.id), guild_snapshot(guild))

        await self._tell(guild.id, seen)
        if not self.told:
            await self._judge(guild)
            return
        while not self.bot.is_closed() and self.bot.get_guild(guild.id) is guild:
            try:
                async with self.room:
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
                self.refused.clear()
                self.untold = False
                return

    async def look_at_the_switch(self) -> None:
        """Check whether Discord refuses lists to the whole application, which its operator can fix, and log that once.

        Once Discord allows lists again, the members of every guild are listed again.
        """
        if (is_off := await members_intent.is_off(gateways())) is None or is_off is self.untold:
            return
        self.untold = is_off
        if is_off:
            log.critical("%s", members_intent.NOT_TOLD)
            return
        for guild in self.bot.guilds:
            self.list_again(guild)

    async def _room_for_refusals(self) -> None:
        """Wait while the lists of several guilds are refused, because the next one would probably be refused too."""
        clock = asyncio.get_running_loop().time
        while (wait := max(self.refused_at + REFUSED_APART - clock() if len(self.refused) > 1 else 0.0,
                           gateways().discord.refusals.pause())) > 0:  # fmt: skip
            await asyncio.sleep(min(wait, REFUSED_APART))

    async def _list(self, guild: nextcord.Guild) -> None:
        # Over REST: the gateway answers one request for all members in 30 seconds, so a bot that restarts quickly would
        # get no answer.
        began = await self._tell(guild.id, lambda db: gateway_events.list_begins(db, str(guild.id)))
        touched = self.touched[guild.id] = set[str]()
        try:
            listed = await self._list_parts(guild)
        except (nextcord.Forbidden, nextcord.NotFound) as fault:
            self.refused.add(guild.id)
            self.refused_at = asyncio.get_running_loop().time()
            if isinstance(fault, nextcord.Forbidden):
                gateways().discord.refusals.add()
                await self.look_at_the_switch()
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            # The library cannot read this member; all others are still read.
            listed = await self._list_readable(guild)
        finally:
            # A replaced read ends after the read that replaces it has begun.
            if self.touched.get(guild.id) is touched:
                del self.touched[guild.id]
        if not listed:
            raise ListIncomplete("the bot itself is not among the members")
        while await self._tell(guild.id, lambda db: gateway_events.list_ended(db, str(guild.id), began)):
            pass
        await self._judge(guild)

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
        while page := await self.bot.http.get_members(guild.id, PAGE, after):
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
        async with self.turns[guild_id]:
            facts = await members.read_from_discord(gateways(), guild, user)
            asked = [ReportedMember(guild, user, facts.roles if facts is not None else ())]
            if await self.write(lambda db: known_people.strangers(db, asked)):
                return
            if facts is None:
                await self.write(lambda db: gateway_events.member_left(db, guild, user))
            else:
                await self.write(lambda db: gateway_events.member_read(db, guild, facts))

    async def _write_part(self, guild_id: int, part: Sequence[MemberFacts]) -> None:
        """Store a part in its own transaction, with the guild's own events between the parts."""

        async def write(db: Any) -> None:
            touched = self.touched.get(guild_id, ())
            place = self.bot.get_guild(guild_id)
            mighty = frozenset[str]() if place is None else admin_roles(place)
            untouched = [one for one in part if one.discord_id not in touched]
            await gateway_events.listed(db, str(guild_id), untouched, mighty)

        await self._tell(guild_id, write)

    def _changed(self, guild_id: int) -> None:
        """Judge a guild's roles and admins, once for all changes that arrive together."""
        self.stirred[guild_id] = asyncio.get_running_loop().time()
        if guild_id not in self.checks:
            self.checks[guild_id] = asyncio.create_task(self._judge_when_quiet(guild_id))

    async def _judge_when_quiet(self, guild_id: int) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while guild_id in self.stirred:
                latest = clock() + LONGEST_WAIT
                while (left := min(self.stirred[guild_id] + QUIET, latest) - clock()) > 0:
                    await asyncio.sleep(left)
                # Later changes are judged again.
                del self.stirred[guild_id]
                if (guild := self.bot.get_guild(guild_id)) is not None:
                    await self._judge(guild)
        finally:
            del self.checks[guild_id]

    async def _judge(self, guild: nextcord.Guild) -> None:
        if guild.unavailable:
            # Its roles may be incomplete. It is judged once it is available again.
            return

        async def write(db: Any) -> None:
            facts = guild_facts(guild)
            await gateway_events.who_runs(db, facts, whole=not self.untold)
            await gateway_events.check_roles(db, facts)
            await guild_snapshots.keep(db, str(guild.id), guild_snapshot(guild))

        await self._tell(guild.id, write)

    async def _tell(self, guild_id: int, write: Callable[[Any], Awaitable[T]]) -> T:
        """Pass on one event when the guild's turn comes."""
        async with self.turns[guild_id]:
            return await self.write(write)

    async def write(self, write: Callable[[Any], Awaitable[T]]) -> T:
        """Pass on one event in its own transaction, and retry until it succeeds; the caller holds the guild's turn."""
        while True:
            try:
                async with transaction() as db:
                    return await write(db)
            except Exception as fault:
                if not is_the_databases(fault):
                    raise
                log_fault(log, fault, "the event waits")
                await asyncio.sleep(DATABASE_PAUSE)
