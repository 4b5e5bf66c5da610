"""Shared database reads of one process's followers: what they need at the same moment is read once."""

import asyncio
from dataclasses import dataclass, field

from models import transaction
from services.triggers import chain_cursor
from services.triggers.chain_cursor import CONTRACTS, Position, cursor_of
from services.triggers.watch_list import Watched, WatchList


@dataclass(frozen=True, slots=True)
class Turn:
    """The position to read a chain from, and what to watch there."""

    position: Position
    watched: Watched


class _GivenUp(Exception):
    """Raised when the task that was reading for all was cancelled before it had a result."""


@dataclass
class _Reading:
    """A read that has not begun: a follower that joins it gets a result newer than its request."""

    answer: asyncio.Future[dict[str, Turn]]
    cursors: set[str] = field(default_factory=set[str])


class FollowerTurns:
    """Reads positions for the followers of the process `owner`."""

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

    async def _read(self, cursor: str) -> dict[str, Turn]:
        """Read for all who join before the read begins. A database error is raised to each of them."""
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
            reading.answer.exception()  # retrieved, because perhaps nobody awaits it
            raise
        reading.answer.set_result(turns)
        return turns
