"""The cog that reads again what an event was about that the library could not read."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import nextcord
from nextcord.ext import commands

from bot.events import Events
from bot.interaction.background import Busy
from services.core.errors import ProviderUnavailable

log = logging.getLogger("holdfast.bot")

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 60.0
"""Seconds before a guild's next reading; they grow while events go on that cannot be read."""
MOST = 50
"""Members of a guild who are read one by one; where more are concerned, the whole list is cheaper."""

MEMBER_EVENTS = frozenset({"GUILD_MEMBER_ADD", "GUILD_MEMBER_UPDATE", "GUILD_MEMBER_REMOVE"})
GUILD_EVENTS = frozenset({"GUILD_UPDATE", "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE"})


@dataclass(slots=True)
class Doubts:
    """What is to be read again of one guild."""

    members: set[str] = field(default_factory=set[str])
    everybody: bool = False
    itself: bool = False
    """Its name, its owner and its roles."""

    def __bool__(self) -> bool:
        return bool(self.members) or self.everybody or self.itself


class Rereads(Busy):
    """Asks Discord for the member or the guild that an unreadable event was about, so that nothing of it is lost."""

    def __init__(self, bot: commands.AutoShardedBot, events: Events) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.events: Events = events
        self.doubts: dict[int, Doubts] = {}
        """By guild."""
        self.running: dict[int, asyncio.Task[None]] = {}
        """By guild, its readings; no two of a guild go on at once."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """The readings."""
        return self.running.values()

    @commands.Cog.listener()
    async def on_unreadable(self, event: str, data: object) -> None:
        """Note what the event was about. An event that does not even say which guild it is of is lost."""
        if event not in MEMBER_EVENTS | GUILD_EVENTS or not isinstance(data, Mapping):
            return
        told = cast("Mapping[str, object]", data)
        guild_id = _id(told.get("id" if event == "GUILD_UPDATE" else "guild_id"))
        guild = self.bot.get_guild(int(guild_id)) if guild_id else None
        if guild is None:
            return
        doubts = self.doubts.setdefault(guild.id, Doubts())
        user = told.get("user")
        user_id = _id(cast("Mapping[str, object]", user).get("id")) if isinstance(user, Mapping) else None
        if event in GUILD_EVENTS:
            doubts.itself = True
        elif user_id is None:
            doubts.everybody = True
        else:
            doubts.members.add(user_id)
        if guild.id not in self.running:
            self.running[guild.id] = asyncio.create_task(self._read(guild.id))

    async def _read(self, guild_id: int) -> None:
        pause = FIRST_PAUSE
        try:
            while self.doubts.get(guild_id) and not self.bot.is_closed():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                guild = self.bot.get_guild(guild_id)
                doubts = self.doubts.pop(guild_id)
                if guild is None:
                    return
                try:
                    await self._settle(guild, doubts)
                except (ProviderUnavailable, nextcord.HTTPException) as fault:
                    log.warning("guild %s could not be read again (%r), next try in %.0f s", guild_id, fault, pause)
                    self._keep(guild_id, doubts)
        finally:
            del self.running[guild_id]

    def _keep(self, guild_id: int, left: Doubts) -> None:
        doubts = self.doubts.setdefault(guild_id, Doubts())
        doubts.members |= left.members
        doubts.everybody |= left.everybody
        doubts.itself |= left.itself

    async def _settle(self, guild: nextcord.Guild, doubts: Doubts) -> None:
        """Read what is in doubt; what is read is no longer in it. Raises ProviderUnavailable and HTTPException."""
        if doubts.itself:
            await self._guild(guild)
            doubts.itself = False
        if doubts.everybody or len(doubts.members) > MOST:
            # It tries by itself until the list is read.
            self.events.list_again(guild)
            doubts.everybody, doubts.members = False, set()
        for user_id in sorted(doubts.members):
            await self._member(guild, user_id)
            doubts.members.discard(user_id)

    async def _guild(self, guild: nextcord.Guild) -> None:
        state: Any = self.bot._connection  # pyright: ignore[reportPrivateUsage]
        data = await self.bot.http.get_guild(guild.id)
        try:
            # The answer has the fields of the event, so the library's cache and our own listeners learn of it alike.
            state.parse_guild_update(data)
        except Exception as fault:  # noqa: BLE001  the library names none for what it cannot read
            log.warning("guild %s is not readable over REST either: %r", guild.id, fault)

    async def _member(self, guild: nextcord.Guild, user_id: str) -> None:
        if guild.get_member(int(user_id)) is None:
            # The library tells of changes only for members that it has in its cache.
            with contextlib.suppress(Exception):
                guild._add_member(await guild.fetch_member(int(user_id)))  # pyright: ignore[reportPrivateUsage]
        await self.events.read_member(guild.id, int(user_id))


def _id(value: object) -> str | None:
    """A snowflake as Discord writes it, or nothing."""
    return value if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20 else None
