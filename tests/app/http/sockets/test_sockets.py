"""The gate of every socket: it closes sockets that send malformed or too large messages, or none, with a reason."""

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.http.sockets import gate as sockets
from app.http.sockets.gate import SocketGate
from services.runtime import rate_limits
from settings import settings

HELLO = "40/_event,"


def known(name: str) -> bool:
    """Return whether there is a handler of this name."""
    return name == "state.take"


@pytest.fixture(autouse=True)
async def fresh(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Empty counts before and after the test."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    settings.cache_clear()
    await rate_limits.forget()
    yield
    await rate_limits.forget()
    settings.cache_clear()


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that sets limits for a test."""

    def say(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name.upper(), str(value))
        settings.cache_clear()

    return say


class Listening:
    """An app that accepts every socket and keeps what it hears until the socket ends."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            self.heard.append(message["text"])


class Socket:
    """A browser's side of one socket in front of the gate."""

    def __init__(self, gate: SocketGate, query: str = "token=abc", address: str = "192.0.2.1") -> None:
        scope = {"type": "websocket", "path": "/_event", "query_string": query.encode(), "client": (address, 1)}
        self._to: asyncio.Queue[Message] = asyncio.Queue()
        self._from: asyncio.Queue[Message] = asyncio.Queue()
        self._to.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(gate(scope, self._to.get, self._from.put))

    def say(self, *texts: str | bytes) -> None:
        """Send messages."""
        for text in texts:
            kind = "text" if isinstance(text, str) else "bytes"
            self._to.put_nowait({"type": "websocket.receive", kind: text})

    async def opened(self) -> bool:
        """Return whether the socket was accepted."""
        return (await self._from.get())["type"] == "websocket.accept"

    async def end(self) -> str | None:
        """Hang up, and return why the other side had closed before, if it had."""
        self._to.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self.task
        last = self._from.get_nowait() if not self._from.empty() else None
        return last["reason"] if last is not None else None

    async def closed(self) -> tuple[int, str]:
        """Return the code and reason with which the other side closes."""
        message = await self._from.get()
        assert message["type"] == "websocket.close", message
        await self.task
        return message["code"], message["reason"]


def event(name: Any = "state.take", payload: Any = None, router_data: Any = None) -> str:
    """Return an event as Reflex's screens send it."""
    place = {"pathname": "/", "asPath": "/?a=b", "query": {"a": "b"}} if router_data is None else router_data
    said = {"name": name, "payload": {} if payload is None else payload, "router_data": place}
    return f"42/_event,{json.dumps(['event', said])}"


async def test_what_our_screens_say_is_heard() -> None:
    app = Listening()
    socket = Socket(SocketGate(app, known))
    assert await socket.opened()
    greeting = {"event": json.loads(event().removeprefix("42/_event,"))[1], "state_schema": "abc"}
    lost = event(router_data={"pathname": "/no/where", "asPath": "/no/where", "query": {"splat": ["no", "where"]}})
    said = [
        "3", f"{HELLO}{json.dumps(greeting)}", event(), lost, '42/_event,["ping"]',
        '42/_event,["client_error",{"message":"x"}]', "3", "41/_event,", HELLO, event(), "41",
    ]  # fmt: skip
    socket.say(*said)
    assert await socket.end() is None
    assert app.heard == said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x04\x00", "binary messages are not spoken here"),
        ("", "a message has a wrong shape"),
        ("4", "a message has a wrong shape"),
        ("42[]", "a message has a wrong shape"),
        ("40/other,", "a message has a wrong shape"),
        ("451-/_event,[]", "a message has a wrong shape"),
        ('42/_event,["connect",{"asgi.scope":{}}]', "a message has a wrong shape"),
        ('42/_event,["disconnect"]', "a message has a wrong shape"),
        ('42/_event,7["event",{}]', "a message has a wrong shape"),
        ('42/_event,["event",{}', "a message is not JSON"),
        ('42/_event,["event",' + "[" * 50_000, "a message is not JSON"),
        (event(payload={"deep": json.loads("[" * 900 + "]" * 900)}), "a message is nested too deeply"),
        (f'42/_event,["client_error",{"[" * 900}{"]" * 900}]', "a message is nested too deeply"),
        ('42/_event,["event",{"name":"state.take","payload":{"n":NaN}}]', "a message is not JSON"),
        ('42/_event,["event",{"name":"state.take","payload":{"n":' + "9" * 5_000 + "}}]", "a message is not JSON"),
        ('42/_event,["event",{},{}]', "an event has a wrong shape"),
        ('42/_event,["event","{}"]', "an event has a wrong shape"),
        ('42/_event,["event"]', "an event has a wrong shape"),
        (event(name=None), "an event has no name"),
        (event(name={"$ne": 1}), "an event has no name"),
        (event(name="a" * 301), "an event has no name"),
        (event(name="state.nothing"), "there is no such handler"),
        (event(name="a\nERROR forged"), "an event has no name"),
        (event(payload=[]), "a payload has a wrong shape"),
        (event(payload="x"), "a payload has a wrong shape"),
        (event(router_data=[]), "a page's address has a wrong shape"),
        (event(router_data={"pathname": 5}), "a page's address has a wrong shape"),
        (event(router_data={"asPath": "/" * 5_000}), "a page's address has a wrong shape"),
        (event(router_data={"query": {"a": ["b"]}}), "a page's address has a wrong shape"),
        (event(router_data={"query": {"splat": [["b"]]}}), "a page's address has a wrong shape"),
        (event(router_data={"pathname": "/\ud800"}), "a page's address has a wrong shape"),
        (event(router_data={"query": {"\udc00": "b"}}), "a page's address has a wrong shape"),
        (event(router_data={"query": [1]}), "a page's address has a wrong shape"),
        (event(payload={"text": "x" * sockets.LARGEST_MESSAGE}), "a message was too large"),
        (f"{HELLO}[]", "the greeting has a wrong shape"),
        (f'{HELLO}{{"event":5}}', "an event has a wrong shape"),
        (f'{HELLO}{{"state_schema":{{}}}}', "the greeting has a wrong shape"),
    ],
)
async def test_anything_else_closes_the_socket_with_a_reason(said: str | bytes, why: str) -> None:
    app = Listening()
    socket = Socket(SocketGate(app, known))
    assert await socket.opened()
    socket.say(HELLO, said, event())
    code, reason = await socket.closed()
    assert reason == why
    assert code in {1008, 1009}
    assert app.heard == [HELLO], "nothing that came with it or after it is heard"


async def test_nothing_is_heard_before_the_greeting() -> None:
    app = Listening()
    socket = Socket(SocketGate(app, known))
    assert await socket.opened()
    socket.say(event())
    assert (await socket.closed())[1] == "a message has a wrong shape"
    assert app.heard == []


@pytest.mark.parametrize("said", [[], ["3", "3"]])
async def test_who_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr(sockets, "FIRST_WORD_SECONDS", 0.05)
    socket = Socket(SocketGate(Listening(), known))
    assert await socket.opened()
    socket.say(*said)
    assert await socket.closed() == (1008, "it said nothing")


@pytest.mark.parametrize("query", ["", "token=", "token=a%00b", f"token={'a' * 65}", "EIO=4", "token=a&token=b"])
async def test_a_socket_names_its_tab(query: str) -> None:
    assert await Socket(SocketGate(Listening(), known), query).closed() == (1008, "it names no tab")


async def test_an_address_has_so_many_sockets_and_others_have_theirs(limit: Callable[..., None]) -> None:
    limit(limit_sockets=2)
    gate = SocketGate(Listening(), known)
    mine = [Socket(gate) for _ in range(2)]
    assert [await one.opened() for one in mine] == [True, True]
    assert await Socket(gate).closed() == (1013, "this address has too many sockets")
    other = Socket(gate, address="192.0.2.2")
    assert await other.opened()
    for one in [*mine, other]:
        await one.end()
    assert not gate._open, "who left is not counted"


async def test_a_socket_that_fails_at_once_is_not_counted_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    gate = SocketGate(Listening(), known)
    monkeypatch.setattr(gate._unfinished, "open", full)
    with pytest.raises(OSError, match="Too many open files"):
        await Socket(gate).task
    assert not gate._open


async def test_sockets_are_not_opened_over_and_over(limit: Callable[..., None]) -> None:
    limit(limit_sockets=2)
    gate = SocketGate(Listening(), known)
    for _ in range(20):
        socket = Socket(gate)
        assert await socket.opened()
        await socket.end()
    assert await Socket(gate).closed() == (1013, "this address opens sockets too fast")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the gate would have slept each time."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(sockets.asyncio, "sleep", note)
    return found


async def test_who_is_too_fast_is_read_more_slowly_and_loses_nothing(
    limit: Callable[..., None], slept: list[float]
) -> None:
    limit(limit_events=60)
    app = Listening()
    socket = Socket(SocketGate(app, known))
    assert await socket.opened()
    socket.say(HELLO, *[event()] * 14)
    await socket.end()
    assert len(app.heard) == 15
    assert len(slept) == 5, "ten seconds' share may come at once"
    assert slept == sorted(slept)
    assert slept[-1] == pytest.approx(5, abs=1)


async def test_a_long_message_counts_as_several_events(limit: Callable[..., None], slept: list[float]) -> None:
    limit(limit_events=60)
    app = Listening()
    socket = Socket(SocketGate(app, known))
    assert await socket.opened()
    long = event(payload={"text": "a" * 64 * 1024})
    socket.say(HELLO, long, long)
    await socket.end()
    assert app.heard == [HELLO, long, long]
    assert len(slept) == 1, "one fits into ten seconds' share"
    assert slept[0] == pytest.approx(7, abs=1)


async def test_many_tabs_of_one_address_are_read_more_slowly_together(
    limit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(limit_events=60, limit_sockets=60)
    slept: list[float] = []

    async def note(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(sockets.asyncio, "sleep", note)
    app = Listening()
    gate = SocketGate(app, known)
    crowd = [Socket(gate, f"token=t{number}") for number in range(40)]
    for socket in crowd:
        assert await socket.opened()
        socket.say(HELLO, *[event()] * 8)
    for socket in crowd:
        await socket.end()
    assert len(app.heard) == 40 * 9
    assert len(slept) == 40 * 9 - 10, "each alone is slow enough, but not all of them"
    assert slept[-1] == pytest.approx(70, abs=5), "five people's share is five a second"
    slept.clear()
    other = Socket(gate, address="192.0.2.2")
    assert await other.opened()
    other.say(HELLO, *[event()] * 8)
    await other.end()
    assert slept == [], "others are not slowed down"


def test_by_default_an_address_has_few_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIMIT_SOCKETS", raising=False)
    settings.cache_clear()
    # Each one costs a connection, a state and a turn of the event loop.
    assert settings().limit_sockets <= 60
    settings.cache_clear()
