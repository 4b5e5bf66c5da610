"""Loops that look for something while a screen is open: one of a kind in a tab, and none without the tab."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from typing import Any, cast

import reflex as rx
from reflex_base.registry import RegistrationContext

from services import limits
from services.actors import Actor
from services.errors import TooMany
from state.gate import actor_of

AWAY_SECONDS = 30.0
"""A tab without a socket is looked at no more; one that is not back by then has ended its loops."""

_newest: dict[tuple[str, str], asyncio.Event] = {}
"""The loop of each tab and kind, by what wakes it up when a newer one takes its place."""


class Watcher:
    """One loop of a kind in a tab; a newer one of the kind in the same tab and process ends it at once."""

    def __init__(self, state: rx.State, actor: Actor, kind: str, *, every: float, lasts: float) -> None:
        self._state, self._actor = state, actor
        self._key = (state.router.session.client_token, kind)
        self._every, self._rounds = every, int(lasts / every)
        self._ends = asyncio.Event()

    @property
    def replaced(self) -> bool:
        """Whether a newer loop has taken this one's place."""
        return self._ends.is_set()

    async def looks(self, *, pages: Collection[str] = (), limit: limits.Limit | None = None) -> AsyncGenerator[None]:
        """Yield every `every` seconds, for `lasts` seconds at most, while there is a reason to look.

        The reason ends with the tab, with the session, with a newer loop, and on another page than `pages` (by default
        the one on which this began). A look that the person's `limit` does not allow is left out.
        """
        if before := _newest.get(self._key):
            before.set()
        _newest[self._key] = self._ends
        try:
            async for _ in self._rounds_while_open(pages or (self._state.router.url.path,)):
                if limit is None or await _allows(limit, self._actor):
                    yield
        finally:
            if _newest.get(self._key) is self._ends:
                del _newest[self._key]

    async def _rounds_while_open(self, pages: Collection[str]) -> AsyncGenerator[None]:
        away = 0.0
        for _ in range(self._rounds):
            await self._pause()
            if self.replaced:
                return
            if not await is_open(self._key[0]):
                away += self._every
                if away > AWAY_SECONDS:
                    return
                continue
            away = 0.0
            if await actor_of(self._state) != self._actor:
                return
            async with cast(Any, self._state):
                if self._state.router.url.path not in pages:
                    return
            yield

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._every):
                await self._ends.wait()
        except TimeoutError:
            return


async def is_open(tab: str) -> bool:
    """Return whether a tab has a socket, in any of the web processes."""
    sockets = RegistrationContext.get().app.event_namespace
    return sockets is not None and await sockets._token_manager.is_token_connected(tab)


async def _allows(limit: limits.Limit, actor: Actor) -> bool:
    try:
        await limits.spend(limit, actor.user_id)
    except TooMany:
        return False
    return True
