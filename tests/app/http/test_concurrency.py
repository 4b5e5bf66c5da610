"""The requests of one address take turns, and do not delay those of others."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.api import api
from app.api.requests.body_limit import BodyLimit
from app.http import concurrency
from app.http.concurrency import AT_ONCE, OF_ONE_SESSION, AddressConcurrency, WithBody, WithoutBody

CROWD, SOMEBODY = "203.0.113.7", "198.51.100.7"


class Work:
    """An app whose requests end when they are released; `begun` has their addresses, `sessions` their session ids."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.sessions: list[bytes] = []
        self.ends = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["client"][0])
        self.sessions += [value for _, value in scope["headers"]]
        await self.ends.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})


async def ask(
    app: AddressConcurrency, address: str, session: str = "", *, body: tuple[bytes, bytes] | None = None
) -> int:
    """Make one request, and return the status of its answer."""
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"x-session-id", session.encode())] if session else []
    headers += [body] if body is not None else []
    scope: Any = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (address, 1)}
    await app(scope, receive, send)
    return said[0]["status"]


async def until(work: Work, count: int) -> None:
    """Wait until that many requests are being worked on."""
    async with asyncio.timeout(30):
        while len(work.begun) < count:
            await asyncio.sleep(0.005)


async def test_a_thousand_requests_of_one_address_keep_nobody_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 3_600.0)
    work = Work()
    app = WithoutBody(work)
    crowd = [asyncio.create_task(ask(app, CROWD)) for _ in range(1_000)]
    await until(work, OF_ONE_SESSION)
    somebody = asyncio.create_task(ask(app, SOMEBODY))
    await until(work, OF_ONE_SESSION + 1)
    assert work.begun == [CROWD] * OF_ONE_SESSION + [SOMEBODY]
    work.ends.set()
    assert await somebody == 200
    assert set(await asyncio.gather(*crowd)) == {200}
    assert app._addresses == {}


async def test_answers_that_wait_for_nothing_keep_nobody_else_waiting_either() -> None:
    work = Work()
    work.ends.set()
    app = WithoutBody(work)
    crowd = [asyncio.create_task(ask(app, CROWD)) for _ in range(1_000)]
    somebody = asyncio.create_task(ask(app, SOMEBODY))
    assert set(await asyncio.gather(somebody, *crowd)) == {200}
    assert work.begun.index(SOMEBODY) <= 2 * AT_ONCE, "behind all that came before it"
    assert app._addresses == {}


async def test_the_people_behind_one_address_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 3_600.0)
    work = Work()
    app = WithoutBody(work)
    crowd = [asyncio.create_task(ask(app, CROWD, "one")) for _ in range(300)]
    await until(work, OF_ONE_SESSION)
    other = [asyncio.create_task(ask(app, CROWD, "another")) for _ in range(10)]
    await until(work, AT_ONCE)
    assert work.sessions == [b"one"] * OF_ONE_SESSION + [b"another"] * (AT_ONCE - OF_ONE_SESSION)
    work.ends.set()
    await asyncio.gather(*other, *crowd)
    assert work.sessions.index(b"one", AT_ONCE) < AT_ONCE + 2, "in turns"
    assert app._addresses == {}


async def test_requests_that_wait_for_others_give_their_places_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 0.01)
    work = Work()
    app = WithoutBody(work)
    asked = [asyncio.create_task(ask(app, CROWD)) for _ in range(5 * AT_ONCE)]
    await until(work, len(asked))
    work.ends.set()
    await asyncio.gather(*asked)
    assert app._addresses == {}


async def test_beyond_what_may_wait_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 3_600.0)
    monkeypatch.setattr(concurrency, "MOST_WAITING", 3)
    work = Work()
    app = WithoutBody(work)
    asked = [asyncio.create_task(ask(app, CROWD)) for _ in range(OF_ONE_SESSION + 3)]
    await until(work, OF_ONE_SESSION)
    assert await ask(app, CROWD) == 429
    work.ends.set()
    assert set(await asyncio.gather(*asked)) == {200}


async def test_who_hangs_up_while_waiting_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 3_600.0)
    work = Work()
    app = WithoutBody(work)
    asked = [asyncio.create_task(ask(app, CROWD)) for _ in range(OF_ONE_SESSION)]
    await until(work, OF_ONE_SESSION)
    gone = asyncio.create_task(ask(app, CROWD))
    await asyncio.sleep(0)
    waits = asyncio.create_task(ask(app, CROWD))
    await asyncio.sleep(0)
    gone.cancel()
    work.ends.set()
    assert await waits == 200
    assert set(await asyncio.gather(*asked)) == {200}
    assert app._addresses == {}


async def test_a_body_that_comes_slowly_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TURN_SECONDS", 3_600.0)
    work = Work()
    app = WithoutBody(work)
    slow = [asyncio.create_task(ask(app, CROWD, body=(b"content-length", b"9"))) for _ in range(2 * AT_ONCE)]
    chunked = [asyncio.create_task(ask(app, CROWD, body=(b"transfer-encoding", b"chunked"))) for _ in range(AT_ONCE)]
    await until(work, len(slow) + len(chunked))
    whole = asyncio.create_task(ask(app, CROWD))
    await until(work, len(slow) + len(chunked) + 1)
    work.ends.set()
    await asyncio.gather(whole, *slow, *chunked)


def test_bodies_are_counted_when_they_have_been_read() -> None:
    gates = [one.cls for one in api.user_middleware]
    assert gates[-2:] == [BodyLimit, WithBody]
