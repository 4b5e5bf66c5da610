"""When a bio is looked at again without anybody asking: soon at first, then less and less often.

Marketplaces show a change some minutes late, and one key's reads are few: somebody who saved the code and asks us to
look is worth more of them than many looks that come too early.
"""

from dataclasses import dataclass, replace

FIRST, SHOWN = 5.0, 15.0
"""Seconds until the first look: after somebody asked us to look, and after the code was shown, which has to be copied
and saved first."""
LONGEST = 160.0
LASTS = 600.0
"""Seconds after which we stop looking; waiting for the marketplace's limit does not count."""
LONGEST_SHORT = 3_900.0
"""Seconds for which we wait for the marketplace's limit: its windows last an hour."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks at one bio that are still to come: the next one in `next_in` seconds, or none."""

    next_in: float | None = FIRST
    _gap: float = FIRST
    _spent: float = 0.0
    _short: float = 0.0

    def after(self, *, wait: float = 0.0, stretch: float = 1.0) -> "Looks":
        """Return what is to come after a look that found nothing.

        `wait`: the marketplace allowed no look, and the next one is possible in so many seconds. `stretch`: how many
        times longer than usual to wait, because reads are scarce.
        """
        if wait > 0:
            short = self._short + wait
            return replace(self, next_in=wait if short <= LONGEST_SHORT else None, _short=short)
        gap = min(self._gap * 2 if self._spent else self._gap, LONGEST)
        pause = gap * max(stretch, 1.0)
        spent = self._spent + pause
        return replace(self, next_in=pause if spent <= LASTS else None, _gap=gap, _spent=spent)


def asked(*, wait: float = 0.0, stretch: float = 1.0) -> Looks:
    """Return the looks after somebody asked for one that found nothing; as for `Looks.after`."""
    return Looks().after(wait=wait, stretch=stretch)


def shown() -> Looks:
    """Return the looks after the code was shown."""
    return Looks(SHOWN, SHOWN, SHOWN)
