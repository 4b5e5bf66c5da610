"""The cog that receives events of guilds, members and roles, and passes each to the services."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar

import nextcord
from nextcord.ext import commands
from sqlalchemy.exc import TimeoutError as NoneFree

from bot.conversions import guild_facts, member_facts
from bot.interaction.background import Busy
from gateways import gateways
from models import transaction
from services.guilds import channels, members, members_intent
from services.runtime.database_faults import is_the_databases, tell
from services.triggers import gateway_events

log = logging.getLogger("holdfast.bot")

DATABASE_PAUSE = 2.0
"""Pauses in seconds between attempts while the database does not answer, so that no event is lost."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Pauses in seconds between attempts to read a guild's members."""

LONGEST_REFUSED_PAUSE, REFUSED_APART = 300.0, 10.0
"""Seconds between tries where Discord refuses the list, and for which no other guild's is asked for either once it did
so in two: refusals are counted by address, and 10,000 in 10 minutes shut it out
(docs/facts.md#discord-invalid-requests)."""

LISTS_AT_ONCE, PART, PAGE = 4, 1_000, 1_000
"""Guilds whose members are read at the same time, members that one transaction writes, and those on one page."""

READY_WITHIN = 60.0
"""Seconds after which the bot counts as ready although some guild's members were not read yet."""

QUIET, LONGEST_WAIT = 0.3, 2.0
"""Seconds without a change of roles before they are judged, and how long that is put off at most: moving one role
past 250 others is 250 events."""

T = TypeVar("T")


class ListIncomplete(Exception):
    """Discord's list of a guild's members is incomplete."""


class Events(Busy):
    """Keeps the stored guilds up to date. No guild waits for another one."""

    def __init__(self, bot: commands.AutoShardedBot, *, told: bool = True) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.told: bool = told
        """Whether the session asked for the intent for members; without it the library cannot list them."""
        # The events of a guild run one after another. Each reads the cache when its turn comes, so the last one written
        # is the newest.
        self.turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.lists: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that reads its members."""
        self.room: asyncio.Semaphore = asyncio.Semaphore(LISTS_AT_ONCE)
        self.checks: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that judges its roles once they stop changing."""
        self.stirred: dict[int, float] = {}
        """By guild, when its roles last changed (loop time)."""
        self.refused: set[int] = set()
        """Guilds whose list Discord refused since it last gave one."""
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
        """Pass on every guild, and those that are gone: after a new session everything may have changed."""
        tried = [self._begin(guild) for guild in self.bot.guilds if not guild.unavailable]
        present = [str(guild.id) for guild in self.bot.guilds]
        await self._tell(0, lambda db: gateway_events.present(db, present))
        if tried:
            await asyncio.wait(tried, timeout=READY_WITHIN)
        await self._tell(0, gateway_events.ready)
        log.info("ready in %s guilds", len(self.bot.guilds))
        if users := members_intent.of_users(sum(guild.member_count or 0 for guild in self.bot.guilds)):
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
        """Pass on that the bot was removed (an outage is another event)."""
        await self._tell(guild.id, lambda db: gateway_events.left(db, str(guild.id)))

    @commands.Cog.listener()
    async def on_guild_update(self, before: nextcord.Guild, after: nextcord.Guild) -> None:
        """Pass on a new name, icon or owner."""
        self._changed(after.id)

    @commands.Cog.listener()
    async def on_guild_role_update(self, before: nextcord.Role, after: nextcord.Role) -> None:
        """Judge the guild after a role moved or changed: who runs it and which roles can be granted may differ."""
        self._changed(after.guild.id)

    @commands.Cog.listener()
    async def on_guild_role_delete(self, role: nextcord.Role) -> None:
        """Pass on that a role was deleted."""
        self._changed(role.guild.id)

    @commands.Cog.listener()
    async def on_member_join(self, member: nextcord.Member) -> None:
        """Pass on a member who joined or returned."""
        guild_id = member.guild.id
        await self._tell(guild_id, lambda db: gateway_events.member_joined(db, str(guild_id), member_facts(member)))

    @commands.Cog.listener()
    async def on_member_update(self, before: nextcord.Member, after: nextcord.Member) -> None:
        """Pass on a member's new roles, name or screening."""
        if after.id == after.guild.me.id or self._power(before) != self._power(after):
            self._changed(after.guild.id)
        guild_id = after.guild.id
        await self._tell(guild_id, lambda db: gateway_events.member_changed(db, str(guild_id), member_facts(after)))

    @commands.Cog.listener()
    async def on_raw_member_remove(self, payload: nextcord.RawMemberRemoveEvent) -> None:
        """Pass on that a member left, in the cache or not."""
        guild_id, user_id = payload.guild_id, payload.user.id
        await self._tell(guild_id, lambda db: gateway_events.member_left(db, str(guild_id), str(user_id)))

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: nextcord.abc.GuildChannel) -> None:
        """Pass on that a channel was deleted; it may be the one for verification or for alerts."""
        guild_id = channel.guild.id
        await self._tell(guild_id, lambda db: channels.gone(db, str(guild_id), str(channel.id)))

    def list_again(self, guild: nextcord.Guild) -> None:
        """Read a guild's members again, until Discord returns the list."""
        self._begin(guild)

    @staticmethod
    def _power(member: nextcord.Member) -> bool:
        return member.guild_permissions.administrator

    def _begin(self, guild: nextcord.Guild) -> asyncio.Future[None]:
        """Start to read a guild's members in place of a running read; the future is done after the first attempt."""
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
            log.error("passing guild %s on failed", guild_id, exc_info=fault)

    async def _seen(self, guild: nextcord.Guild, tried: asyncio.Future[None]) -> None:
        pause = FIRST_PAUSE
        await self._tell(guild.id, lambda db: gateway_events.seen(db, guild_facts(guild)))
        if not self.told:
            await self._judge(guild)
            return
        while not self.bot.is_closed() and self.bot.get_guild(guild.id) is guild:
            try:
                async with self.room:
                    await self._room_for_refusals()
                    await self._list(guild)
            except Exception as fault:
                # Any error that the library raises for a broken answer: without the list, joins and leaves during the
                # outage would go unnoticed.
                log.warning("the members of guild %s could not be read (%r), again in %.0f s", guild.id, fault, pause)
                log.debug("reading members failed", exc_info=True)
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
        """Find out whether the whole application is refused lists, which its operator can fix, and log that once.

        Once it is not any more, the members of every guild are listed again.
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
        """Wait while several guilds refuse their lists, because the next one would probably refuse too."""
        clock = asyncio.get_running_loop().time
        while (wait := max(self.refused_at + REFUSED_APART - clock() if len(self.refused) > 1 else 0.0,
                           gateways().discord.refusals.pause())) > 0:  # fmt: skip
            await asyncio.sleep(min(wait, REFUSED_APART))

    async def _list(self, guild: nextcord.Guild) -> None:
        # Over REST: the gateway answers one request for all members in 30 seconds, so a bot that restarts quickly would
        # get no answer.
        began = await self._tell(guild.id, gateway_events.list_begins)
        had = {member.id: _version(member) for member in guild.members}
        try:
            listed = {member.id: member async for member in guild.fetch_members(limit=None)}
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
        if guild.me.id not in listed:
            raise ListIncomplete(f"the bot itself is not among {len(listed)} members")
        for member in listed.values():
            cached = guild.get_member(member.id)
            # The library reports changes only of members in its cache, and has no public way to add one. Members whom
            # it received while the list was read are newer than the list; all others may be older than an outage.
            if cached is member or (cached is None) is (member.id in had):
                continue
            if cached is None or _version(cached) is had[member.id]:
                guild._add_member(member)  # pyright: ignore[reportPrivateUsage]
        ids = list(listed)
        # In short transactions, with the guild's own events between them.
        for start in range(0, len(ids), PART):
            part = ids[start : start + PART]
            await self._tell(guild.id, lambda db, part=part: self._write_part(db, guild, part))
        while await self._tell(guild.id, lambda db: gateway_events.list_ended(db, str(guild.id), began)):
            pass
        await self._judge(guild)

    async def _list_readable(self, guild: nextcord.Guild) -> dict[int, nextcord.Member]:
        """Return the members whom the library can read, and pass on the others as our own client reads them.

        Raises what the library does where a page itself is no list, and ProviderUnavailable.
        """
        found: dict[int, nextcord.Member] = {}
        after = 0
        while page := await self.bot.http.get_members(guild.id, PAGE, after):
            for data in page:
                after = max(after, int(data["user"]["id"]))
                try:
                    found[after] = nextcord.Member(data=data, guild=guild, state=guild._state)  # pyright: ignore[reportPrivateUsage]
                except Exception as fault:  # noqa: BLE001  the library names none
                    log.warning("member %s of guild %s could not be read (%r)", after, guild.id, fault)
                    await self.read_member(guild.id, after)
            if len(page) < PAGE:
                break
        return found

    async def read_member(self, guild_id: int, user_id: int) -> None:
        """Ask Discord for a member and pass on the answer, while the guild's events, which are newer, wait.

        Raises ProviderUnavailable.
        """
        guild, user = str(guild_id), str(user_id)
        async with self.turns[guild_id]:
            facts = await members.live(gateways(), guild, user)
            if facts is None:
                await self.write(lambda db: gateway_events.member_left(db, guild, user))
            else:
                await self.write(lambda db: gateway_events.member_read(db, guild, facts))

    async def _write_part(self, db: Any, guild: nextcord.Guild, ids: Sequence[int]) -> None:
        found = [member for one in ids if (member := guild.get_member(one)) is not None]
        await gateway_events.listed(db, str(guild.id), [member_facts(member) for member in found])

    def _changed(self, guild_id: int) -> None:
        """Judge a guild's roles and who runs it, once for all changes that arrive together."""
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
                if not (isinstance(fault, NoneFree) or is_the_databases(fault)):
                    raise
                tell(log, fault, "the event waits")
                await asyncio.sleep(DATABASE_PAUSE)


def _version(member: nextcord.Member) -> object:
    """Return an object that is replaced at each change of the member."""
    return getattr(member, "_roles", None)
