"""The follower of one chain: reads what moved since it last looked, and has those whom it concerns looked at."""

import asyncio
import logging

from gateways import gateways
from jobs.lasting import AWAY, first_line
from jobs.looker import is_dead, worker_name
from models import transaction
from services import due, following
from services.calls import wait
from services.following import Watched
from services.transfers import Reader, Unreadable
from settings import settings

log = logging.getLogger("holdfast.jobs.follower")

LEASE_SECONDS = 5.0
"""How often a process without the lease asks for it."""


class Follower:
    """Follows one chain while it holds the lease on it; a process without the lease waits for it."""

    def __init__(self, chain: str, called: asyncio.Event | None = None) -> None:
        self.chain: str = chain
        self.called: asyncio.Event = called or asyncio.Event()
        """Set when there is a new block, where an endpoint tells."""
        self.name: str = worker_name()
        self._reader: Reader = Reader(chain)

    async def run(self) -> None:
        """Follow for ever."""
        async with transaction() as db:
            await following.let_go_of(db, is_dead)
        while True:
            pause = settings().follow_seconds
            try:
                more = await self.once()
                pause = LEASE_SECONDS if more is None else 0.0 if more else pause
            except Unreadable as fault:
                log.warning("%s is not read right now: %s", self.chain, fault)
                async with transaction() as db:
                    await following.failed(db, self.chain, self.name, str(fault))
            except AWAY as fault:
                log.warning("the database did not answer, following goes on when it does: %s", first_line(fault))
            if pause:
                await wait(self.called, pause)

    async def once(self) -> bool | None:
        """One look; whether there is more to read at once, or None when another process follows this chain.

        Raises Unreadable when the node whose turn it is does not answer; the next look asks another.
        """
        async with transaction() as db:
            position = await following.claim(db, self.chain, self.name)
            watched = (await following.watched(db)).get(self.chain, Watched((), ())) if position else None
        if position is None or not watched:
            # Nothing is asked of a chain that no rule names; once one does, everybody is looked at anyway.
            self._reader.forget()
            return None if position is None else False
        look = await self._reader.look(gateways(), position, watched)
        async with transaction() as db:
            # First the lease: who lost it must not mark for a position that is not theirs to write.
            if await following.advance(db, self.chain, self.name, look.position, look.head):
                await following.concern(db, self.chain, look.moved)
                if look.missed:
                    log.warning("%s was not followed for long: everybody is looked at", self.chain)
                    await due.mark_all(db)
        return look.more
