"""Small local servers that give a test's answers and record the requests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = web.Response | Callable[[], web.Response] | str
"""A response, a function that makes one, "close" or "hang"."""


@dataclass
class Asked:
    """One request as received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str


@dataclass
class Wire:
    """A server with a list of answers, the last of which is repeated."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def says(self, *answers: Answer) -> None:
        """Set the answers from now on, in order."""
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
