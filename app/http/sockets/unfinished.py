"""Bound the bytes of socket messages that have begun and not ended.

The web server below assembles a message before it hands it over, and has no limit of its own under 64 MiB. The kernel
counts what each connection has received; less what was delivered, that is what it holds.
"""

import logging
import os
import select
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import Self

from app.http.proxies import Peer, peer_at
from services.runtime import rejections

_log = logging.getLogger(__name__)

ADDRESS_BYTES = 1024 * 1024
"""What the unfinished messages of one address may have in sum; with more, its largest are closed."""
ALL_BYTES = 64 * 1024 * 1024
"""What those of all addresses may have in this process."""
PAUSE_SECONDS = 0.01
"""The least time between two looks while bytes arrive; while none do, nothing is looked at."""
FORGIVEN_A_SECOND, FORGIVEN_AT_ONCE = 16, 512
"""Bytes that belong to no message: pings, and the heads of fragments. They must not add up on a socket that lasts."""
CUT = "socket closed: unfinished messages were too large"

_DESCRIPTORS = Path("/proc/self/fd")
_BYTES_RECEIVED = struct.Struct("=128xQ")
"""`tcpi_bytes_received` in Linux's `struct tcp_info`, since 4.1."""
_RESET = struct.pack("ii", 1, 0)
"""To linger for no time: close drops what was not sent, and tells the other side at once."""
_COUNTS = hasattr(socket, "TCP_INFO") and hasattr(select, "epoll") and _DESCRIPTORS.is_dir()


class Meter:
    """What one socket has received and not yet delivered."""

    def __init__(self, fd: int, peer: Peer, address: str, received: int) -> None:
        self.fd, self.peer, self.address = fd, peer, address
        self.cut = False
        self._received = self._finished = received
        self._delivered = False
        self._forgiven_at = time.monotonic()

    @property
    def unfinished(self) -> int:
        """Return the bytes that are held, as of the last look; below 0 where a delivery came after it."""
        return 0 if self.cut else self._received - self._finished

    def deliver(self, text: str) -> None:
        """Take a complete message off the count, with the head of its frame."""
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        self._finished += size + (6 if size < 126 else 8 if size < 65_536 else 14)
        self._delivered = True

    def look(self, received: int) -> None:
        """Note how much has arrived by now."""
        now = time.monotonic()
        self._received = received
        if self.unfinished < 0:
            self._finished = received
        elif self._delivered:
            forgiven = int(FORGIVEN_A_SECOND * (now - self._forgiven_at))
            self._finished += min(self.unfinished, forgiven, FORGIVEN_AT_ONCE)
            self._delivered, self._forgiven_at = False, now


class Unfinished:
    """Closes the sockets of this process whose unfinished messages are too much for their address, or for all.

    A thread looks, for it must see what arrives while the event loop is busy. It sleeps until bytes arrive.
    """

    def __init__(self) -> None:
        self._meters: dict[int, Meter] = {}
        self._arrivals: select.epoll | None = None
        self._said = False

    def open(self, peer: Peer | None, address: str) -> Meter | None:
        """Begin to count for a socket whose connection comes from `peer`; None where it cannot be counted."""
        found = self._find(peer) if peer is not None and _COUNTS else None
        if peer is None or found is None:
            if not self._said:
                self._said = True
                _log.warning("unfinished socket messages were not counted: the kernel said nothing of the connection")
            return None
        fd, received = found
        meter = self._meters[fd] = Meter(fd, peer, address, received)
        if self._arrivals is None:
            self._arrivals = select.epoll()
            threading.Thread(target=self._watch, args=(self._arrivals,), name="unfinished", daemon=True).start()
        with suppress(OSError):  # the connection has ended meanwhile
            self._arrivals.register(fd, select.EPOLLIN | select.EPOLLET)
        return meter

    def close(self, meter: Meter) -> None:
        """Count no longer for a socket."""
        if self._meters.get(meter.fd) is meter and self._arrivals is not None:
            del self._meters[meter.fd]
            with suppress(OSError):  # the kernel forgets a connection that has ended
                self._arrivals.unregister(meter.fd)

    def look(self, arrived: Iterable[int]) -> None:
        """Read how much came over these connections, and close the sockets that hold too much."""
        for fd in arrived:
            if (meter := self._meters.get(fd)) is not None:
                with _Connection(fd) as connection:
                    if connection.peer() == meter.peer:
                        meter.look(connection.received())
        holding = defaultdict[str, list[Meter]](list)
        for meter in list(self._meters.values()):
            if meter.unfinished > 0:
                holding[meter.address].append(meter)
        for meters in holding.values():
            _lower(meters, ADDRESS_BYTES)
        _lower([meter for meters in holding.values() for meter in meters], ALL_BYTES)

    def _watch(self, arrivals: select.epoll) -> None:
        while True:
            self.look([fd for fd, _ in arrivals.poll()])
            time.sleep(PAUSE_SECONDS)

    def _find(self, peer: Peer) -> tuple[int, int] | None:
        """Return the connection's descriptor and how much of it was read."""
        # Those that are watched come last: of them only one that has ended can have given its number on.
        for fd in sorted(map(int, os.listdir(_DESCRIPTORS)), key=self._meters.__contains__):
            with _Connection(fd) as connection:
                if connection.peer() == peer and (received := connection.received()):
                    # What waits came with the request's head, before it may: it is a message's.
                    return fd, received - connection.waiting()
        return None


def _lower(meters: Collection[Meter], most: int) -> None:
    """Close the largest until the others have `most` bytes in sum."""
    held = sum(meter.unfinished for meter in meters)
    for meter in sorted(meters, key=lambda one: one.unfinished, reverse=True):
        if held <= most:
            return
        held -= meter.unfinished
        meter.cut = True
        rejections.count(CUT)
        with _Connection(meter.fd) as connection:
            if connection.peer() == meter.peer:
                connection.shut_down()


class _Connection:
    """A connection of this process by its descriptor, which belongs to the web server.

    It may become another one's at any time. Inside the block it stays this one's; without a connection it has no peer.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        try:
            own = os.dup(self._fd)
        except OSError:
            return self
        try:
            # The wider family fits the addresses of both.
            self._socket = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=own)
        except OSError:
            os.close(own)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def peer(self) -> Peer | None:
        """Return whom it comes from."""
        try:
            named = self._socket.getpeername() if self._socket is not None else None
        except OSError:
            return None
        return peer_at(named)

    def received(self) -> int:
        """Return how many bytes have arrived since it was opened; 0 where the kernel does not count them."""
        assert self._socket is not None
        told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return _BYTES_RECEIVED.unpack_from(told)[0] if len(told) >= _BYTES_RECEIVED.size else 0

    def waiting(self) -> int:
        """Return how many of them nobody has read yet."""
        assert self._socket is not None
        return struct.unpack("=i", ioctl(self._socket.fileno(), FIONREAD, bytes(4)))[0]

    def shut_down(self) -> None:
        """End it; the web server then drops what it holds of a message.

        The server's close then resets the connection. Without that a sender whose window is closed would hear of the
        end only when the kernel gives up on it, minutes later, and the kernel would keep the connection until then.
        """
        assert self._socket is not None
        with suppress(OSError):  # the other side was faster
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._socket.shutdown(socket.SHUT_RDWR)
