"""The client's address, and the request id of a proxy: only proxies that the operator trusts are believed."""

import logging
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from settings import settings

_log = logging.getLogger(__name__)
_FORWARDED = "x-forwarded-for"
_NAMED = b"x-request-id"
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]{1,5}|\[([0-9A-Fa-f:.]+)\]:[0-9]{1,5}")
_NOBODY = "unknown"
_PEER = "holdfast.peer"

Peer = tuple[IPv4Address | IPv6Address, int]
"""The address and port at the other end of a connection."""


class Proxies:
    """Replaces a trusted proxy's address (TRUSTED_PROXIES) by the client's, for all later middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the client's address."""
        if scope["type"] in {"http", "websocket"}:
            forwarded = Headers(scope=scope).getlist(_FORWARDED)
            peer = _address(scope)
            # The request id gets into every log and the audit log, so a stranger must not choose it.
            if peer is None or not any(peer in network for network in settings().proxies):
                scope = {**scope, "headers": [one for one in scope["headers"] if one[0] != _NAMED]}
            if forwarded and peer is not None:
                self._tell_once(peer)
                caller = (str(_behind(peer, forwarded, settings().proxies)), 0)
                scope = {**scope, "client": caller, _PEER: scope["client"]}
        await self._app(scope, receive, send)

    def _tell_once(self, peer: IPv4Address | IPv6Address) -> None:
        """Warn once about an unknown proxy, which makes everybody count as one address."""
        if not self._told and peer.is_private and not settings().proxies and not settings().sandbox:
            self._told = True
            _log.warning("untrusted proxy, all clients count as one address: set TRUSTED_PROXIES proxy=%s", peer)


def caller_address(scope: Scope) -> str:
    """Return the key to count a client by: the address, for IPv6 its /64 (which one household or machine has whole)."""
    address = _address(scope)
    if address is None:
        return _NOBODY
    return str(ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


def peer(scope: Scope) -> Peer | None:
    """Return the other end of the connection itself, a client or a proxy."""
    return peer_at(scope.get(_PEER) or scope.get("client"))


def peer_at(named: Sequence[Any] | None) -> Peer | None:
    """Read an address and a port (a number or its digits); None if it is not an IP connection."""
    if not isinstance(named, tuple | list) or len(named) < 2 or not str(named[1]).isdecimal():
        return None
    address = _read(str(named[0]))
    return (address, int(named[1])) if address is not None else None


def _behind(
    peer: IPv4Address | IPv6Address, forwarded: Sequence[str], trusted: Sequence[IPv4Network | IPv6Network]
) -> IPv4Address | IPv6Address:
    """Return the nearest address that is not a trusted proxy's; each proxy appends the address that called it."""
    caller = peer
    for text in reversed(",".join(forwarded).split(",")):
        if not any(caller in network for network in trusted):
            break
        named = _read(_without_port(text.strip()))
        if named is None:
            break
        caller = named
    return caller


def _without_port(text: str) -> str:
    """Return the address of `address:port` or `[address]:port`, as some proxies write it; any other text as it is."""
    found = _WITH_PORT.fullmatch(text)
    return (found[1] or found[2]) if found else text


def _address(scope: Scope) -> IPv4Address | IPv6Address | None:
    client = scope.get("client")
    return _read(str(client[0])) if client else None


def _read(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address. IPv4 written as IPv6 becomes IPv4, and an interface name is cut off."""
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
