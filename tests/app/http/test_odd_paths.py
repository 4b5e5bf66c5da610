"""Paths that no route has: long ones are refused before they cost anything, line breaks stay encoded."""

from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from app.http.odd_paths import LONGEST, OddPaths
from services.runtime import rejected_requests


class Inside:
    """An app that remembers the paths of the requests that reach it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})


async def asked(inside: Inside, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=OddPaths(inside))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as client:
        return await client.get(path)


@pytest.mark.parametrize(
    "path", ["/" + "a/" * 30_000, "/assets/" + "a/" * 5_000, "/api/status?" + "a&" * 5_000, "/" + "%41" * 2_800]
)
async def test_a_longer_address_than_any_of_ours_is_refused_before_it_is_read(path: str) -> None:
    inside = Inside()
    answer = await asked(inside, path)
    assert (answer.status_code, answer.json()) == (414, {"message": "The request is larger than 8 KiB."})
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert inside.paths == []


async def test_the_longest_address_passes() -> None:
    inside = Inside()
    assert (await asked(inside, "/x?" + "a" * (LONGEST - 2))).status_code == 200
    assert inside.paths == ["/x"]


async def test_a_line_break_stays_encoded() -> None:
    inside = Inside()
    await asked(inside, "/a%0Ab")
    assert inside.paths == ["/a%0Ab"]


async def test_a_socket_with_a_long_address_is_not_opened() -> None:
    said: list[Message] = []
    scope: dict[str, Any] = {"type": "websocket", "path": "/_event", "query_string": b"token=" + b"a&" * 5_000}

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        said.append(message)

    inside = Inside()
    await OddPaths(inside)(scope, receive, send)
    assert said == [{"type": "websocket.close", "code": 1008}]
    assert inside.paths == []


async def test_refusals_are_counted_and_not_written_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    rejected_requests.write()
    caplog.clear()
    for _ in range(50):
        await asked(Inside(), "/" + "a/" * 5_000)
    assert not caplog.records
    rejected_requests.write()
    assert "50x 'http refused: a long address'" in caplog.text
