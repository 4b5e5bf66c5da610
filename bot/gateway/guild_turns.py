"""The order of writes within each guild, each in its own transaction that is retried until the database takes it."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from models import transaction
from services.runtime.database_faults import is_the_databases, log_fault

log = logging.getLogger(f"holdfast.{__name__}")

DATABASE_PAUSE = 2.0
"""Seconds between attempts while the database does not answer, so that no event is lost."""

T = TypeVar("T")


async def always(_db: Any, _guild_id: int) -> bool:
    """Return True, as where a single process runs the bot."""
    return True


class GuildTurns:
    """One lock for each guild, so that its events are written one after another and no guild waits for another one.

    Each write reads the library's cache when its turn comes, so the last one written is the newest.
    """

    def __init__(self) -> None:
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.speaks_for: Callable[[Any, int], Awaitable[bool]] = always
        """Returns whether a guild's events are this process's to store, because no other process has its shard."""

    def of(self, guild_id: int) -> asyncio.Lock:
        """Return the lock to hold while an event of the guild is written."""
        return self._locks[guild_id]

    async def write_in_turn(self, guild_id: int, write: Callable[[Any], Awaitable[T]]) -> T:
        """Write one event when the guild's turn comes, and return the result."""
        async with self.of(guild_id):
            return await self.write(write)

    async def write(self, write: Callable[[Any], Awaitable[T]]) -> T:
        """Write one event in its own transaction, and retry until it succeeds; the caller holds the guild's turn."""
        while True:
            try:
                async with transaction() as db:
                    return await write(db)
            except Exception as fault:
                if not is_the_databases(fault):
                    raise
                log_fault(log, fault, "the event waits")
                await asyncio.sleep(DATABASE_PAUSE)

    async def store(self, guild_id: int, write: Callable[[Any], Awaitable[object]]) -> bool:
        """Write what was seen of a guild, unless another process has its shard by now; the caller holds the turn.

        That process sees it too, and newer events, which a late one must not replace. Return whether it was written.
        """

        async def write_if_ours(db: Any) -> bool:
            if not await self.speaks_for(db, guild_id):
                log.warning("event dropped, another process has the shard guild=%s", guild_id)
                return False
            await write(db)
            return True

        return await self.write(write_if_ours)

    async def store_in_turn(self, guild_id: int, write: Callable[[Any], Awaitable[object]]) -> bool:
        """Do as `store` does, when the guild's turn comes."""
        async with self.of(guild_id):
            return await self.store(guild_id, write)
