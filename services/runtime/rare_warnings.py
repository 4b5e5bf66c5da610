"""Log a failure that comes again and again rarely: while a provider is down for a day, all polls of it fail."""

import logging
from time import monotonic

LOGGED_EVERY = 600.0
"""Seconds between two lines; Health shows the newest failure at once."""


class RareWarnings:
    """The failures of one kind in one part; the first is logged, and then one of them in each LOGGED_EVERY seconds."""

    def __init__(self, log: logging.Logger) -> None:
        self._log: logging.Logger = log
        self._logged_at = float("-inf")
        self._count = 0

    def add(self, said: str, *arguments: object) -> None:
        """Count a failure; when a line is due, log it with the number of failures since the last line."""
        self._count += 1
        if monotonic() - self._logged_at >= LOGGED_EVERY:
            self._log.warning(f"{said} times=%d", *arguments, self._count)
            self._logged_at, self._count = monotonic(), 0

    def logged(self) -> None:
        """Note that the failure was just logged elsewhere, in full."""
        self._logged_at, self._count = monotonic(), 0
