"""Turns of the followers of one process: what all of them need of the database in the same moment is read once."""

import asyncio
from dataclasses import dataclass, field

from models import transaction
from services.triggers import chain_cursor
from services.triggers.chain_cursor import CONTRACTS, Position, cursor_of
from services.triggers.watch_list import Watched, WatchList


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a chain is to be read on, and what is watched there."""

    position: Position
    watched: Watched


class _GivenUp(Exception):
    """Whoever read for all was stopped before there was an answer."""


@dataclass
class _Reading:
    """One read that has not begun yet: whoever joins it gets an answer that is newer than their question."""

    answer: asyncio.Future[dict[str, Turn]]
    cursors: set[str] = field(default_factory=set[str])


class FollowerTurns:
    """Gives the followers named `owner` their turns."""

    def __init__(self, owner: str) -> None:
        self.owner: str = owner
        self._reading: _Reading | None = None
        self.watch_list: WatchList = WatchList()

    async def of(self, chain: str, kind: str = CONTRACTS) -> Turn | None:
        """The chain's turn, the lease taken or renewed; None while another process follows the chain."""
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
        """Read for everybody who asks before the read begins. Raises what the database says, to all of them."""
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
            reading.answer.exception()  # looked at, for perhaps nobody else waits for it
            raise
        reading.answer.set_result(turns)
        return turns
