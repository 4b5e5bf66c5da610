"""A client of the sandbox's control calls: tests make thousands, each for a quarter of the processor time of httpx."""

import json as texts
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, Self
from urllib.parse import urlsplit

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

IDLE_SECONDS = 4
"""How long an unused connection is kept: less than the sandbox keeps it."""


@dataclass(frozen=True)
class ControlAnswer:
    """What the sandbox answered, with the names that httpx gives to its parts."""

    status_code: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return texts.loads(self.content)

    def raise_for_status(self) -> None:
        assert self.status_code < 400, f"{self.status_code} {self.text}"


class SandboxControl:
    """Calls of the sandbox at an address, while the block runs."""

    def __init__(self, url: str, seconds: float = 60) -> None:
        self._url, self._seconds = url, seconds

    async def __aenter__(self) -> Self:
        self._http = ClientSession(
            self._url, connector=TCPConnector(keepalive_timeout=IDLE_SECONDS), cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(self._seconds),
        )  # fmt: skip
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def request(self, method: str, path: str, **more: Any) -> ControlAnswer:
        """Return the answer; `more` is what aiohttp takes: `json`, `params` or `headers`."""
        async with self._http.request(method, path, **more) as answer:
            return ControlAnswer(answer.status, await answer.read())

    async def get(self, path: str, **more: Any) -> ControlAnswer:
        return await self.request("GET", path, **more)

    async def post(self, path: str, **more: Any) -> ControlAnswer:
        return await self.request("POST", path, **more)

    async def put(self, path: str, **more: Any) -> ControlAnswer:
        return await self.request("PUT", path, **more)

    async def delete(self, path: str, **more: Any) -> ControlAnswer:
        return await self.request("DELETE", path, **more)


def tell(url: str, *calls: tuple[str, str, dict[str, Any]]) -> None:
    """Make control calls, each given by its method, path and body, on one connection and without an event loop."""
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as http:
        for method, path, body in calls:
            http.request(method, f"/control/{path}", texts.dumps(body), {"Content-Type": "application/json"})
            answer = http.getresponse()
            said = answer.read()
            assert answer.status < 400, f"{path}: {answer.status} {said.decode()}"
