"""People's own lists of guilds, read with their tokens: at most one request in a window for each token, and cached."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown

WINDOW, LONGEST_WINDOW = 1.0, 10.0
"""The window in seconds in which Discord allows one list for each token if its headers do not say, and the longest
window that we accept from headers (docs/facts.md#discord-users)."""
PATIENCE = 4.0
"""The most seconds that a person waits until Discord allows the next list."""
KEPT_SECONDS, KEPT = 60.0, 1_000
"""The seconds for which an answer may replace one that Discord does not allow yet, and for how many tokens."""


@dataclass(frozen=True, slots=True)
class Listing:
    """An answer, with the seconds from now in which Discord allows no other list for the token."""

    body: object
    window: float = WINDOW


@dataclass(frozen=True, slots=True)
class _Kept:
    listing: Listing
    at: float


class OwnGuilds:
    """Lists by token, in one process and event loop."""

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[object]] = {}
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, token: str, ask: Callable[[], Awaitable[Listing]], *, max_age: float = WINDOW) -> object:
        """Return a token's list, at most `max_age` seconds old: the cached one of this window, or a new one from `ask`.

        Calls at the same time share one request. If Discord does not allow a request yet, wait up to PATIENCE. If that
        is not enough, or Discord does not answer, return the last answer if it is new enough. Raises the errors of
        `ask`.
        """
        kept = self._kept.get(token)
        open_in = kept.at + kept.listing.window - _now() if kept is not None else 0.0
        if kept is not None and open_in > 0 and _now() - kept.at < max_age:
            return kept.listing.body
        task = self._asked.get(token)
        if task is None:
            task = self._asked[token] = asyncio.create_task(self._ask(token, ask, open_in))
            task.add_done_callback(lambda done: self._done(token, done))
        try:
            # A cancelled caller must not cancel the request for the others.
            return await asyncio.shield(task)
        except (ProviderBusy, ProviderConfused, ProviderDown):
            if kept is None or _now() - kept.at >= max_age:
                raise
            return kept.listing.body

    def _done(self, token: str, task: asyncio.Task[object]) -> None:
        self._asked.pop(token, None)
        if not task.cancelled():
            # Retrieved here too, because all callers may have been cancelled.
            task.exception()

    async def _ask(self, token: str, ask: Callable[[], Awaitable[Listing]], open_in: float) -> object:
        until = _now() + PATIENCE
        await asyncio.sleep(min(open_in, PATIENCE))
        while True:
            try:
                listing = await ask()
            except ProviderBusy as fault:
                wait = WINDOW if fault.retry_after is None else max(0.05, fault.retry_after)
                if _now() + wait > until:
                    raise
                await asyncio.sleep(wait)
            else:
                self._keep(token, listing)
                return listing.body

    def _keep(self, token: str, listing: Listing) -> None:
        now = _now()
        self._kept[token] = _Kept(listing, now)
        self._kept.move_to_end(token)
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if len(self._kept) <= KEPT and now - oldest.at < KEPT_SECONDS:
                break
            self._kept.popitem(last=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
