"""The cog that reads guilds and members again after an event that the library could not read."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import nextcord
from nextcord.ext import commands

from bot.gateway.member_lists import MemberLists
from bot.interaction import delivery
from bot.interaction.background import BackgroundCog
from gateways import gateways
from services.core.errors import ProviderUnavailable

log = logging.getLogger(f"holdfast.{__name__}")

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 60.0
"""Pauses in seconds before a guild's next read; they grow while unreadable events continue."""
MOST = 50
"""The most members of a guild who are read one by one; for more, the whole list is cheaper."""

MEMBER_EVENTS = frozenset({"GUILD_MEMBER_ADD", "GUILD_MEMBER_UPDATE", "GUILD_MEMBER_REMOVE"})
GUILD_EVENTS = frozenset({"GUILD_UPDATE", "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE"})
WHOLE_GUILD = "GUILD_CREATE"
_OWN_ID = frozenset({"GUILD_UPDATE", WHOLE_GUILD})
"""Events whose `id` is the guild's."""
MOST_REFUSALS = 3
"""Refusals in a row after which a guild that the library does not have counts as left."""
GUILD_FIELDS = ("id", "name", "icon", "owner_id", "features", "preferred_locale")
ROLE_FIELDS = ("id", "name", "permissions", "position", "color", "hoist", "managed", "mentionable", "tags")
MEMBER_FIELDS = ("user", "roles", "nick", "pending", "joined_at")
"""The fields that we need of a guild, of a role and of the bot as a member; fewer fields are less likely unreadable."""


@dataclass(slots=True)
class Doubts:
    """The parts of one guild to read again."""

    members: set[str] = field(default_factory=set[str])
    everybody: bool = False
    itself: bool = False
    """Whether to read its name, its owner and its roles."""
    whole: bool = False
    """Whether to read everything, because the library could not read the event that announces the guild."""
    refusals: int = 0
    """Refusals of the whole guild in a row."""

    def __bool__(self) -> bool:
        return bool(self.members) or self.everybody or self.itself or self.whole


class UnreadableGuild(Exception):
    """The library cannot read a guild over REST either."""


class UnreadableEventRereads(BackgroundCog):
    """The cog that reads the member or the guild of an unreadable event, so that no change is lost."""

    def __init__(self, bot: commands.AutoShardedBot, lists: MemberLists) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.lists: MemberLists = lists
        self.doubts: dict[int, Doubts] = {}
        """By guild."""
        self.running: dict[int, asyncio.Task[None]] = {}
        """By guild, the task that reads it; a guild has one at a time."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that read."""
        return self.running.values()

    @commands.Cog.listener()
    async def on_unreadable(self, event: str, data: object) -> None:
        """Note the member or guild of the event. An event without a readable guild id is lost."""
        if event not in MEMBER_EVENTS | GUILD_EVENTS | {WHOLE_GUILD} or not isinstance(data, Mapping):
            return
        told = cast("Mapping[str, object]", data)
        found = _id(told.get("id" if event in _OWN_ID else "guild_id"))
        guild = self.bot.get_guild(int(found)) if found else None
        if found is None or (guild is None and event != WHOLE_GUILD):
            return
        guild_id = int(found)
        doubts = self.doubts.setdefault(guild_id, Doubts())
        user = told.get("user")
        user_id = _id(cast("Mapping[str, object]", user).get("id")) if isinstance(user, Mapping) else None
        if event == WHOLE_GUILD:
            doubts.whole = True
            if guild is not None:
                # The library may have read only a part of the guild, and its roles must not be judged by a part.
                guild.unavailable = True
        elif event in GUILD_EVENTS:
            doubts.itself = True
        elif user_id is None:
            doubts.everybody = True
        else:
            doubts.members.add(user_id)
        if guild_id not in self.running:
            self.running[guild_id] = asyncio.create_task(self._read(guild_id))

    async def _read(self, guild_id: int) -> None:
        pause = FIRST_PAUSE
        try:
            while self.doubts.get(guild_id) and not self.bot.is_closed():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                doubts = self.doubts.pop(guild_id)
                try:
                    if doubts.whole:
                        await self._whole_guild(guild_id, doubts)
                        doubts.whole = False
                    if (guild := self.bot.get_guild(guild_id)) is not None:
                        await self._settle(guild, doubts)
                except (ProviderUnavailable, UnreadableGuild, *delivery.SENDING_ERRORS) as fault:
                    log.warning("guild not read again guild=%s reason=%r retry_seconds=%.0f", guild_id, fault, pause)
                    self._keep(guild_id, doubts)
        finally:
            del self.running[guild_id]

    def _keep(self, guild_id: int, left: Doubts) -> None:
        doubts = self.doubts.setdefault(guild_id, Doubts())
        doubts.members |= left.members
        doubts.everybody |= left.everybody
        doubts.itself |= left.itself
        doubts.whole |= left.whole
        doubts.refusals = left.refusals

    async def _settle(self, guild: nextcord.Guild, doubts: Doubts) -> None:
        """Read everything in doubt, and remove it from the doubts. Raises the errors of requests."""
        if doubts.itself:
            await self._guild(guild)
            doubts.itself = False
        if doubts.everybody or len(doubts.members) > MOST:
            # This retries until the list is read.
            self.lists.begin(guild)
            doubts.everybody, doubts.members = False, set()
        for user_id in sorted(doubts.members):
            await self.lists.read_member(guild.id, int(user_id))
            doubts.members.discard(user_id)

    async def _whole_guild(self, guild_id: int, doubts: Doubts) -> None:
        """Read a guild over REST, and pass it to the library as the event that announces a guild.

        Raises UnreadableGuild and the errors of requests. A guild that Discord refuses repeatedly counts as left:
        nothing is passed on.
        """
        state: Any = self.bot._connection  # pyright: ignore[reportPrivateUsage]
        try:
            ours = await self.bot.http.get_member(guild_id, state.self_id)
            # Read last, so that it is not older than the events that the library gets meanwhile.
            found = await self.bot.http.get_guild(guild_id)
        except (nextcord.Forbidden, nextcord.NotFound) as fault:
            if isinstance(fault, nextcord.Forbidden):
                gateways().discord.refusals.add()
            doubts.refusals += 1
            if doubts.refusals < MOST_REFUSALS:
                raise
            log.warning("gave up a guild that Discord refuses guild=%s reason=%r", guild_id, fault)
            return
        try:
            told = _part(found, GUILD_FIELDS)
            told["roles"] = [_part(role, ROLE_FIELDS) for role in found["roles"]]
            told["members"] = [_part(ours, MEMBER_FIELDS)]
            state.parse_guild_create({**told, "unavailable": False})
        except Exception as fault:
            raise UnreadableGuild(repr(fault)) from fault
        for channel in await self.bot.http.get_all_guild_channels(guild_id):
            # One at a time, so that one unreadable channel does not prevent reading the others.
            try:
                state.parse_channel_create({**channel, "guild_id": str(guild_id)})
            except Exception as fault:  # noqa: BLE001  the library may raise any for unreadable data
                log.info("channel not read guild=%s reason=%r", guild_id, fault)

    async def _guild(self, guild: nextcord.Guild) -> None:
        state: Any = self.bot._connection  # pyright: ignore[reportPrivateUsage]
        data = await self.bot.http.get_guild(guild.id)
        try:
            # The answer has the event's fields, so it updates the library's cache and reaches our listeners.
            state.parse_guild_update(data)
        except Exception as fault:  # noqa: BLE001  the library may raise any for unreadable data
            log.warning("guild not read over REST either guild=%s reason=%r", guild.id, fault)


def _part(value: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    return {name: value[name] for name in fields if name in value}


def _id(value: object) -> str | None:
    """Return a snowflake as Discord writes it, or None."""
    return value if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20 else None
