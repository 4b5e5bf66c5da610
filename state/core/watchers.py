"""Loops that refresh an open screen: one of each kind in a tab, ended with the tab."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from typing import Any, cast
from uuid import uuid4

import reflex as rx
from reflex_base.registry import RegistrationContext

from services.core.actors import Actor
from services.core.errors import TooMany
from services.runtime import rate_limits
from services.runtime.database_faults import UNANSWERED
from state.core import timing
from state.core.gate import actor_of

_newest: dict[tuple[str, str], "Watcher"] = {}
"""The newest loop per tab and kind."""
_at_work: dict[tuple[str, str], "Watcher"] = {}
"""The loop per tab and kind that is running; a replaced one finishes the step it has begun."""


class Watcher:
    """One loop of a kind in a tab; a newer one of that kind in the same tab and process replaces it.

    It runs one step after `every` seconds or, with `lasts`, a step every `every` seconds for so long. `first` is the
    delay of the first step, and `next_in` may be set after a step to change the next delay. Without an actor, it does
    not check who is signed in.
    """

    def __init__(
        self,
        state: rx.State,
        actor: Actor | None,
        kind: str,
        *,
        every: float = 0.0,
        lasts: float | None = None,
        first: float | None = None,
    ) -> None:
        self._state, self._actor = state, actor
        self._key = (state.router.session.client_token, kind)
        self._every, self._rounds = every, 1 if lasts is None else int(lasts / every)
        self._ends, self._ended = asyncio.Event(), asyncio.Event()
        self.next_in: float = every
        self._first = every if first is None else first

    @property
    def replaced(self) -> bool:
        """Whether a newer loop has replaced this one."""
        return self._ends.is_set()

    async def looks(
        self, *, pages: Collection[str] = (), limit: rate_limits.Limit | None = None
    ) -> AsyncGenerator[None]:
        """Yield every `every` seconds, as often as fits into `lasts`, while the screen needs it.

        Only the newest loop runs, after the previous one has ended, so many events cost no more than one.

        It ends with the tab, the session, a newer loop, or on a page outside `pages` (by default the page it began on).
        A step beyond the person's `limit` is skipped, and so is one of several while the database does not answer.
        """
        if before := _newest.get(self._key):
            before._ends.set()
        _newest[self._key] = self
        try:
            async for _ in self._rounds_while_open(pages or (self._state.router.url.path,)):
                if limit is None or self._actor is None or await _allows(limit, self._actor):
                    yield
        finally:
            self._ended.set()
            for loops in (_newest, _at_work):
                if loops.get(self._key) is self:
                    del loops[self._key]

    async def _has_its_turn(self) -> bool:
        """Wait until the previous loop has ended; return False if a newer one has replaced this one."""
        while not self.replaced and (before := _at_work.get(self._key, self)) is not self:
            waiting = [asyncio.create_task(event.wait()) for event in (before._ended, self._ends)]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
        if not self.replaced:
            _at_work[self._key] = self
        return not self.replaced

    async def _rounds_while_open(self, pages: Collection[str]) -> AsyncGenerator[None]:
        away, wait, looks = 0.0, self._first, 0
        while looks < self._rounds:
            # Wait in parts, so that a loop with long waits ends soon after its tab.
            part = min(wait, timing.AWAY_SECONDS / 2)
            await self._pause(part)
            wait -= part
            if not await self._has_its_turn():
                return
            if not await is_open(self._key[0]):
                away, wait = away + part, wait or self._every or timing.AWAY_EVERY
                if away > timing.AWAY_SECONDS:
                    return
                continue
            away = 0.0
            if wait > 0:
                continue
            looks += 1
            try:
                if self._actor is not None and await actor_of(self._state) != self._actor:
                    return
            except UNANSWERED:
                if self._rounds == 1:
                    raise
                # The database may be back for the next step.
                wait = self.next_in
                continue
            async with cast(Any, self._state):
                if self._state.router.url.path not in pages:
                    return
            yield
            wait = self.next_in

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ends.wait()
        except TimeoutError:
            return


def new_turn() -> str:
    """Return the mark of a question, by which its answer is known among others.

    No other question has it. A number would begin again for the next person who signs in in the tab, who would then see
    the answer to a question of the person before.
    """
    return uuid4().hex


async def is_open(tab: str) -> bool:
    """Return whether a tab has a socket in any web process."""
    sockets = RegistrationContext.get().app.event_namespace
    return sockets is not None and await sockets._token_manager.is_token_connected(tab)


async def _allows(limit: rate_limits.Limit, actor: Actor) -> bool:
    try:
        await rate_limits.spend(limit, actor.user_id)
    except TooMany:
        return False
    return True
