"""Skip events that the library cannot read, count them, and log their number once a minute."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

log = logging.getLogger(f"holdfast.{__name__}")

LOG_SECONDS = 60.0
SKIPPED = "skipped"
"""The outcome under which skipped events are counted."""
READY = "READY"
"""The event without which the library has no session."""
_USER_FIELDS = ("id", "username", "discriminator", "avatar", "global_name", "bot")
"""The fields that we need of the bot's own user in READY."""


class UnreadableEvents:
    """A wrapper of the library's event parsers, so that one unreadable event does not end the connection."""

    def __init__(self, missed: Callable[[str, Any], None]) -> None:
        """`missed` is called with the name and the data of each skipped event."""
        self._missed = missed
        self.skipped: Counter[str] = Counter()
        """By kind, the number of skipped events that is not logged yet."""
        self._uncounted: Counter[tuple[str, str]] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, parsers: dict[str, Callable[[Any], Any]]) -> None:
        """Wrap each parser in `parsers` (by the event's name) in place."""
        for event, parse in parsers.items():
            parsers[event] = self._guarded(event, parse)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the events skipped since `counted`, by kind and outcome."""
        return dict(self._uncounted)

    def counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Record that these counts are in the database."""
        self._uncounted -= Counter(counts)

    def close(self) -> None:
        """Log the events that are not logged yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._say()

    def _guarded(self, event: str, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def parsed(data: Any) -> Any:
            try:
                return parse(data)
            except Exception as fault:  # noqa: BLE001  the library may raise any, and each would end the client
                self.skip(event, fault)
            if event == READY:
                return parse(least(data))  # raises again if these parts are unreadable too
            return self._missed(event, data)

        return parsed

    def skip(self, event: str, fault: Exception) -> None:
        """Count and log an event, or a whole message, that was skipped."""
        self.skipped[event] += 1
        self._uncounted[event, SKIPPED] += 1
        log.debug("event could not be read event=%s", event, exc_info=fault)
        if self._timer is None:
            log.warning("skipped an event that could not be read event=%s fault=%r", event, fault)
            self.skipped[event] -= 1
            self._timer = asyncio.get_running_loop().call_later(LOG_SECONDS, self._minute)

    def _minute(self) -> None:
        # The next skipped event after a quiet minute is logged at once, with its error.
        self._timer = asyncio.get_running_loop().call_later(LOG_SECONDS, self._minute) if self._say() else None

    def _say(self) -> bool:
        found = {event: count for event, count in self.skipped.items() if count}
        self.skipped.clear()
        if found:
            kinds = ",".join(f"{event}:{count}" for event, count in sorted(found.items()))
            log.warning("skipped events that could not be read count=%s events=%s", sum(found.values()), kinds)
        return bool(found)


def least(ready: Mapping[str, Any]) -> dict[str, Any]:
    """Return only those parts of a READY event that a session needs."""
    application: Any = ready.get("application")
    listed: Any = ready.get("guilds")
    guilds = cast("list[Any]", listed) if isinstance(listed, list) else list[Any]()
    return {
        "user": {name: ready["user"].get(name) for name in _USER_FIELDS},
        "application": {"id": application["id"], "flags": 0} if isinstance(application, dict) else {"flags": 0},
        "guilds": [
            {"id": one["id"], "unavailable": True}
            for one in guilds
            if isinstance(one, dict) and str(cast("dict[str, Any]", one).get("id")).isdigit()
        ],
        "__shard_id__": ready.get("__shard_id__"),
    }
