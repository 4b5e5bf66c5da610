"""The follower of Solana, which reads members' assets in turn, as often as its share of the rate limit allows."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from gateways import gateways
from jobs.following.follower import LEASE_SECONDS, seconds_to_next_poll
from jobs.following.follower_turns import FollowerTurns
from models import transaction
from services.core import queue
from services.core.queue.worker_names import is_dead
from services.runtime.logs import RareWarnings
from services.runtime.retries import database_errors_logged
from services.triggers import chain_cursor, sightings, solana_poller
from services.triggers.chain_cursor import Position
from services.triggers.sightings import Marks, Moved
from services.triggers.solana_poller import SOLANA, AssetQuestion, Poll, Polled, QuestionTurn, joined
from services.triggers.transfer_poller import UnreadableTransfers
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

BEAT_SECONDS = 5.0
"""Longest seconds between two questions while SOLANA_FOLLOW_REQUESTS allows more, even if EVM chains are polled at a
slower pace, which limits other costs."""
SHOWN_SECONDS = 60.0
"""Seconds between two records that the follower is running while its share of the rate limit is used up."""


class SolanaFollower:
    """The follower, which asks one question after another while it has the lease on Solana; `turns` are shared."""

    def __init__(self, turns: FollowerTurns) -> None:
        self._turns: FollowerTurns = turns
        self._poll: Poll = Poll()
        self._marks: Marks = Marks()
        self._faults = RareWarnings(log)
        self._open: QuestionTurn = QuestionTurn()
        self._slots: dict[AssetQuestion, int] = {}
        """The slot at which each question was last answered."""
        self._rests_until = 0.0
        """Loop time until which the last question's requests use up our share of the rate limit."""
        self._shown_at = float("-inf")
        """Loop time of the last record that the follower is running."""

    async def run(self) -> None:
        """Follow until cancelled."""
        async with transaction() as db:
            await chain_cursor.release_leases(db, is_dead)
        while True:
            followed = True
            with database_errors_logged(log, "following will be retried"):
                try:
                    followed = await self.once()
                except UnreadableTransfers as fault:
                    self._faults.add("failed to read Solana reason=%s", fault)
                    async with transaction() as db:
                        await chain_cursor.failed(db, SOLANA, self._turns.owner, str(fault))
            beat = min(BEAT_SECONDS, settings().follow_seconds)
            await asyncio.sleep(seconds_to_next_poll(beat) if followed else LEASE_SECONDS)

    async def once(self) -> bool:
        """Ask the next question unless our share is used up. Return False while another process follows Solana.

        Raises UnreadableTransfers when the question is not answered; it is asked again in its next turn.
        """
        turn = await self._turns.of(SOLANA)
        if turn is None:
            self._poll.forget()
            return False
        clock = asyncio.get_running_loop()
        if clock.time() < self._rests_until:
            await self._rest(clock.time())
            return True
        if not self._open:
            await self._begin()
        if self._open:
            parts, outside = self._open.next(), gateways()
            question, sent = joined(parts), outside.mints.requests()
            try:
                polled = await self._poll.ask(outside, question)
            except UnreadableTransfers:
                self._open.failed(question)
                raise
            finally:
                used = outside.mints.requests() - sent
                self._rests_until = clock.time() + used * 60 / settings().solana_follow_requests
            self._open.answered(question, used)
            await self._note(parts, polled, turn.watched.servers)
        else:
            await self._turns.leave(turn, SOLANA)
        return True

    async def _rest(self, moment: float) -> None:
        """Record from time to time that the follower waits for its share of the rate limit, not because of a fault."""
        if moment - self._shown_at >= SHOWN_SECONDS:
            self._shown_at = moment
            async with transaction() as db:
                await chain_cursor.still_follows(db, SOLANA, self._turns.owner)

    async def _begin(self) -> None:
        async with transaction() as db:
            found = await solana_poller.questions(db)
        self._open.begin(found)
        self._poll.keep_only(found)
        self._slots = {question: self._slots[question] for question in found if question in self._slots}

    async def _note(
        self, parts: Sequence[AssetQuestion], polled: Polled, servers: Mapping[str, Collection[int]]
    ) -> None:
        self._slots.update(dict.fromkeys(parts, polled.slot))
        oldest, newest = min(self._slots.values()), max(self._slots.values())
        try:
            # The lease is checked first: a process that lost it must not write for this chain.
            async with chain_cursor.advancing(SOLANA, self._turns.owner, Position(oldest, ""), newest) as db:
                moved = [Moved(parts[0].collection, owner, polled.slot) for owner in polled.changed]
                sightings.record_moves(db, SOLANA, moved, servers, self._marks, asyncio.get_running_loop().time())
        except chain_cursor.CursorTaken:
            return
        # Changes from a time without polls are not new, so they are queued without urgency; apart from the others, as
        # in the follower of EVM chains.
        if polled.fresh:
            async with transaction() as db:
                queue.mark_holders(db, SOLANA, polled.fresh, queue.SWEPT)
        self._poll.keep(polled)
