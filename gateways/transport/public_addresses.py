"""Which IP addresses belong to the open internet, and so may be reached for a stranger's link."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address, ip_address, ip_network

# What Python's own list leaves out: protocol assignments, relays that lead back to any IPv4 address, and the public
# address at which Azure answers each of its machines.
_NOT_PUBLIC = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "2002::/16", "3fff::/20"))
)
_UNICAST = ip_network("2000::/3")
"""All that IPv6 has given out for hosts on the internet (RFC 4291 §2.4, IANA): nothing else needs to be reached."""


_LOOKUPS = ThreadPoolExecutor(8, "lookup")
"""Threads of their own: a stranger's name whose server keeps silent holds up no other thread of the process."""


def is_public(text: str) -> bool:
    """Whether an address is one of the open internet: no private, loopback, link-local, shared or reserved one.

    An IPv6 address that carries an IPv4 one (mapped, translated, tunnelled) is none, nor is what is not an address.
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


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host, in the order to try them; none when there is no such host."""
    try:
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, ask)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
