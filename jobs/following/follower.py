"""The follower of one chain: reads new transfers and queues the members they concern."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from gateways import gateways
from jobs.following.follower_turns import FollowerTurns
from models import transaction
from services.core import queue
from services.core.queue.worker_names import is_dead, worker_name
from services.holdings import delegations
from services.runtime.logs import RareWarnings
from services.runtime.postgres_listen import wait
from services.runtime.retries import database_errors_logged
from services.triggers import chain_cursor, quarantine, sightings, unreached_blocks
from services.triggers.chain_cursor import COINS, CONTRACTS, Position, cursor_of
from services.triggers.sightings import Marks
from services.triggers.transfer_poller import SOONEST_SECONDS, PollResult, Reader, UnreadableTransfers, WalletReader
from services.triggers.watch_list import Watched
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

LEASE_SECONDS = 5.0
"""Seconds between attempts of a process without the lease to get it."""
NOTED_SECONDS = 5.0
"""Seconds between two writes of an unchanged position."""


class Follower:
    """A follower of one chain while this process holds the lease; a process without the lease waits for it.

    It follows the contracts that rules name, the wallets of members, or these wallets' coins (`kind`). The three kinds
    run separately, so that none waits for another or fails with it. The followers of one process share their `turns`.
    """

    def __init__(
        self, chain: str, turns: FollowerTurns | None = None, called: asyncio.Event | None = None, kind: str = CONTRACTS
    ) -> None:
        self.chain: str = chain
        self.kind: str = kind
        self.cursor: str = cursor_of(chain, kind)
        self.called: asyncio.Event = called or asyncio.Event()
        """Set on each new block, if an endpoint announces blocks."""
        self._turns: FollowerTurns = turns or FollowerTurns(worker_name())
        self.name: str = self._turns.owner
        self._reader: Reader | WalletReader = (
            Reader(chain) if kind == CONTRACTS else WalletReader(chain, settings().follow_wallets, kind)
        )
        self._marks: Marks = Marks()
        self._faults = RareWarnings(log)
        self._noted: tuple[Position, int, float] | None = None
        """The last written position and head, and when they were written (loop time)."""

    async def run(self) -> None:
        """Follow until cancelled."""
        async with transaction() as db:
            await chain_cursor.release_leases(db, is_dead)
        clock = asyncio.get_running_loop()
        while True:
            more: bool | None = False
            began = clock.time()
            with database_errors_logged(log, "following will be retried"):
                try:
                    more = await self.once()
                except UnreadableTransfers as fault:
                    self._faults.add("failed to poll cursor=%s reason=%s", self.cursor, fault)
                    self._noted = None
                    async with transaction() as db:
                        await chain_cursor.failed(db, self.cursor, self.name, str(fault))
            if not more:
                beat = settings().follow_pace(self.chain)
                pause = LEASE_SECONDS if more is None else seconds_to_next_poll(beat)
                next_poll = clock.time() + pause
                await wait(self.called, pause)
                # A new block brings the poll forward; without one, the followers of a process poll together.
                await asyncio.sleep(min(began + SOONEST_SECONDS, next_poll) - clock.time())

    async def once(self) -> bool | None:
        """Poll once. Return whether there is more to read at once, or None when another process follows this chain.

        Raises UnreadableTransfers when the node does not answer; the next poll uses another node.
        """
        turn = await self._turns.of(self.chain, self.kind)
        if turn is None:
            self._reader.forget()
            return None
        if not turn.watched.asked(self.kind):
            # No rule names this chain. When a rule does, all its members are queued anyway.
            self._reader.forget()
            self._noted = None
            await self._turns.leave(turn, self.cursor)
            return False
        if late := turn.watched.late_of(self.kind):
            # Apart from the poll's own marks, since the members that two statements of one transaction mark are in no
            # common order: with the marks of a sweep they could deadlock.
            async with transaction() as db:
                queue.mark_holders(db, self.chain, late, queue.SWEPT)
            self._turns.watch_list.marked(self.chain, self.kind, late)
        addresses = turn.watched.of(self.kind)
        coins = turn.watched.coins if self.kind == COINS else ()
        look = await self._reader.look(gateways(), turn.position, addresses, coins)
        moment = asyncio.get_running_loop().time()
        ended = self._ended(look, turn.watched)
        if look.missed or look.excessive or ended:
            await self._mark_unread(look, [*look.excessive, *ended], turn.watched)
        news = look.moved or look.missed or look.excessive or ended
        if news or not self._is_noted(look, moment):
            self._noted = None
            try:
                if await self._note(look, turn.watched, ended):
                    self._noted = (look.position, look.head, moment)
            finally:
                if self._noted is None:
                    # Nothing was written, so the next poll must find this again.
                    self._reader.forget()
                    self._marks = Marks()
        return look.more

    def _ended(self, look: PollResult, watched: Watched) -> list[str]:
        """Return the addresses whose quarantine has ended."""
        return [one for kind, one in watched.released if kind == self.kind and one not in look.excessive]

    async def _mark_unread(self, look: PollResult, addresses: Sequence[str], watched: Watched) -> None:
        """Queue the members whom a transfer may concern that nobody has read.

        Like late wallets, these are marked apart from the poll's own marks. That is before the position advances, so
        that none is lost if this process ends in between.
        """
        async with transaction() as db:
            if look.missed:
                log.warning("queued all members after an absence cursor=%s", self.cursor)
                await queue.mark_all(db)
            else:
                await quarantine.mark(db, self.chain, self.kind, addresses, watched.servers)

    def _is_noted(self, look: PollResult, moment: float) -> bool:
        """Return whether the same position was written a moment ago."""
        if self._noted is None:
            return False
        position, head, since = self._noted
        return (position, head) == (look.position, look.head) and moment - since < NOTED_SECONDS

    async def _note(self, look: PollResult, watched: Watched, ended: Sequence[str]) -> bool:
        """Write the result of a poll. Return False, with nothing written, if the lease was lost.

        `ended` are the addresses whose quarantine has ended.
        """
        slices = self._reader.slices if isinstance(self._reader, WalletReader) else 1
        try:
            # The lease is checked first: a process that lost it must not queue members for this position.
            async with chain_cursor.advancing(self.cursor, self.name, look.position, look.head, slices) as db:
                await delegations.doubt(db, self.chain, look.delegated)
                clock = asyncio.get_running_loop().time()
                sightings.record_moves(db, self.chain, look.moved, watched.named_by(self.kind), self._marks, clock)
                if look.went_back:
                    await unreached_blocks.correct(db, older=timedelta(0))
                if look.excessive:
                    log.warning("quarantined chain=%s %s=%s", self.chain, self.kind, ",".join(look.excessive))
                    await quarantine.begin(db, self.chain, self.kind, look.excessive)
                if ended:
                    await quarantine.end(db, self.chain, self.kind, ended)
        except chain_cursor.CursorTaken:
            return False
        return True


def seconds_to_next_poll(seconds: float) -> float:
    """Return the seconds until loop time is a multiple of `seconds`, so that a process's followers poll together."""
    return seconds - asyncio.get_running_loop().time() % seconds
