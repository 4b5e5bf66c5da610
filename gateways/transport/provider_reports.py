"""Each provider's last outcome as this process saw it. The clients note outcomes; `provider_records` stores them."""

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
    ProviderRefused,
    Unauthorized,
)

OK, STALE, DOWN, BUSY, CONFUSED, REFUSED = "ok", "stale", "down", "busy", "confused", "refused"
THROTTLED = "throttled"
"""Counted in addition to the outcome for each answer that asks us to slow down (429 and similar)."""
DISCORD, OPENSEA = "discord", "opensea"


class Stale(ProviderConfused):
    """The provider answers with old data: its newest block is old, or before a block that we have already seen."""


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """One outcome. `provider` is `discord`, `opensea`, or a node as `<chain>:<its place in the settings, from 0>`.

    `block` and `block_time` are a node's newest block, if the outcome includes it.
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
    """Return the provider name of a node."""
    return f"{chain}:{place}"


def noted(provider: str, state: str, reason: str | None = None) -> ProviderReport:
    """Return a report of a provider's state at this moment."""
    return ProviderReport(provider, state, datetime.now(UTC), reason)


def answered(provider: str, block: int | None = None, block_time: datetime | None = None) -> None:
    """Note that a provider answered as it should."""
    _newest[provider] = ProviderReport(provider, OK, datetime.now(UTC), None, block, block_time)


def failed(provider: str, fault: ProviderError, *, is_basic: bool = False) -> None:
    """Note a provider's failure; the refusal of a single request counts as an answer.

    With `is_basic` it does not: a node that refuses to name its chain or its newest block can answer nothing else.
    """
    state = state_of(fault)
    if state == OK and is_basic and isinstance(fault, ProviderRefused):
        state = CONFUSED
    if state == OK:
        answered(provider)
    else:
        _newest[provider] = noted(provider, state, str(fault))


@contextmanager
def watched(provider: str) -> Generator[None]:
    """Note and count the outcome of the request made inside the `with`."""
    with counted(provider):
        try:
            yield
        except ProviderError as fault:
            failed(provider, fault)
            raise
        answered(provider)


@contextmanager
def counted(provider: str) -> Generator[None]:
    """Count the outcome of the request made inside the `with`."""
    try:
        yield
    except ProviderError as fault:
        count(provider, state_of(fault))
        raise
    count(provider, OK)


def count(provider: str, outcome: str) -> None:
    """Count one outcome of a provider."""
    _counts[provider, outcome] += 1


def state_of(fault: ProviderError) -> str:
    """Return the provider's state that an error implies; the refusal of a single request implies OK."""
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
    """Return and clear the newest outcome of each provider since the last call."""
    found = list(_newest.values())
    _newest.clear()
    return found


def read_off_counts() -> dict[tuple[str, str], int]:
    """Return and clear the number of outcomes since the last call, by provider and outcome."""
    found = dict(_counts)
    _counts.clear()
    return found
