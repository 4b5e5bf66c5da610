"""Shared database reads of one process's followers, which read positions needed at the same moment only once."""

import asyncio
from dataclasses import dataclass, field

from models import transaction
from services.triggers import chain_cursor
from services.triggers.chain_cursor import CONTRACTS, Position, cursor_of
from services.triggers.watch_list import Watched, WatchList


@dataclass(frozen=True, slots=True)
class Turn:
    """The position from which to read a chain, and what to watch there."""

    position: Position
    watched: Watched


class _GivenUp(Exception):
    """The task that was reading for all followers was cancelled before it had a result."""


@dataclass
class _Reading:
    """A read that has not begun, so a follower that joins it gets a result newer than its request."""

    answer: asyncio.Future[dict[str, Turn]]
    cursors: set[str] = field(default_factory=set[str])


class FollowerTurns:
    """The reader of positions for the followers of the process `owner`."""

    def __init__(self, owner: str) -> None:
        self.owner: str = owner
        self._reading: _Reading | None = None
        self.watch_list: WatchList = WatchList()

    async def of(self, chain: str, kind: str = CONTRACTS) -> Turn | None:
        """Take or renew the lease on a chain and return its turn; None while another process follows it."""
        cursor = cursor_of(chain, kind)
        while True:
            if self._reading is None:
                return (await self._read(cursor)).get(cursor)
            self._reading.cursors.add(cursor)
            try:
                return (await asyncio.shield(self._reading.answer)).get(cursor)
            except _GivenUp:
                continue

    async def leave(self, turn: Turn, cursor: str) -> None:
        """Record that nothing is to be followed there, unless that is known."""
        if turn.position.block:
            async with transaction() as db:
                await chain_cursor.leave(db, cursor, self.owner)

    async def _read(self, cursor: str) -> dict[str, Turn]:
        """Read for all followers that join before the read begins. A database error is raised in each of them."""
        reading = self._reading = _Reading(asyncio.get_running_loop().create_future(), {cursor})
        try:
            await asyncio.sleep(0)
            self._reading = None
            async with transaction() as db:
                positions = await chain_cursor.claim(db, sorted(reading.cursors), self.owner)
                watched = await self.watch_list.read(db) if positions else {}
            turns = {key: Turn(at, watched.get(key.partition(":")[0], Watched())) for key, at in positions.items()}
        except BaseException as fault:
            self._reading = None
            reading.answer.set_exception(fault if isinstance(fault, Exception) else _GivenUp())
            reading.answer.exception()  # retrieved, because perhaps no follower awaits it
            raise
        reading.answer.set_result(turns)
        return turns
