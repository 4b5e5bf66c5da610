"""The cog that reads known people one by one: all if Discord reports no members, otherwise who is new or left."""

import asyncio
import itertools
import logging
from collections.abc import Collection
from datetime import datetime

import nextcord
from nextcord.ext import commands
from sqlalchemy.exc import SQLAlchemyError

from bot.gateway.conversions import member_facts
from bot.gateway.guild_turns import GuildTurns
from bot.gateway.member_lists import MemberLists
from bot.gateway.shard_keeper import ShardKeeper
from bot.interaction import unstored_members
from bot.interaction.background import BackgroundCog
from bot.interaction.delivery import Interaction
from gateways import gateways
from models import transaction
from services.core.errors import ProviderUnavailable
from services.guilds import members_intent
from services.guilds.gateway import known_people
from services.runtime.database_faults import log_fault
from services.runtime.retries import run_forever
from services.triggers import gateway_events, member_rereads
from services.triggers.member_rereads import KnownMember
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 30.0
"""Seconds between two searches for people to read, and the longer pause in a sweep after a search that found nobody,
because a search can go through all stored members."""
AT_ONCE, MOST = 4, 500
"""People who are read at the same time, and the most people that one search returns."""
MOST_NEW, LISTS_BEGUN = 100, 4
"""The most people that one search for new people returns, and lists that are begun after it. New people and previews
then wait for only a part of those who left in all servers."""
REST_SECONDS = 60.0
"""Seconds for which no member of a guild is read after a read failed there."""
SWITCH_SECONDS = 60.0
"""Seconds between two checks whether the intent was switched on."""


class MemberReader(BackgroundCog):
    """The cog that reads known people again in each sweep, and stores the members that interactions carry.

    While Discord reports members, it reads only newly known people, people who left (a lost event may have reported
    their return), and lists that are needed. Each read is one Get Guild Member, so people who never used the bot cost
    nothing. A missing answer never means that somebody left: `members.read_from_discord` needs two different answers
    for that.
    """

    def __init__(
        self, bot: commands.AutoShardedBot, turns: GuildTurns, lists: MemberLists, keeper: ShardKeeper
    ) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.keeper: ShardKeeper = keeper
        self.turns: GuildTurns = turns
        self.lists: MemberLists = lists
        self.resting: dict[str, float] = {}
        """By guild, until when its members are not read (loop time)."""
        self.looked: tuple[datetime | None, float] = (None, 0.0)
        """The sweep in which the last search found nobody, and when that was (loop time)."""
        self.was_off: bool = False
        """Whether the intent was found to be switched off during this session."""
        self.switched_on: bool = False
        """Whether the intent was switched on after that, so that a new session can ask for it."""
        self.reader: asyncio.Task[None] = asyncio.create_task(run_forever(self._read_on))
        self.watcher: asyncio.Task[None] = asyncio.create_task(run_forever(self._watch_the_switch))

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that read people and that watch the intent."""
        return (self.reader, self.watcher)

    @commands.Cog.listener()
    async def on_interaction(self, interaction: Interaction) -> None:
        """Store the member in an interaction, because nothing else may report them."""
        member = interaction.user
        # Where the bot is not, as where only the person has it, nobody is stored.
        if isinstance(member, nextcord.Member) and interaction.guild is not None:
            facts, guild_id = member_facts(member), member.guild.id
            with unstored_members.storing(interaction.id):
                await self.turns.store_in_turn(guild_id, lambda db: gateway_events.member_met(db, str(guild_id), facts))

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                while self.bot.is_ready() and await (
                    self.read_missing() if self.lists.are_reported else self.read_some()
                ):
                    pass
            except SQLAlchemyError as fault:
                log_fault(log, fault, "known members are read later")

    async def read_some(self) -> int:
        """Read some of the people who are due; return the number of attempts.

        A search that found nobody is not repeated at once within the same sweep.
        """
        clock = asyncio.get_running_loop().time
        self.resting = {guild: until for guild, until in self.resting.items() if until > clock()}
        async with transaction() as db:
            began, (sweep, at) = await member_rereads.sweep_began(db), self.looked
            if began == sweep and clock() - at < LONGEST_PAUSE_SECONDS:
                return 0
            people = await member_rereads.to_read(
                db, MOST, self.resting, list(self.keeper.connections), self.keeper.count or 1
            )
        if not people and not self.resting:
            self.looked = began, clock()
        return await self._read_all(people)

    async def read_missing(self) -> int:
        """Read what is missing although Discord reports members; return the number of people tried."""
        people = await self.read_new()
        await self.list_wanted()
        return people

    async def read_new(self) -> int:
        """Read some of the people who are new in a server or left it; return the number of attempts."""
        clock = asyncio.get_running_loop().time
        self.resting = {guild: until for guild, until in self.resting.items() if until > clock()}
        async with transaction() as db:
            people = await member_rereads.never_read(
                db, MOST_NEW, self.resting, list(self.keeper.connections), self.keeper.count or 1
            )
        return await self._read_all(people)

    async def list_wanted(self) -> None:
        """Begin to read some lists: of guilds with a newly watched role, and of those that want theirs read again."""
        async with transaction() as db:
            wanted = await known_people.to_list(db, list(self.keeper.connections), self.keeper.count or 1)
        here = (self.bot.get_guild(guild_id) for guild_id in map(int, wanted) if guild_id not in self.lists.running)
        guilds = (guild for guild in here if guild is not None and not guild.unavailable)
        for guild in itertools.islice(guilds, LISTS_BEGUN):
            self.lists.begin(guild)

    async def _read_all(self, people: Collection[KnownMember]) -> int:
        room = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._read(one, room) for one in people))
        return len(people)

    async def _read(self, one: KnownMember, room: asyncio.Semaphore) -> None:
        async with room:
            if one.guild_id in self.resting:
                return
            guild = self.bot.get_guild(int(one.guild_id))
            if guild is None or guild.unavailable:
                self._rest(one)
                return
            try:
                await self.lists.read_member(guild.id, int(one.discord_id))
            except ProviderUnavailable as fault:
                log.warning("member could not be read guild=%s reason=%s", one.guild_id, fault.message)
                self._rest(one)
                return
            await self.turns.write(lambda db: member_rereads.was_read(db, one))

    def _rest(self, one: KnownMember) -> None:
        self.resting[one.guild_id] = asyncio.get_running_loop().time() + REST_SECONDS

    async def _watch_the_switch(self) -> None:
        while True:
            asks = settings().members_intent != "off"
            if asks and not self.lists.has_intent and (is_off := await members_intent.is_off(gateways())) is not None:
                self.switched_on = self.was_off and not is_off
                self.was_off = self.was_off or is_off
            await asyncio.sleep(SWITCH_SECONDS)
            if asks and self.lists.has_intent and self.bot.is_ready():
                # Otherwise it would go unnoticed that Discord no longer reports members.
                await self.lists.check_intent()
