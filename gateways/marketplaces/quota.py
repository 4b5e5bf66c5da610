"""The rate limit of one key at a marketplace, divided among uses: each use has a reserved part, and all share the rest.

The number of reads that are left comes from the headers of every answer, which count all users of the key. Where a
provider sends no such headers, reads are counted against its documented limit. Processes exchange what they know
(`exchange`), so that all of them share one limit.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from gateways.transport import corrected_clock
from gateways.transport.errors import ProviderBusy, seconds_to_wait
from gateways.transport.fair_turns import caller

LONGEST_PAUSE = 300.0
"""Seconds. OpenSea's own SDK waits no longer than this either (docs/facts.md#opensea-keys-and-limits)."""
SHORTEST_SHARED = 30.0
"""Seconds. A shorter window ends before a use runs short; its limit is obeyed, but not divided among uses."""
LONGEST_WINDOW = 3_600.0
AT_ONCE = 1.0
"""Seconds within which the order of two processes' answers is uncertain; the smaller number of reads left counts."""
REMEMBERED = 900.0
"""Seconds after its last read in which a tenant counts among those that share the reads for rules."""
TURN = 60.0
"""Seconds after which a tenant that has used its share may try again."""
MOST_ASKED = 5
"""One person's reads in a window from the part reserved for proofs; further ones use the part for repeated reads."""
LOOKED_UP_BY_ONE = 0.5
"""The fraction of the part reserved for lookups that one person may use in a window; for further ones nothing is
reserved."""
SLOWEST = 8.0
"""The largest factor by which the waits between automatic reads grow while reads are scarce."""


class Use(IntEnum):
    """The purpose of a read. A refusal of one use also stops uses with a smaller number for a while."""

    RULES = 0
    AGAIN = 1
    """A repeated read of a bio, which no person requested."""
    LOOKUP = 2
    PROOF = 3
    """A read of a bio that a person requested."""


SHARES = {Use.PROOF: 0.6, Use.AGAIN: 0.1, Use.RULES: 0.2, Use.LOOKUP: 0.05}
"""The part of a window's reads that is reserved for each use; the rest is for all uses, first come, first served.
Proofs may also use the part for repeated reads."""
RELEASED_IN = 0.5
"""The last part of a window, in which unused reserved reads gradually become free for all uses, so that none is left
over at the end."""


@dataclass(frozen=True, slots=True)
class QuotaStanding:
    """The state of one limit as processes exchange it. Times are Unix seconds.

    At `told_at`, `remaining` of the `base` reads in a window of `length` seconds were left until `resets_at`. `kept` is
    the number of reads that are still reserved for each use, by its name.
    """

    limit: int
    length: float
    base: float
    remaining: float
    resets_at: float
    told_at: float
    kept: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The number of reads that a use may make now, and the seconds until it may make one (0: at once)."""

    reads: int
    wait: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a use may read: in `wait` seconds (0: at once); automatic reads wait `stretch` times longer than usual."""

    wait: float = 0.0
    stretch: float = 1.0


class _Window:
    """One window of a limit: `remaining` reads are left until `resets_at`. Times are loop time in seconds."""

    def __init__(self, limit: int, shares: Mapping[Use, float], length: float = 1.0) -> None:
        self.limit = limit
        self.length = length
        self._shares = shares
        self.resets_at = self.seen_at = 0.0
        self.under_way = 0
        self.confirmed = False
        """Whether an answer has confirmed this window, or we count its reads ourselves."""
        self.drawn: dict[Use, float] = {}
        self.spent = 0
        """The reads taken from each part, and the reads that we counted ourselves, since the last exchange."""
        self.news = False
        """Whether other processes have to learn of a change."""
        self.used: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        """The number of reads for rules by tenant, and of reads for proofs by person."""
        self.looked_up: Counter[str] = Counter()
        """The number of lookups by person."""
        self._start(limit)

    def _start(self, base: float) -> None:
        self.base = self.remaining = float(base)
        self.kept = {use: share * base for use, share in self._shares.items()}
        for counts in (self.drawn, self.used, self.asked, self.looked_up):
            counts.clear()
        self.spent = 0

    def begin(self, now: float) -> None:
        """Begin another window, which no answer has confirmed yet."""
        self._start(self.limit)
        self.resets_at, self.seen_at, self.confirmed = now + self.length, now, False

    def learn(self, remaining: int, resets_in: float, now: float) -> None:
        """Store the limit that an answer reports; `resets_in` is in seconds from now."""
        resets_in = min(max(resets_in, 0.0), LONGEST_WINDOW)
        if now + resets_in > self.resets_at + SHORTEST_SHARED:
            self._start(remaining)
        self.length = max(self.length, resets_in)
        self.remaining, self.resets_at, self.seen_at = float(remaining), now + resets_in, now
        self.confirmed = self.news = True

    def count(self, now: float) -> None:
        """Count one read of a provider that does not report the remaining reads."""
        self.remaining, self.seen_at = max(0.0, self.remaining - 1), now
        self.confirmed = self.news = True
        self.spent += 1

    def room(self, use: Use | None, now: float) -> float:
        """Return the number of reads that this use may make now; None is a use for which nothing is reserved."""
        kept = self._kept(now)
        free = self.remaining - self.under_way - sum(kept.values())
        return sum(kept.get(part, 0.0) for part in _parts(use)) + max(0.0, free)

    def _kept(self, now: float) -> dict[Use, float]:
        """Return the reads reserved for each use now; their sum is at most the remaining reads."""
        if self.length < SHORTEST_SHARED:
            return dict.fromkeys(self._shares, 0.0)
        kept = {use: min(left, self._most(use, now)) for use, left in self.kept.items()}
        # Programs other than ours may use the key too.
        there, together = max(0.0, self.remaining - self.under_way), sum(kept.values())
        return kept if together <= there else {use: left * there / together for use, left in kept.items()}

    def draw(self, use: Use | None, now: float) -> None:
        """Take one read from the parts reserved for the use, as far as reads are left in them."""
        wanted = 1.0
        for part in _parts(use):
            left = min(self.kept.get(part, 0.0), self._most(part, now))
            taken = min(left, wanted)
            self.kept[part], wanted = left - taken, wanted - taken
            self.drawn[part] = self.drawn.get(part, 0.0) + taken

    def _most(self, use: Use, now: float) -> float:
        """Return the most reads that may be reserved for a use now, used or not."""
        left = max(0.0, self.resets_at - now) / self.length
        return self._shares.get(use, 0.0) * self.base * min(1.0, left / RELEASED_IN)

    def wait(self, use: Use | None, now: float) -> float:
        """Return the seconds until this use may make one more read if no other read is made."""
        soonest, latest = 0.0, max(0.0, self.resets_at - now)
        while latest - soonest > 1:
            middle = (soonest + latest) / 2
            soonest, latest = (soonest, middle) if self.room(use, now + middle) >= 1 else (middle, latest)
        return latest

    def stretch(self, now: float) -> float:
        """Return by what factor automatic reads have used more than their even pace allows, from 1 to SLOWEST."""
        left = max(0.0, self.resets_at - now) / self.length
        others = sum(share for use, share in self._shares.items() if use is not Use.AGAIN)
        even = (1.0 - others) * self.base * left
        return min(max(even / max(self.room(Use.AGAIN, now), 1.0), 1.0), SLOWEST)

    def standing(self, now: float, unix: float) -> QuotaStanding:
        """Return this window in the form for other processes."""
        return QuotaStanding(
            self.limit, self.length, self.base, self.remaining, unix + self.resets_at - now, unix + self.seen_at - now,
            {use.name.lower(): left for use, left in self.kept.items()},
        )  # fmt: skip

    def take_over(self, shared: QuotaStanding, now: float, unix: float, *, counted: bool) -> None:
        """Merge what other processes know into this window, less the reads made here since the last exchange."""
        resets_at, told_at = now + shared.resets_at - unix, now + shared.told_at - unix
        newer = resets_at > self.resets_at + SHORTEST_SHARED
        older = self.confirmed and resets_at < self.resets_at - SHORTEST_SHARED
        if resets_at <= now or (older and not counted):
            return
        if counted:
            self.remaining, self.resets_at = max(0.0, shared.remaining - self.spent), resets_at
        elif newer or told_at > self.seen_at + AT_ONCE or not self.confirmed:
            self.remaining, self.resets_at, self.seen_at = shared.remaining, resets_at, told_at
        elif told_at > self.seen_at - AT_ONCE:
            self.remaining = min(self.remaining, shared.remaining)
        self.length, self.base, self.confirmed = max(self.length, shared.length), shared.base, True
        if newer and not counted:
            for counts in (self.drawn, self.used, self.asked, self.looked_up):
                counts.clear()
        for use in self._shares:
            left = shared.kept.get(use.name.lower(), 0.0)
            self.kept[use] = max(0.0, left - self.drawn.get(use, 0.0))


class Quota:
    """The limits of one provider, which decide whether a read may be made now. It belongs to one event loop.

    `known` is the limit of a provider whose headers report none: the number of reads, and the seconds for them.
    `shares` are the parts reserved for uses.
    """

    def __init__(self, name: str, known: tuple[int, float] | None = None, shares: Mapping[Use, float] = SHARES) -> None:
        self.name = name
        self._known, self._shares = known, shares
        self._quiet: dict[Use, float] = {}
        # By limit, because some groups of calls have a tighter limit than others.
        self._windows: dict[int, _Window] = {}
        self._window_of: dict[Use, _Window] = {}
        self._asked: dict[str, float] = {}
        if known:
            self._windows[known[0]] = _Window(known[0], shares, known[1])

    @contextmanager
    def one_read(self, use: Use) -> Generator[None]:
        """Count one read as under way. Raises ProviderBusy, with the seconds to wait, when this use has to wait."""
        now = asyncio.get_running_loop().time()
        if (until := self._quiet.get(use, 0.0)) > now:
            raise ProviderBusy(self.name, "its rate limit is used up", retry_after=until - now)
        tenant = caller().tenant
        window = self._admitted(use, tenant, now)
        if window is None:
            yield
            return
        window.under_way += 1
        try:
            yield
        finally:
            window.under_way -= 1

    def _admitted(self, use: Use, tenant: str, now: float) -> _Window | None:
        """Return the window against which a read counts; None while no limit is known. Raises ProviderBusy."""
        if use is Use.RULES:
            self._asked[tenant] = now
        window = self._window(use)
        if window is None:
            return None
        if now >= window.resets_at:
            window.begin(now)
        part = self._part(use, tenant, window)
        room = window.room(part, now)
        if room < 1 and (window.under_way or now - window.seen_at < LONGEST_PAUSE):
            wait = min(window.wait(part, now), LONGEST_PAUSE)
            reason = "its rate limit is used up" if use is Use.PROOF else "what is left of its rate limit is kept free"
            raise ProviderBusy(self.name, reason, retry_after=max(wait, 1.0))
        if (
            use is Use.RULES
            and window.length >= SHORTEST_SHARED
            and window.used[tenant] >= self._share(window, room, now)
        ):
            raise ProviderBusy(self.name, "this server's share of its rate limit is used up", retry_after=TURN)
        window.draw(part, now)
        if use is Use.RULES:
            window.used[tenant] += 1
        elif use is Use.PROOF and tenant:
            window.asked[tenant] += 1
        elif use is Use.LOOKUP and tenant:
            window.looked_up[tenant] += 1
        return window

    def _window(self, use: Use) -> _Window | None:
        """Return the window of a use: the one reported in an answer to it, else the only known window, else None."""
        found = self._window_of.get(use)
        return next(iter(self._windows.values())) if found is None and len(self._windows) == 1 else found

    def _part(self, use: Use, tenant: str, window: _Window) -> Use | None:
        """Return the use against whose part a read counts; None if it counts against no reserved part.

        A person's proofs after the first MOST_ASKED in a window count as repeated reads, and their lookups after
        LOOKED_UP_BY_ONE of that part against none, so that one person does not use up the reads that others need.
        """
        if window.length < SHORTEST_SHARED:
            return use
        if use is Use.PROOF and window.asked[tenant] >= MOST_ASKED:
            return Use.AGAIN
        own = LOOKED_UP_BY_ONE * self._shares.get(Use.LOOKUP, 0.0) * window.base
        return None if use is Use.LOOKUP and tenant and window.looked_up[tenant] >= own else use

    def _share(self, window: _Window, room: float, now: float) -> float:
        """Return the number of reads that each recently active tenant may make in this window."""
        self._asked = {tenant: at for tenant, at in self._asked.items() if now - at < REMEMBERED}
        return (window.used.total() + room) / len(self._asked) if len(self._asked) > 1 else float("inf")

    def heed(self, use: Use, status: int, headers: Mapping[str, str]) -> None:
        """Store the limit in an answer's headers: Limit, Remaining and Reset (Unix seconds), Retry-After.

        A refusal stops this use and all less important ones for a while, and so does a server error with a Retry-After.
        More important uses continue, because they may have a separate limit.
        """
        now = asyncio.get_running_loop().time()
        limit, remaining = _number(headers.get("x-ratelimit-limit")), _number(headers.get("x-ratelimit-remaining"))
        reset = _number(headers.get("x-ratelimit-reset"))
        resets_in = None if reset is None else reset - corrected_clock.now().timestamp()
        if limit is not None and limit >= 1 and remaining is not None and resets_in is not None:
            window = self._windows.setdefault(int(limit), _Window(int(limit), self._shares))
            window.learn(int(remaining), resets_in, now)
            self._window_of[use] = window
        elif self._known:
            self._windows[self._known[0]].count(now)
        pause = resets_in if remaining == 0 and resets_in is not None else 0.0
        asked = seconds_to_wait(headers.get("retry-after"))
        if status in {429, 599}:
            pause = max(pause, asked or 1.0)
        elif status >= 500:
            pause = max(pause, asked or 0.0)
        if pause > 0:
            until = now + min(pause, LONGEST_PAUSE)
            for one in Use:
                if one <= use:
                    self._quiet[one] = max(self._quiet.get(one, 0.0), until)

    def wait(self, use: Use) -> float:
        """Return the seconds for which this use is stopped, at least 1."""
        return max(1.0, self._quiet.get(use, 0.0) - asyncio.get_running_loop().time())

    def outlook(self, use: Use) -> Outlook:
        """Return when this use may read, as far as this process knows."""
        now = asyncio.get_running_loop().time()
        quiet, window = max(0.0, self._quiet.get(use, 0.0) - now), self._window(use)
        if window is None or now >= window.resets_at or window.length < SHORTEST_SHARED:
            return Outlook(wait=quiet)
        waits = 0.0 if window.room(use, now) >= 1 else window.wait(use, now)
        return Outlook(max(quiet, waits), window.stretch(now))

    @property
    def news(self) -> bool:
        """Whether this process has read anything since the last exchange."""
        return any(window.news for window in self._windows.values())

    def exchange(self, shared: Mapping[int, QuotaStanding]) -> list[QuotaStanding]:
        """Merge what other processes know about each limit, and return what they do not know yet."""
        now, unix = asyncio.get_running_loop().time(), corrected_clock.now().timestamp()
        for limit, standing in shared.items():
            counted = self._known is not None and self._known[0] == limit
            if counted or standing.length >= SHORTEST_SHARED:
                window = self._windows.setdefault(limit, _Window(limit, self._shares))
                window.take_over(standing, now, unix, counted=counted)
        told = list[QuotaStanding]()
        for window in self._windows.values():
            if window.news and window.length >= SHORTEST_SHARED and window.resets_at > now:
                told.append(window.standing(now, unix))
                window.drawn.clear()
                window.spent = 0
            window.news = False
        return told


def allowances(standing: QuotaStanding, unix: float) -> dict[Use, Allowance]:
    """Return the reads that a shared limit allows each use at the time `unix` (Unix seconds)."""
    window = _Window(standing.limit, SHARES if standing.kept else {}, standing.length)
    window.take_over(standing, unix, unix, counted=False)
    if not window.confirmed:
        window.begin(unix)
    rooms = {use: window.room(use, unix) for use in Use}
    return {use: Allowance(int(room), 0.0 if room >= 1 else window.wait(use, unix)) for use, room in rooms.items()}


def _parts(use: Use | None) -> tuple[Use, ...]:
    """Return the parts from which a use may take reads."""
    if use is None:
        return ()
    return (Use.PROOF, Use.AGAIN) if use is Use.PROOF else (use,)


def _number(header: str | None) -> float | None:
    try:
        number = float(header) if header else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e12 else None
