"""Share identical reads from Discord that one person has in flight.

Answers about permissions are not cached, so that people lose access as soon as they lose a permission. Reads that
precede a change are not shared.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from gateways.discord.rest import Discord
from gateways.discord.types import BotUser, Guild, GuildMember

ME_SECONDS = 60.0
"""The bot's own id never changes under one token."""

T = TypeVar("T")


class SharedReads:
    """The shared reads of one gateway. Belongs to one event loop."""

    def __init__(self) -> None:
        self._me: tuple[float, BotUser] | None = None
        self._under_way: dict[tuple[str, ...], asyncio.Task[Any]] = {}

    async def me(self, discord: Discord) -> BotUser:
        """Return the bot itself, at most ME_SECONDS old."""
        now = asyncio.get_running_loop().time()
        if self._me is None or self._me[0] < now:
            self._me = now + ME_SECONDS, await discord.me()
        return self._me[1]

    async def guild(self, discord: Discord, guild_id: str, person: str) -> Guild:
        """Return the guild. Raises as `Discord.guild` does."""
        return await self._once(("guild", guild_id, person), lambda: discord.guild(guild_id))

    async def member(self, discord: Discord, guild_id: str, person: str) -> GuildMember:
        """Return the member. Raises as `Discord.member` does."""
        return await self._once(("member", guild_id, person), lambda: discord.member(guild_id, person))

    async def _once(self, key: tuple[str, ...], ask: Callable[[], Awaitable[T]]) -> T:
        """Send the request, or wait for the same person's identical one; nobody waits in another person's queue."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.ensure_future(ask())
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: tuple[str, ...], done: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            # Every caller may have been cancelled, so the exception is retrieved here too.
            done.exception()


_asked: WeakKeyDictionary[object, SharedReads] = WeakKeyDictionary()


def of(discord: Discord) -> SharedReads:
    """Return the shared reads of this gateway."""
    return _asked.setdefault(discord, SharedReads())
