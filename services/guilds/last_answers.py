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
"""How long an answer replaces one that Discord does not give, and how many are kept."""
FIRST_SECONDS, NEXT_SECONDS = 1.5, 0.25
"""How long a read waits for Discord when there is an older answer, and how long after such a wait timed out."""
IMPATIENT_SECONDS = 10.0
"""How long NEXT_SECONDS applies after a wait that timed out."""

K = TypeVar("K", bound=Hashable)


class LastAnswers:
    """The answers of one gateway. Belongs to one event loop."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, int], float] = OrderedDict()
        self._in_vain: OrderedDict[str, float] = OrderedDict()
        """When a person's read last timed out after FIRST_SECONDS. By person, so that nobody shortens others' waits."""

    def keep(self, person: str, server_id: int) -> None:
        """Note that Discord has just said that the person runs the server."""
        _note(self._runs, (person, server_id))

    def drop(self, person: str, server_id: int) -> None:
        """Note that Discord has just said that they do not."""
        self._runs.pop((person, server_id), None)

    def stands(self, person: str, server_id: int) -> bool:
        """Return whether Discord's last answer was that the person runs the server, and is recent enough to use."""
        at = self._runs.get((person, server_id))
        return at is not None and _now() - at < KEPT_SECONDS

    @asynccontextmanager
    async def limit(self, person: str, *, brief: bool) -> AsyncGenerator[None]:
        """Limit the time of the block's requests to Discord if `brief`, for callers that have an older answer.

        Raises ProviderDown when the time is over.
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


_answers: WeakKeyDictionary[object, LastAnswers] = WeakKeyDictionary()


def of(discord: Discord) -> LastAnswers:
    """Return the last answers of this gateway."""
    return _answers.setdefault(discord, LastAnswers())
