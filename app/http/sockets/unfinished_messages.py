"""Limits the bytes of incomplete socket messages.

The web server assembles a message before it hands it over, with no limit under 64 MiB. The kernel counts the bytes
each connection received; minus the delivered ones, that is what the server holds.
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

from app.http.caller_address import Peer, peer_at
from services.runtime import rejected_requests

_log = logging.getLogger(__name__)

ADDRESS_BYTES = 1024 * 1024
"""Bytes of one address's incomplete messages together; above it the largest are closed."""
ALL_BYTES = 64 * 1024 * 1024
"""Bytes of all addresses' incomplete messages in this process."""
PAUSE_SECONDS = 0.01
"""Shortest pause between two checks while bytes arrive; without new bytes nothing is checked."""
FORGIVEN_A_SECOND, FORGIVEN_AT_ONCE = 16, 512
"""Bytes that belong to no message (pings, fragment headers), which must not add up on a long-lived socket."""
CUT = "socket closed: unfinished messages were too large"

_DESCRIPTORS = Path("/proc/self/fd")
_BYTES_RECEIVED = struct.Struct("=128xQ")
"""`tcpi_bytes_received` in Linux's `struct tcp_info`, since 4.1."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of zero: close discards unsent bytes and resets the connection at once."""
_COUNTS = hasattr(socket, "TCP_INFO") and hasattr(select, "epoll") and _DESCRIPTORS.is_dir()


class Meter:
    """The bytes that one socket has received and not yet delivered."""

    def __init__(self, fd: int, peer: Peer, address: str, received: int) -> None:
        self.fd, self.peer, self.address = fd, peer, address
        self.cut = False
        self._received = self._finished = received
        self._delivered = False
        self._forgiven_at = time.monotonic()

    @property
    def unfinished(self) -> int:
        """The bytes held at the last check; below 0 if a delivery came after it."""
        return 0 if self.cut else self._received - self._finished

    def deliver(self, text: str) -> None:
        """Subtract a complete message, with its frame header."""
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        self._finished += size + (6 if size < 126 else 8 if size < 65_536 else 14)
        self._delivered = True

    def look(self, received: int) -> None:
        """Store how much has arrived by now."""
        now = time.monotonic()
        self._received = received
        if self.unfinished < 0:
            self._finished = received
        elif self._delivered:
            forgiven = int(FORGIVEN_A_SECOND * (now - self._forgiven_at))
            self._finished += min(self.unfinished, forgiven, FORGIVEN_AT_ONCE)
            self._delivered, self._forgiven_at = False, now


class Unfinished:
    """Closes sockets of this process whose incomplete messages are too large for their address, or for all together.

    It uses a thread, which sees arrivals even while the event loop is busy. The thread sleeps until bytes arrive.
    """

    def __init__(self) -> None:
        self._meters: dict[int, Meter] = {}
        self._arrivals: select.epoll | None = None
        self._said = False

    def open(self, peer: Peer | None, address: str) -> Meter | None:
        """Start to count for a socket whose connection comes from `peer`; return None if it cannot be counted."""
        found = self._find(peer) if peer is not None and _COUNTS else None
        if peer is None or found is None:
            if not self._said:
                self._said = True
                _log.warning("cannot count unfinished socket messages, the kernel gave no data for the connection")
            return None
        fd, received = found
        meter = self._meters[fd] = Meter(fd, peer, address, received)
        if self._arrivals is None:
            self._arrivals = select.epoll()
            threading.Thread(target=self._watch, args=(self._arrivals,), name="unfinished", daemon=True).start()
        with suppress(OSError):  # the connection has ended
            self._arrivals.register(fd, select.EPOLLIN | select.EPOLLET)
        return meter

    def close(self, meter: Meter) -> None:
        """Stop counting for a socket."""
        if self._meters.get(meter.fd) is meter and self._arrivals is not None:
            del self._meters[meter.fd]
            with suppress(OSError):  # the kernel has forgotten the ended connection
                self._arrivals.unregister(meter.fd)

    def look(self, arrived: Iterable[int]) -> None:
        """Read how much came over these connections, and close sockets that hold too much."""
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
        """Return the connection's descriptor and the number of bytes read from it."""
        # Watched descriptors come last: only one whose connection ended can have been reused.
        for fd in sorted(map(int, os.listdir(_DESCRIPTORS)), key=self._meters.__contains__):
            with _Connection(fd) as connection:
                if connection.peer() == peer and (received := connection.received()):
                    # Bytes still waiting came with the request's head and belong to a message.
                    return fd, received - connection.waiting()
        return None


def _lower(meters: Collection[Meter], most: int) -> None:
    """Close the largest until the rest have at most `most` bytes together."""
    held = sum(meter.unfinished for meter in meters)
    for meter in sorted(meters, key=lambda one: one.unfinished, reverse=True):
        if held <= most:
            return
        held -= meter.unfinished
        meter.cut = True
        rejected_requests.count(CUT)
        with _Connection(meter.fd) as connection:
            if connection.peer() == meter.peer:
                connection.shut_down()


class _Connection:
    """A connection of this process by its descriptor, which belongs to the web server.

    The descriptor may be reused at any time, but not inside the block. Without a connection there is no peer.
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
            # The larger address family fits both.
            self._socket = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=own)
        except OSError:
            os.close(own)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def peer(self) -> Peer | None:
        """Return the peer's address."""
        try:
            named = self._socket.getpeername() if self._socket is not None else None
        except OSError:
            return None
        return peer_at(named)

    def received(self) -> int:
        """Return the bytes received since the connection opened; 0 if the kernel does not count them."""
        assert self._socket is not None
        told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return _BYTES_RECEIVED.unpack_from(told)[0] if len(told) >= _BYTES_RECEIVED.size else 0

    def waiting(self) -> int:
        """Return how many of them have not been read yet."""
        assert self._socket is not None
        return struct.unpack("=i", ioctl(self._socket.fileno(), FIONREAD, bytes(4)))[0]

    def shut_down(self) -> None:
        """End the connection; the web server then drops its part of a message.

        The server's close then resets the connection. Otherwise a sender whose window is closed would not notice the
        end until the kernel gives up on it minutes later, and the kernel would keep the connection until then.
        """
        assert self._socket is not None
        with suppress(OSError):  # the other side closed first
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._socket.shutdown(socket.SHUT_RDWR)
