"""When a bio is checked again without a request: soon at first, then less and less often.

Marketplaces show a change some minutes late, and one key allows few reads. They are better spent on a person who has
saved the code and asks for a check than on many early checks.
"""

from dataclasses import dataclass, replace

FIRST, SHOWN = 5.0, 15.0
"""Seconds until the first check: after a request, and after the code was shown (it takes time to copy and save)."""
LONGEST = 160.0
LASTS = 600.0
"""Seconds after which checks stop; waiting for the marketplace's limit does not count."""
LONGEST_SHORT = 3_900.0
"""The most seconds in all that we wait for the marketplace's limit: its windows last an hour."""


@dataclass(frozen=True, slots=True)
class BioChecks:
    """The checks of one bio that are still to come: the next one in `next_in` seconds, or none."""

    next_in: float | None = FIRST
    _gap: float = FIRST
    _spent: float = 0.0
    _short: float = 0.0

    def after(self, *, wait: float = 0.0, stretch: float = 1.0) -> "BioChecks":
        """Return the remaining checks after one that found nothing.

        If the marketplace allowed no check, `wait` is the seconds until the next one is possible. `stretch` is the
        factor on the usual gap while reads are scarce.
        """
        if wait > 0:
            short = self._short + wait
            return replace(self, next_in=wait if short <= LONGEST_SHORT else None, _short=short)
        gap = min(self._gap * 2 if self._spent else self._gap, LONGEST)
        pause = gap * max(stretch, 1.0)
        spent = self._spent + pause
        return replace(self, next_in=pause if spent <= LASTS else None, _gap=gap, _spent=spent)


def after_request(*, wait: float = 0.0, stretch: float = 1.0) -> BioChecks:
    """Return the checks after a requested one that found nothing; parameters as for `BioChecks.after`."""
    return BioChecks().after(wait=wait, stretch=stretch)


def after_showing() -> BioChecks:
    """Return the checks after the code was shown."""
    return BioChecks(SHOWN, SHOWN, SHOWN)
