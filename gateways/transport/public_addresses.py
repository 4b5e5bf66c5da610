"""Check which IP addresses are public, and which hosts are Discord's: where a stranger's link may lead to."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, ip_address, ip_network
from queue import SimpleQueue
from typing import Any

# Networks that Python counts as global: protocol assignments, relays that lead back to any IPv4 address, and the public
# address at which Azure answers each of its machines.
_NOT_PUBLIC = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "2002::/16", "3fff::/20"))
)
_UNICAST = ip_network("2000::/3")
"""The only IPv6 range assigned to hosts on the internet (RFC 4291 §2.4, IANA); we need no other."""


MOST_LOOKUPS = 100
"""Lookups at a time, three times as many as links: where a DNS server does not answer, a lookup takes half a minute,
three times as long as its link may."""
Found = list[tuple[Any, ...]]


class LookupThreads:
    """Threads for lookups, so that one without an answer blocks no other thread.

    Nor does it keep the process from ending, as a thread of an executor would.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._asked: SimpleQueue[tuple[Callable[[], Found], asyncio.Future[Found]]] = SimpleQueue()

    async def run(self, ask: Callable[[], Found]) -> Found:
        """Return the result of a call that waits for DNS. Raises its exception."""
        found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._asked.put((ask, found))
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._work, name="lookup", daemon=True).start()
        return await found

    def _work(self) -> None:
        while True:
            ask, found = self._asked.get()
            # Done already: it was cancelled before its turn came, so nobody waits for it.
            if not found.done():
                _settle(ask, found)
            del ask, found
            self._idle.release()


def _settle(ask: Callable[[], Found], found: asyncio.Future[Found]) -> None:
    settle: Callable[[], None]
    try:
        settle = partial(found.set_result, ask())
    except BaseException as fault:  # noqa: BLE001  the one who waits raises it
        settle = partial(found.set_exception, fault)
    # The loop may be closed by now.
    with suppress(RuntimeError):
        found.get_loop().call_soon_threadsafe(_unless_done, found, settle)


def _unless_done(found: asyncio.Future[Found], settle: Callable[[], None]) -> None:
    if not found.done():
        settle()


_LOOKUPS = LookupThreads(MOST_LOOKUPS)


def is_public(text: str) -> bool:
    """Return whether an address is public: not private, loopback, link-local, shared or reserved.

    An IPv6 address that contains an IPv4 address (mapped, translated, tunnelled) is not public, nor is a text that is
    not an address.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address.version == network.version and address in network for network in _NOT_PUBLIC):
        return False
    return isinstance(address, IPv4Address) or address in _UNICAST


_DISCORD = re.compile(r"(.*\.)?discord(app)?\.com\.?", re.IGNORECASE)


def is_discord(host: str) -> bool:
    """Return whether a host is Discord's.

    Discord counts refused requests by the address they come from, and bans it (docs/facts.md#discord-invalid-requests).
    Links of strangers to it would end role changes everywhere.
    """
    return _DISCORD.fullmatch(host) is not None


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host, in the order to try them; an empty tuple when there is no such host."""
    try:
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await _LOOKUPS.run(ask)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
