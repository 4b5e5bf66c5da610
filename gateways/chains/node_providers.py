"""Which nodes of a chain are independent of each other: those of one provider count as one."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from settings import settings

_OWN_NETWORKS = frozenset({"local", "localhost", "internal", "lan", "arpa"})
"""Last labels of names that only the operator's own network resolves."""


def domain_of(host: str) -> str:
    """Return the registered part of a host name: its last two labels, or three as in example.co.uk."""
    labels = host.split(".")
    if host.replace(".", "").isdigit() or ":" in host:
        return host
    short = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if short else labels[-2:])


def source_name(title: str, place: int) -> str:
    """Return how evidence names a node of the chain with this title, by its place in the settings."""
    return f"{title} node {place + 1}"


def digest(chain: str, place: int) -> str:
    """Return a digest of a node's provider: it names the same one wherever the settings have its nodes."""
    urls = settings().rpc.get(chain, ())
    return hashlib.sha256(provider_of(urls[place]).encode()).hexdigest()[:12] if place < len(urls) else ""


def origin(chain: str, place: int) -> int:
    """Return the place in the settings of the first node of the chain that belongs to the same provider as this one."""
    found = _origins(settings().rpc.get(chain, ()))
    return found[place] if place < len(found) else place


def other_nodes(chain: str, asked: int, count: int) -> list[int]:
    """Return a chain's `count` nodes without the one that was asked, those of another provider first.

    Only they are independent of it.
    """
    others = [place for place in range(count) if place != asked]
    return sorted(others, key=lambda place: origin(chain, place) == origin(chain, asked))


def independent(chain: str) -> int:
    """Return how many of the chain's nodes in the settings are independent of each other."""
    return len(set(_origins(settings().rpc.get(chain, ()))))


@lru_cache(maxsize=100)
def _origins(urls: Sequence[str]) -> tuple[int, ...]:
    first = dict[str, int]()
    return tuple(first.setdefault(provider_of(url), place) for place, url in enumerate(urls))


def provider_of(url: str) -> str:
    """Return the domain of a node's provider; of the operator's own nodes, by address or local name, each has its URL.

    An address or a local name says nothing about who runs the node, and one machine may run several.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    domain = domain_of(host)
    is_own = "." not in host or (domain == host and host.replace(".", "").isdigit()) or ":" in host
    return url if is_own or host.rpartition(".")[2] in _OWN_NETWORKS else domain
