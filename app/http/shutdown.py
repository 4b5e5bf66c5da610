"""Stopping without waiting for ever: what is still being answered when the process is to end gets some seconds more.

The web server waits for every request under way, and one that waits for a slow provider can take longer than the
server's own patience: it then kills its worker, and connections are not closed as they should be.
"""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.begun import Begun

PATIENCE_SECONDS = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Leaving:
    """Answers 503 for requests that are not done in time once `begin` was called; before, it changes nothing."""

    _under_way: ClassVar[set[asyncio.Timeout]] = set()
    _ends_at: ClassVar[float | None] = None

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @classmethod
    def begin(cls, patience: float = PATIENCE_SECONDS) -> None:
        """The process is to end: requests have so many seconds left, those still to come too."""
        cls._ends_at = asyncio.get_running_loop().time() + patience
        for limit in cls._under_way:
            limit.reschedule(cls._ends_at)

    @classmethod
    @contextmanager
    def on_signals(cls) -> Generator[None]:
        """While the block lasts, the signals that end the process call `begin`, beside whoever heard them before."""
        loop = asyncio.get_running_loop()
        cls._ends_at = None

        def told(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(cls.begin)
            before = previous[signal.Signals(number)]
            if callable(before):
                before(number, frame)

        previous = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, told)
        try:
            yield
        finally:
            for number, before in previous.items():
                signal.signal(number, before)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; sockets end by themselves."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = Begun(send)
        limit = asyncio.timeout_at(self._ends_at)
        try:
            async with limit:
                self._under_way.add(limit)
                await self._app(scope, receive, begun)
        except TimeoutError:
            if not limit.expired() or begun.yet:
                raise
            answer = JSONResponse({"message": "The service restarts. Please try again."}, 503, {"Retry-After": "5"})
            await answer(scope, receive, send)
        finally:
            self._under_way.discard(limit)
