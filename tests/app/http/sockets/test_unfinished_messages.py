"""Bytes of unfinished messages on sockets: counted by the kernel, bounded for each address and for all together."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from app.http.caller_address import Peer, Proxies, peer
from app.http.sockets import unfinished_messages
from app.http.sockets.unfinished_messages import CUT, Meter, Unfinished
from services.runtime import rejected_requests
from settings import settings

KIB = 1024
LIMIT = 64 * KIB


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits that fit into the kernel's own buffers, since nothing reads the sockets here."""
    monkeypatch.setattr(unfinished_messages, "ADDRESS_BYTES", LIMIT)
    monkeypatch.setattr(unfinished_messages, "ALL_BYTES", 3 * LIMIT)
    rejected_requests.write()
    yield
    rejected_requests.write()


class Line:
    """A connection to this process whose first request was read: both ends, and the stranger's address."""

    def __init__(self, listener: socket.socket, before: Callable[[], None]) -> None:
        self.stranger = socket.create_connection(listener.getsockname())
        before()
        self.ours, _ = listener.accept()
        self.peer: Peer = (ip_address("127.0.0.1"), self.stranger.getsockname()[1])
        self.send(100)
        assert len(self.ours.recv(100, socket.MSG_WAITALL)) == 100

    def send(self, size: int) -> None:
        """Send `size` bytes."""
        self.stranger.sendall(b"a" * size)

    def is_cut(self) -> bool:
        """Return whether our end was shut down."""
        try:
            return self.stranger.recv(1, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def close(self) -> None:
        """Close both ends."""
        self.stranger.close()
        self.ours.close()


Connect = Callable[..., Line]


@pytest.fixture
def line() -> Iterator[Connect]:
    """A function that makes connections."""
    made: list[Line] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def connect(before: Callable[[], None] = lambda: None) -> Line:
            made.append(Line(listener, before))
            return made[-1]

        yield connect
    for one in made:
        one.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds, up to a deadline that no healthy machine reaches."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.005)


def opened(watch: Unfinished, one: Line, address: str = "192.0.2.1") -> Meter:
    """Return the meter of a connection."""
    meter = watch.open(one.peer, address)
    assert meter is not None
    return meter


def test_an_address_that_holds_too_much_loses_its_largest_and_others_go_on(line: Connect) -> None:
    watch, small, large, other = Unfinished(), line(), line(), line()
    meters = [opened(watch, small), opened(watch, large), opened(watch, other, "192.0.2.2")]
    small.send(20 * KIB)
    other.send(50 * KIB)
    until(lambda: [one.unfinished for one in meters] == [20 * KIB, 0, 50 * KIB])
    large.send(60 * KIB)
    until(large.is_cut)
    assert (small.is_cut(), other.is_cut()) == (False, False)
    assert rejected_requests._counts == {CUT: 1}
    small.send(KIB)
    until(lambda: meters[0].unfinished == 21 * KIB)


def test_all_addresses_together_have_a_limit(line: Connect) -> None:
    watch, lines = Unfinished(), [line() for _ in range(4)]
    for number, one in enumerate(lines):
        opened(watch, one, f"192.0.2.{number}")
        one.send((50 + number) * KIB)
    until(lines[3].is_cut)
    assert not any(one.is_cut() for one in lines[:3])


def test_what_was_delivered_and_what_came_before_the_socket_does_not_count(line: Connect) -> None:
    one, watch = line(), Unfinished()
    one.send(60 * KIB)
    assert len(one.ours.recv(60 * KIB, socket.MSG_WAITALL)) == 60 * KIB
    meter = opened(watch, one)
    for text in ("a" * 100, "a" * 40_000, "ä" * 200, "a" * 10):
        size = len(text.encode()) + (6 if len(text) < 126 else 8)
        one.send(size)
        # A message is delivered when it has arrived completely.
        until(lambda: meter.unfinished >= size - KIB // 2)  # noqa: B023
        assert len(one.ours.recv(size, socket.MSG_WAITALL)) == size
        meter.deliver(text)
        until(lambda: meter.unfinished <= 0)
    one.send(60 * KIB)
    # The count shrinks a little with the time that has passed.
    until(lambda: 59 * KIB < meter.unfinished <= 60 * KIB)
    assert not one.is_cut()


def test_what_came_with_the_head_of_the_request_counts(line: Connect) -> None:
    one, watch = line(), Unfinished()
    one.send(LIMIT)
    until(lambda: len(one.ours.recv(LIMIT, socket.MSG_PEEK)) == LIMIT)
    meter = opened(watch, one)
    one.send(1)
    until(one.is_cut)
    assert meter.cut


def test_pings_do_not_add_up_on_a_socket_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(unfinished_messages.time, "monotonic", lambda: now[0])
    meter = Meter(0, (ip_address("192.0.2.1"), 1), "192.0.2.1", 0)
    received = 0
    for _ in range(10_000):
        now[0] += 25
        received += 11 + 7
        meter.look(received)
        meter.deliver("3")
    assert meter.unfinished < KIB
    now[0] += 3600
    meter.look(received + 60 * KIB)
    assert meter.unfinished > 59 * KIB, "a long silence does not let a message grow"


def test_a_connection_that_ended_leaves_nothing_and_its_number_is_anothers(line: Connect) -> None:
    watch, first = Unfinished(), line()
    meter = opened(watch, first)
    second = line(first.ours.close)
    assert second.ours.fileno() == meter.fd, "the number that is free is given again"
    again = opened(watch, second)
    watch.close(meter)
    second.send(2 * LIMIT)
    until(second.is_cut)
    watch.close(again)
    assert not watch._meters
    third = line()
    third.send(2 * LIMIT)
    assert not third.is_cut()


def test_where_nothing_is_counted_it_is_said_once(
    line: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unfinished_messages, "_COUNTS", False)
    watch, one = Unfinished(), line()
    assert [watch.open(one.peer, "192.0.2.1") for _ in range(3)] == [None] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(("forwarded", "expected"), [(False, "127.0.0.1"), (True, "198.51.100.7")])
async def test_behind_a_proxy_its_connection_counts_for_the_visitor(
    monkeypatch: pytest.MonkeyPatch, forwarded: bool, expected: str
) -> None:
    monkeypatch.setenv("TRUSTED_PROXIES", "127.0.0.1")
    settings.cache_clear()
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"][0], peer(scope)))

    headers = [(b"x-forwarded-for", b"198.51.100.7")] if forwarded else []
    scope = {"type": "websocket", "client": ("127.0.0.1", "40000"), "headers": headers}
    await Proxies(app)(scope, asyncio.Queue[Any]().get, asyncio.Queue[Any]().put)
    settings.cache_clear()
    assert seen == [(expected, (ip_address("127.0.0.1"), 40_000))]


def test_looking_keeps_no_descriptor(line: Connect) -> None:
    watch, one = Unfinished(), line()
    meter = opened(watch, one)
    descriptors = Path("/proc/self/fd")
    before = len(os.listdir(descriptors))
    for _ in range(50):
        watch.look([meter.fd, 0, 10_000])
    assert len(os.listdir(descriptors)) <= before
