"""The limits that each node was found to have, so that a new process need not find them out again by being refused.

A node is identified by a digest of its URL, because the URL may hold a key. Readers begin with these limits and keep
learning: after a while they try to exceed one, so a better plan is noticed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NotRequired, TypedDict, Unpack


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """The limits of a node; None for one that is unknown, or was never reached."""

    log_blocks: int | None = None
    """Blocks of logs in one request, both ends included."""
    logs_need_address: bool | None = None
    batch: int | None = None
    """Calls in one JSON-RPC batch; 1 where the node takes none."""
    state_override: bool | None = None
    states: int | None = None
    """How many blocks back the node was found to have the state."""
    finalized: bool | None = None
    """Whether the node knows the tag `finalized`."""


class LearntLimits(TypedDict):
    """Some fields of NodeLimits."""

    log_blocks: NotRequired[int | None]
    logs_need_address: NotRequired[bool | None]
    batch: NotRequired[int | None]
    state_override: NotRequired[bool | None]
    states: NotRequired[int | None]
    finalized: NotRequired[bool | None]


Changes = Mapping[str, Mapping[str, int | bool | None]]
"""What was found out about nodes, by their digests: fields of NodeLimits and their values."""

_NOTHING = NodeLimits()
_known: dict[str, NodeLimits] = {}
_news: dict[str, dict[str, int | bool | None]] = {}


def digest(url: str) -> str:
    """Return an id for a node that does not reveal its URL."""
    return sha256(url.encode()).hexdigest()[:32]


def known(url: str) -> NodeLimits:
    """Return the known limits of a node."""
    return _known.get(digest(url), _NOTHING)


def note(url: str, **found: Unpack[LearntLimits]) -> None:
    """Note what has just been found out about a node."""
    name = digest(url)
    before = _known.get(name, _NOTHING)
    after = replace(before, **found)
    if after != before or name not in _known:
        _known[name] = after
        _news.setdefault(name, {}).update({one: getattr(after, one) for one in found})


def news() -> Changes:
    """Return the changes that are not stored yet (see `forget_stored`)."""
    return {name: dict(changes) for name, changes in _news.items()}


def forget_stored(changes: Changes) -> None:
    """Forget changes that are stored now; changes made since then stay."""
    for name, fields in changes.items():
        left = {one: value for one, value in _news.get(name, {}).items() if one not in fields or fields[one] != value}
        if left:
            _news[name] = left
        else:
            _news.pop(name, None)


def learn(others: Mapping[str, NodeLimits]) -> None:
    """Take over the limits that other processes found; changes that this process has not stored yet have precedence."""
    for name, limits in others.items():
        _known[name] = replace(limits, **_news.get(name, {}))


def forget() -> None:
    """Forget everything, as at the start."""
    _known.clear()
    _news.clear()
