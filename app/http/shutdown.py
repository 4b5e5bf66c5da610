"""Ends running requests a few seconds after a shutdown began.

The web server waits for every running request. One that waits for a slow provider can outlast the server's patience:
it then kills its worker, and connections are not closed properly.
"""

import asyncio
import faulthandler
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from app.http import languages
from app.http.middleware import Begun, HttpMiddleware
from locales import _

PATIENCE_SECONDS = 5.0
STUCK_SECONDS = 9.0
"""Seconds after which the process writes the stack of each of its threads; the web server kills it after ten."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Leaving(HttpMiddleware):
    """Answers 503 for requests that do not finish in time after `begin`; before that it changes nothing."""

    _under_way: ClassVar[set[asyncio.Timeout]] = set()
    _ends_at: ClassVar[float | None] = None

    @classmethod
    def begin(cls, patience: float = PATIENCE_SECONDS) -> None:
        """Give all requests, including later ones, `patience` seconds from now."""
        cls._ends_at = asyncio.get_running_loop().time() + patience
        for limit in cls._under_way:
            limit.reschedule(cls._ends_at)

    @classmethod
    @contextmanager
    def on_signals(cls) -> Generator[None]:
        """Call `begin` on the signals that end the process, beside the handlers already installed."""
        loop = asyncio.get_running_loop()
        cls._ends_at = None

        def told(number: int, frame: FrameType | None) -> None:
            faulthandler.dump_traceback_later(STUCK_SECONDS)
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

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; sockets need no limit here."""
        begun = Begun(send)
        limit = asyncio.timeout_at(self._ends_at)
        try:
            async with limit:
                self._under_way.add(limit)
                await self._app(scope, receive, begun)
        except TimeoutError:
            if not limit.expired() or begun.yet:
                raise
            with languages.of_request(Headers(scope=scope)):
                said = _("The service restarts. Please try again.")
            answer = JSONResponse({"message": said}, 503, {"Retry-After": "5"})
            await answer(scope, receive, send)
        finally:
            self._under_way.discard(limit)
