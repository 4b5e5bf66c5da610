"""Discord's last answers about who runs a server: reads use them for up to a minute while Discord is away.

Changes never use them. Each process keeps its own answers, and a restart forgets them.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

from gateways.discord.rest import Discord
from gateways.discord.types import DISCORD
from gateways.transport.errors import ProviderDown

KEPT_SECONDS, KEPT = 60.0, 10_000
"""Seconds for which an answer may be used while Discord gives none, and how many answers are kept."""
FIRST_SECONDS, NEXT_SECONDS = 1.5, 0.25
"""Seconds that a read with an older answer waits for Discord: at first, and soon after such a wait timed out."""
IMPATIENT_SECONDS = 10.0
"""Seconds for which NEXT_SECONDS applies after a wait that timed out."""

K = TypeVar("K", bound=Hashable)


class PermissionCache:
    """The cache of one client of Discord. Belongs to one event loop."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, int], float] = OrderedDict()
        self._in_vain: OrderedDict[str, float] = OrderedDict()
        """When each person's read last timed out after FIRST_SECONDS, so that one person's wait affects no other's."""

    def keep(self, person: str, server_id: int) -> None:
        """Record that Discord has just said that the person runs the server."""
        _note(self._runs, (person, server_id))

    def drop(self, person: str, server_id: int) -> None:
        """Record that Discord has just said that the person does not run the server."""
        self._runs.pop((person, server_id), None)

    def stands(self, person: str, server_id: int) -> bool:
        """Return whether Discord's last answer was that the person runs the server, and is recent enough to use."""
        at = self._runs.get((person, server_id))
        return at is not None and _now() - at < KEPT_SECONDS

    @asynccontextmanager
    async def limit(self, person: str, *, brief: bool) -> AsyncGenerator[None]:
        """With `brief`, limit how long the block's requests to Discord may take, for callers with an older answer.

        Raises ProviderDown when the time is up.
        """
        if not brief:
            yield
            return
        waited = self._in_vain.get(person)
        patient = waited is None or _now() - waited >= IMPATIENT_SECONDS
        try:
            async with asyncio.timeout(FIRST_SECONDS if patient else NEXT_SECONDS):
                yield
        except TimeoutError:
            if patient:
                _note(self._in_vain, person)
            raise ProviderDown(DISCORD, "no answer in the time that a screen waits") from None
        self._in_vain.pop(person, None)


def _note(times: OrderedDict[K, float], key: K) -> None:
    times[key] = _now()
    times.move_to_end(key)
    if len(times) > KEPT:
        times.popitem(last=False)


def _now() -> float:
    return asyncio.get_running_loop().time()


_caches: WeakKeyDictionary[object, PermissionCache] = WeakKeyDictionary()


def of(discord: Discord) -> PermissionCache:
    """Return the cache of this client of Discord."""
    return _caches.setdefault(discord, PermissionCache())
