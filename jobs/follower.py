"""The follower of one chain: reads what moved since it last looked, and marks the members whom it concerns as due."""

import asyncio
import logging
from datetime import timedelta

from gateways import gateways
from jobs.follower_turns import FollowerTurns
from jobs.reconciler import is_dead, worker_name
from jobs.restart import outlasting
from models import transaction
from services.core import queue
from services.holdings import delegations
from services.runtime.listen import wait
from services.triggers import block_corrections, chain_cursor, quarantine, sightings
from services.triggers.chain_cursor import CONTRACTS, WALLETS, Position, cursor_of
from services.triggers.sightings import Marks
from services.triggers.transfer_poller import PollResult, Reader, UnreadableTransfers, WalletReader
from services.triggers.watch_list import Watched
from settings import settings

log = logging.getLogger("holdfast.jobs.follower")

LEASE_SECONDS = 5.0
"""How often a process without the lease asks for it."""
SOONEST_SECONDS = 1.0
"""How long after a look another one may begin, however often new blocks are told of."""
NOTED_SECONDS = 5.0
"""How often it is noted that nothing has happened."""


class Follower:
    """Follows one chain while it holds the lease on it; a process without the lease waits for it.

    It follows the contracts that rules name, or the wallets of members (`kind`): two followers of their own, so that
    neither waits for the other or fails with it. The followers of one process share their `turns`.
    """

    def __init__(
        self, chain: str, turns: FollowerTurns | None = None, called: asyncio.Event | None = None, kind: str = CONTRACTS
    ) -> None:
        self.chain: str = chain
        self.kind: str = kind
        self.cursor: str = cursor_of(chain, kind)
        self.called: asyncio.Event = called or asyncio.Event()
        """Set when there is a new block, where an endpoint tells."""
        self._turns: FollowerTurns = turns or FollowerTurns(worker_name())
        self.name: str = self._turns.owner
        self._reader: Reader | WalletReader = (
            Reader(chain) if kind == CONTRACTS else WalletReader(chain, settings().follow_wallets)
        )
        self._marks: Marks = Marks()
        self._noted: tuple[Position, int, float] | None = None
        """What was last written down, and when (loop time)."""

    async def run(self) -> None:
        """Follow for ever."""
        async with transaction() as db:
            await chain_cursor.let_go_of(db, is_dead)
        clock = asyncio.get_running_loop()
        while True:
            more: bool | None = False
            began = clock.time()
            with outlasting(log, "following is tried again"):
                try:
                    more = await self.once()
                except UnreadableTransfers as fault:
                    log.warning("a look failed cursor=%s reason=%s", self.cursor, fault)
                    self._noted = None
                    async with transaction() as db:
                        await chain_cursor.failed(db, self.cursor, self.name, str(fault))
            if not more:
                beat = settings().follow_pace[self.chain]
                await wait(self.called, LEASE_SECONDS if more is None else until_the_next_beat(beat))
                await asyncio.sleep(began + min(SOONEST_SECONDS, beat) - clock.time())

    async def once(self) -> bool | None:
        """One look; whether there is more to read at once, or None when another process follows this chain.

        Raises Unreadable when the node whose turn it is does not answer; the next look asks another.
        """
        turn = await self._turns.of(self.chain, self.kind)
        if turn is None or not turn.watched.asked(self.kind):
            # Nothing is asked of a chain that no rule names; once one does, everybody is due anyway.
            self._reader.forget()
            return None if turn is None else False
        addresses = turn.watched.of(self.kind)
        look = await self._reader.look(gateways(), turn.position, addresses)
        moment = asyncio.get_running_loop().time()
        ended = any(kind == self.kind for kind, _ in turn.watched.released)
        late = turn.watched.late if self.kind == WALLETS else ()
        news = look.moved or look.missed or look.excessive or ended or late
        if news or not self._is_noted(look, moment):
            self._noted = None
            try:
                if await self._note(look, turn.watched):
                    self._turns.watch_list.marked(self.chain, late)
                    self._noted = (look.position, look.head, moment)
            finally:
                if self._noted is None:
                    # What this look found is written nowhere: the next one must find it as if for the first time.
                    self._reader.forget()
                    self._marks = Marks()
        return look.more

    def _is_noted(self, look: PollResult, moment: float) -> bool:
        """Whether the same was written down a moment ago."""
        if self._noted is None:
            return False
        position, head, since = self._noted
        return (position, head) == (look.position, look.head) and moment - since < NOTED_SECONDS

    async def _note(self, look: PollResult, watched: Watched) -> bool:
        """Write down the outcome of a look; False, and nothing written, when the lease is not ours any more."""
        slices = self._reader.slices if isinstance(self._reader, WalletReader) else 1
        try:
            # First the lease: who lost it must not mark for a position that is not theirs to write.
            async with chain_cursor.advancing(self.cursor, self.name, look.position, look.head, slices) as db:
                await delegations.doubt(db, self.chain, look.delegated)
                clock = asyncio.get_running_loop().time()
                sightings.concern(db, self.chain, look.moved, watched.servers, self._marks, clock)
                if look.went_back:
                    await block_corrections.correct(db, older=timedelta(0))
                if look.missed:
                    log.warning("marked everybody after an absence cursor=%s", self.cursor)
                    await queue.mark_all(db)
                if look.excessive:
                    log.warning("quarantined chain=%s %s=%s", self.chain, self.kind, ",".join(look.excessive))
                    await quarantine.begin(db, self.chain, self.kind, look.excessive, watched.servers)
                if ended := [one for kind, one in watched.released if kind == self.kind and one not in look.excessive]:
                    await quarantine.end(db, self.chain, self.kind, ended, watched.servers)
                if watched.late and self.kind == WALLETS:
                    queue.mark_holders(db, self.chain, watched.late, queue.SWEPT)
        except chain_cursor.Overtaken:
            return False
        return True


def until_the_next_beat(seconds: float) -> float:
    """Seconds until the clock shows a multiple of `seconds`, so that all followers of a process look together."""
    return seconds - asyncio.get_running_loop().time() % seconds
