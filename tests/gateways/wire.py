"""Small local servers that answer as a test says, and remember what they were asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = web.Response | Callable[[], web.Response] | str
"""A response, something that makes one, or "close" and "hang"."""


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str


@dataclass
class Wire:
    """A server with a list of answers; the last one is repeated."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def says(self, *answers: Answer) -> None:
        """What to answer from now on, one after the other."""
        self.answers = list(answers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(request.method, request.raw_path, request.headers.copy(), await request.text()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "close":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if answer == "hang":
            await asyncio.sleep(30)
            return web.Response()
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        assert not isinstance(answer, str)
        return answer()


@asynccontextmanager
async def wire() -> AsyncIterator[Wire]:
    """A server on a free port of this machine."""
    told = Wire()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", told.handle)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.1)
    told.url = str(server.make_url("")).rstrip("/")
    try:
        yield told
    finally:
        await server.close()
