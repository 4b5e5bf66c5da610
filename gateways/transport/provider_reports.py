"""How each provider last answered, as this process saw it: noted by the clients, stored by the provider log."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    Unauthorized,
)

OK, STALE, DOWN, BUSY, CONFUSED, REFUSED = "ok", "stale", "down", "busy", "confused", "refused"
THROTTLED = "throttled"
"""Counted beside the outcome for each answer that asks us to slow down (429 and its relatives)."""
DISCORD, OPENSEA = "discord", "opensea"


class Stale(ProviderConfused):
    """It answers, but with a past: its newest block is old, or before one that was seen already."""


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """One outcome. `provider` is `discord`, `opensea`, or a node as `<chain>:<its place in the settings, from 0>`.

    `block` and `block_time` are a node's newest block, where the outcome has it.
    """

    provider: str
    state: str
    at: datetime
    reason: str | None = None
    block: int | None = None
    block_time: datetime | None = None


_newest: dict[str, ProviderReport] = {}
_counts: Counter[tuple[str, str]] = Counter()


def node(chain: str, place: int) -> str:
    """A node's name here."""
    return f"{chain}:{place}"


def noted(provider: str, state: str, reason: str | None = None) -> ProviderReport:
    """What is known of a provider from now on."""
    return ProviderReport(provider, state, datetime.now(UTC), reason)


def answered(provider: str, block: int | None = None, block_time: datetime | None = None) -> None:
    """It answered as it should."""
    _newest[provider] = ProviderReport(provider, OK, datetime.now(UTC), None, block, block_time)


def failed(provider: str, fault: ProviderError) -> None:
    """It did not; a plain "there is no such thing" is an answer."""
    state = state_of(fault)
    if state == OK:
        answered(provider)
    else:
        _newest[provider] = noted(provider, state, str(fault))


@contextmanager
def watched(provider: str) -> Generator[None]:
    """Notes and counts how what is asked inside ends."""
    with counted(provider):
        try:
            yield
        except ProviderError as fault:
            failed(provider, fault)
            raise
        answered(provider)


@contextmanager
def counted(provider: str) -> Generator[None]:
    """Counts how what is asked inside ends."""
    try:
        yield
    except ProviderError as fault:
        count(provider, state_of(fault))
        raise
    count(provider, OK)


def count(provider: str, outcome: str) -> None:
    """One more of this outcome."""
    _counts[provider, outcome] += 1


def state_of(fault: ProviderError) -> str:
    """What a fault says about its provider; a refusal of one thing says nothing against the rest."""
    if isinstance(fault, Stale):
        return STALE
    if isinstance(fault, ProviderBusy):
        return BUSY
    if isinstance(fault, ProviderDown):
        return DOWN
    if isinstance(fault, Unauthorized):
        return REFUSED
    if isinstance(fault, NotThere) or not isinstance(fault, ProviderConfused):
        return OK
    return CONFUSED


def read_off() -> list[ProviderReport]:
    """The newest outcome of each provider since the last reading."""
    found = list(_newest.values())
    _newest.clear()
    return found


def read_off_counts() -> dict[tuple[str, str], int]:
    """How often each outcome came, by provider and outcome, since the last reading."""
    found = dict(_counts)
    _counts.clear()
    return found
