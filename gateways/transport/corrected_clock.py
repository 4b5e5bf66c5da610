"""The current time: this machine's clock, corrected where the providers agree that it is wrong."""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median

log = logging.getLogger(f"holdfast.{__name__}")

BELIEVED = 5.0
"""Seconds by which our clock may differ from the providers' before we use theirs."""
AGREE = 15.0
"""Seconds by which providers' clocks may differ and still agree."""
KEPT = 600.0
"""Seconds for which a provider's time is used."""
LATEST = 253_402_300_799
"""The last second (Unix time) that a datetime can be: the end of the year 9999."""
AHEAD = 3_900.0
"""Seconds by which a block may be dated ahead: an hour on some chains (docs/facts.md#finality), and clocks differ."""
NOTED_EVERY = 5.0
WARNED_EVERY = 3_600.0

_offsets: dict[str, tuple[float, float]] = {}
"""By host: its Unix time minus our ticks, and our ticks when its answer came."""
_warned = -WARNED_EVERY


def _ticks() -> float:
    """Return seconds that only increase, also while the machine is suspended or when its clock is set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _wall() -> datetime:
    return datetime.now(UTC)


def http_date(header: str | None) -> datetime | None:
    """Return an HTTP date (RFC 9110 §5.6.7); None for anything else."""
    try:
        return parsedate_to_datetime(header) if header is not None else None
    except (ValueError, OverflowError):  # a stranger's header may have a year of twenty digits
        return None


def note(host: str, headers: Mapping[str, str]) -> None:
    """Keep the time of a host's clock, from the Date header (RFC 9110 §6.6.1) of an answer that has just come."""
    ticks = _ticks()
    said = headers.get("date")
    if said is None or ticks - _offsets.get(host, (0.0, -NOTED_EVERY))[1] < NOTED_EVERY:
        return
    moment = http_date(said)
    if moment is not None and moment.tzinfo is not None:
        # The header leaves out the fraction of its second.
        _offsets[host] = moment.timestamp() + 0.5 - ticks, ticks


def now() -> datetime:
    """Return our clock's time, or the hosts' if at least two of them, and a majority, agree on another time."""
    global _warned
    wall, ticks = _wall(), _ticks()
    offsets = [offset for offset, at in _offsets.values() if ticks - at < KEPT]
    if len(offsets) < 2:
        return wall
    middle = median(offsets)
    agreeing = sum(abs(offset - middle) <= AGREE for offset in offsets)
    ahead = wall.timestamp() - (ticks + middle)
    if agreeing < 2 or agreeing * 2 <= len(offsets) or abs(ahead) <= BELIEVED:
        return wall
    if ticks - _warned >= WARNED_EVERY:
        _warned = ticks
        log.warning("corrected this machine's clock seconds_ahead=%.0f hosts=%d", ahead, agreeing)
    return wall - timedelta(seconds=ahead)


def is_ahead(moment: datetime) -> bool:
    """Return whether a block's time is so far in the future that no right block has it."""
    return (moment - now()).total_seconds() > AHEAD


def is_right(host: str) -> bool:
    """Return whether the last time that a host reported agrees with `now`."""
    ticks = _ticks()
    offset, at = _offsets.get(host, (0.0, -KEPT))
    return ticks - at < KEPT and abs(ticks + offset - now().timestamp()) <= AGREE


def forget() -> None:
    """Forget the times of all hosts."""
    _offsets.clear()
