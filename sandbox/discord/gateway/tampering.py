"""What the gateway does to events on their way: lose, double, swap or spoil some of them."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.base.refusal import Refusal

KINDS = ("lose", "double", "reorder", "spoil")
Event = tuple[str, Any]

_IDS = {"id", "guild_id", "user", "role", "role_id", "channel_id"}


@dataclass
class Tamper:
    """What happens to the next `left` events of this name and guild, until a moment in monotonic seconds."""

    kind: str
    event: str | None
    guild_id: str | None
    left: float
    until: float

    def fits(self, guild_id: str, event: str) -> bool:
        """Return whether it applies to this event."""
        return self.event in (None, event) and self.guild_id in (None, guild_id)


class Tampering:
    """The running disturbances, in the order in which they were set; the first that matches acts on an event."""

    def __init__(self) -> None:
        self._all: list[Tamper] = []

    def add(self, kind: str, event: str | None, guild_id: str | None, times: float | None, seconds: float) -> None:
        """Disturb so many events. Raises Refusal(400).

        Without `times` it is one event, or every event until `seconds` have passed if that is finite.
        """
        if times is None:
            times = 1 if seconds == math.inf else math.inf
        if times < 1 or seconds <= 0:
            raise Refusal(400, "times is at least 1, and seconds more than 0.")
        self._all.append(Tamper(kind, event, guild_id, times, time.monotonic() + seconds))

    def clear(self) -> None:
        """End all disturbances."""
        self._all.clear()

    def meet(self, guild_id: str, event: str) -> str | None:
        """Return what happens to this event, which is then counted; None when nothing happens to it."""
        now = time.monotonic()
        self._all = [one for one in self._all if one.left >= 1 and one.until > now]
        for one in self._all:
            if one.fits(guild_id, event):
                one.left -= 1
                return one.kind
        return None


class Held:
    """Events of one session that are sent after the next one, with which they change places."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def keep(self, event: Event) -> None:
        """Hold an event until the next one."""
        self._events.append(event)

    def release(self) -> Iterator[Event]:
        """Yield the held events, which are then no longer held."""
        waiting, self._events = self._events, []
        yield from waiting


def spoiled(data: Any) -> Any:
    """Return an event's data as no client can read it: its ids are left, and the other fields are missing or wrong."""
    if not isinstance(data, Mapping):
        return None
    left = {name: _identity(value) for name, value in data.items() if name in _IDS}
    return {**left, "roles": 7, "permissions": [], "joined_at": {}}


def _identity(value: Any) -> Any:
    return {"id": value["id"]} if isinstance(value, Mapping) and "id" in value else value
