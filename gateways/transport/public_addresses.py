"""Check which IP addresses are public, and which hosts are Discord's: where a stranger's link may lead to."""

import asyncio
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address, ip_address, ip_network

# Networks that Python counts as global: protocol assignments, relays that lead back to any IPv4 address, and the public
# address at which Azure answers each of its machines.
_NOT_PUBLIC = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "2002::/16", "3fff::/20"))
)
_UNICAST = ip_network("2000::/3")
"""The only IPv6 range assigned to hosts on the internet (RFC 4291 §2.4, IANA); we need no other."""


_LOOKUPS = ThreadPoolExecutor(100, "lookup")
"""Separate threads, so that a stranger's host name whose DNS server does not answer blocks no other thread.

They are three times as many as links at a time: such a lookup takes half a minute, three times as long as its link may.
"""


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
        found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, ask)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
