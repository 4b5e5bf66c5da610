"""Skip events that the library cannot read, and log their number once a minute."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

log = logging.getLogger("holdfast.bot")

LOG_SECONDS = 60.0
_SESSION = frozenset({"READY", "RESUMED"})
"""Events without which the library has no session: if one is unreadable, a new client has to try."""


class UnreadableEvents:
    """Wraps the library's event parsers, so that one unreadable event does not end the connection."""

    def __init__(self, missed: Callable[[str, Any], None]) -> None:
        """`missed` is called with the name and the data of each skipped event."""
        self._missed = missed
        self.skipped: Counter[str] = Counter()
        """By kind, the number that is not logged yet."""
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, parsers: dict[str, Callable[[Any], Any]]) -> None:
        """Wrap each reader in `parsers` (by the event's name) in place."""
        for event, parse in parsers.items():
            if event not in _SESSION:
                parsers[event] = self._guarded(event, parse)

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
            except Exception as fault:  # noqa: BLE001  the library names none, and each would end the client
                self._skip(event, fault)
                self._missed(event, data)

        return parsed

    def _skip(self, event: str, fault: Exception) -> None:
        self.skipped[event] += 1
        log.debug("event %s could not be read", event, exc_info=fault)
        if self._timer is None:
            log.warning("skipped an event that could not be read event=%s fault=%r", event, fault)
            self.skipped[event] -= 1
            self._timer = asyncio.get_running_loop().call_later(LOG_SECONDS, self._minute)

    def _minute(self) -> None:
        # The next one after a quiet time is logged at once, with its error.
        self._timer = asyncio.get_running_loop().call_later(LOG_SECONDS, self._minute) if self._say() else None

    def _say(self) -> bool:
        found = {event: count for event, count in self.skipped.items() if count}
        self.skipped.clear()
        if found:
            kinds = ",".join(f"{event}:{count}" for event, count in sorted(found.items()))
            log.warning("skipped events that could not be read count=%s events=%s", sum(found.values()), kinds)
        return bool(found)
