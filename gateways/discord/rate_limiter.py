"""The limiter of requests to Discord: buckets learnt from the headers, and the global rate.

Discord's rules (docs/facts.md#discord-rate-limits): a bucket is `X-RateLimit-Bucket` combined with the guild or
channel, with Limit, Remaining and Reset-After in its headers; 50 requests a second for the whole bot. The processes
share these 50: each may be given a share for some seconds. `rest.py` finds out what a 429 concerns;
`invalid_requests.py` counts refusals.
"""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from gateways.transport.errors import LONGEST_PAUSE

GLOBAL_PER_SECOND = 48.0
"""Evenly spaced and 4 % under Discord's 50, so that network jitter never puts 51 requests into one of its seconds."""
KEPT_BUCKETS = 20_000
LAPSED_PER_SECOND = 1.0
"""Requests a second of a process whose share was not renewed in time, because the others may have the share by now."""
BURST, SMALL_SHARE = 4, 12.0
"""Requests, as many as one screen needs, that are sent at once after a pause if the share is below SMALL_SHARE requests
a second."""
WRITES, READS = "writes", "reads"
"""The lanes of the global rate. While both wait, two of three turns are for role writes."""
_TURNS = (WRITES, WRITES, READS)
PERSON_PER_SECOND, PERSON_BURST = 7.0, 3
"""Requests on behalf of one person: the number a second, and at once, which is 10 in the busiest second."""
KEPT_PEOPLE = 10_000

_asking: ContextVar[str] = ContextVar("asking", default="")


@contextmanager
def for_person(person: str) -> Generator[None]:
    """Send the requests inside on behalf of this person. Each person has separate turns, whatever the guilds."""
    token = _asking.set(person)
    try:
        yield
    finally:
        _asking.reset(token)


class WaitTooLong(Exception):
    """The limiter would have to wait past the caller's deadline; a retry is useless before `seconds` have passed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.1f} s")
        self.seconds = seconds


@dataclass(slots=True)
class Ticket:
    """The right to send one request, taken from a bucket in one of its windows."""

    bucket: "Bucket"
    window: int


@dataclass(slots=True)
class Bucket:
    """One of Discord's limits, as learnt from headers; before the first headers, it lets through one request at a time.

    `left` is the number of requests that may still be sent in this window, less those under way. A request that is
    under way when the window ends might be counted in the next one, so it is subtracted there until its answer shows
    otherwise.
    """

    limit: int | None = None
    left: int = 1
    reset_at: float | None = None
    blocked_until: float = 0.0
    window: int = 0
    began: float = 0.0
    span: float = 0.0
    lowest: int = 0
    on_the_way: int = 0
    unlimited: bool = False
    waiters: deque[asyncio.Future[Ticket]] = field(default_factory=deque[asyncio.Future[Ticket]])
    timer: asyncio.TimerHandle | None = None

    def take(self, now: float) -> Ticket | None:
        """Return a ticket if one is available now."""
        if now < self.blocked_until:
            return None
        self._turn(now)
        # A window with an unknown end lets a single request through; otherwise one lost answer would block it for ever.
        lone = self.on_the_way == 0 and self.reset_at is None
        if not (self.unlimited or self.left > 0 or lone):
            return None
        self.left -= 1
        self.on_the_way += 1
        return Ticket(self, self.window)

    def _turn(self, now: float) -> None:
        """Begin the next window when this one is over."""
        if self.reset_at is not None and now >= self.reset_at:
            self.window, self.began, self.reset_at = self.window + 1, self.reset_at, None
            self.left = (self.limit or 1) - self.on_the_way

    def free_at(self, now: float) -> float | None:
        """Return when a ticket is next available without another answer; None if only an answer can show that."""
        if now < self.blocked_until:
            return self.blocked_until
        return self.reset_at

    def give_back(self) -> None:
        """Take back the ticket of a request that was never sent."""
        self.on_the_way -= 1
        self.left += 1

    def answered(self, ticket: Ticket, now: float, headers: Mapping[str, str] | None) -> None:
        """Learn from the headers of an answer; None when no answer came."""
        limit, left, after = _window(headers)
        if self.reset_at is not None and after is not None and now + after > self.reset_at + self.span / 2:
            # Discord has already begun another window. Ours ended later than Discord's, or no ticket was requested
            # since its end. The request counts in the new window.
            self._turn(self.reset_at)
        self.on_the_way -= 1
        if limit is None or left is None or after is None:
            # Without headers there is no bucket to store; without an answer, nothing is learnt.
            self.unlimited = self.unlimited or (headers is not None and self.limit is None)
            return
        if self.limit is None:
            self.left = left - self.on_the_way
        self.unlimited, self.limit, self.span = False, limit, max(self.span, after)
        ends = now + after
        if ticket.window != self.window and ends < self.began + self.span / 2:
            # The request was still counted in the previous window, so it is added back to this one.
            self.left = min(self.left + 1, limit)
            return
        self.left = min(self.left, left)
        if self.reset_at is None or left <= self.lowest:
            self.reset_at, self.lowest = ends, left


class RequestTurns:
    """The global rate of this process's requests: evenly spaced, with turns shared among the waiting callers."""

    def __init__(self, per_second: float) -> None:
        self._interval, self._burst = 1.0 / per_second, 0
        self._lapses_at = math.inf
        self._next = 0.0
        self._paused_until = self._met_until = 0.0
        self._lanes: dict[str, OrderedDict[str, deque[asyncio.Future[None]]]] = {
            WRITES: OrderedDict(), READS: OrderedDict(),
        }  # fmt: skip
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None
        self._asked: dict[str, int] = {WRITES: 0, READS: 0}

    def lease(self, per_second: float, until: float) -> None:
        """Allow `per_second` requests until `until` (loop time), then only LAPSED_PER_SECOND until the next call."""
        self._interval, self._lapses_at = 1.0 / per_second, until
        self._burst = BURST if per_second < SMALL_SHARE else 0
        self._plan()

    def wanted(self) -> dict[str, int]:
        """Return by lane the number of requests since the last call, including those that still wait."""
        found = {lane: self._asked[lane] + sum(map(len, self._lanes[lane].values())) for lane in self._lanes}
        self._asked = dict.fromkeys(self._asked, 0)
        return found

    def pause(self, seconds: float) -> None:
        """Send nothing for `seconds`, because an answer to this process asked for it."""
        self._met_until = max(self._met_until, _now() + seconds)
        self.join_pause(seconds)

    def join_pause(self, seconds: float) -> None:
        """Send nothing for `seconds`, because an answer to another process asked for it."""
        self._paused_until = max(self._paused_until, _now() + seconds)
        self._plan()

    def met_pause(self) -> float:
        """Return the seconds left of a pause that this process was asked for, to tell the others; 0 without one."""
        return max(0.0, self._met_until - _now())

    async def take(self, lane: str, key: str, deadline: float) -> None:
        """Wait for a turn, shared fairly among a lane's keys. Raises WaitTooLong if it comes after the deadline."""
        now = _now()
        self._asked[lane] += 1
        free = self._free_at(now)
        if not any(self._lanes.values()) and free <= now:
            self._count(now)
            return
        if (earliest := max(free, self._paused_until)) > deadline:
            raise WaitTooLong(earliest - now)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._lanes[lane].setdefault(key, deque())
        queue.append(waiter)
        self._plan()
        try:
            async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
                await waiter
        except TimeoutError:
            raise WaitTooLong(1.0) from None
        finally:
            # A caller that no longer waits is not demand, and must not keep its key's place.
            if not waiter.done() or waiter.cancelled():
                self._leave(lane, key, waiter)

    def _leave(self, lane: str, key: str, waiter: asyncio.Future[None]) -> None:
        queue = self._lanes[lane].get(key)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._lanes[lane][key]

    def _free_at(self, now: float) -> float:
        if now >= self._lapses_at:
            return max(self._next + 1.0 / LAPSED_PER_SECOND - self._interval, self._paused_until)
        return max(self._next - self._burst * self._interval, self._paused_until)

    def _count(self, now: float) -> None:
        self._next = max(now, self._next) + self._interval

    def _serve(self) -> None:
        self._timer = None
        now = _now()
        while self._free_at(now) <= now and (waiter := self._whose_turn()) is not None:
            waiter.set_result(None)
            self._count(now)
        self._plan()

    def _whose_turn(self) -> asyncio.Future[None] | None:
        self._turn = (self._turn + 1) % len(_TURNS)
        lane = self._lanes[_TURNS[self._turn]] or self._lanes[WRITES] or self._lanes[READS]
        while lane:
            key, queue = next(iter(lane.items()))
            waiter = queue.popleft()
            if queue:
                lane.move_to_end(key)
            else:
                del lane[key]
            if not waiter.done():
                return waiter
        return None

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if any(self._lanes.values()):
            now = _now()
            self._timer = asyncio.get_running_loop().call_at(max(now, self._free_at(now)), self._serve)


class PersonPace:
    """A limit on the rate of requests on behalf of each person."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    async def take(self, person: str, deadline: float) -> None:
        """Wait until the person's next request may be sent. Raises WaitTooLong if that is after the deadline."""
        now = _now()
        if len(self._next) >= KEPT_PEOPLE:
            self._next = {one: at for one, at in self._next.items() if at > now}
        at = max(self._next.get(person, now), now)
        wait = at - now - (PERSON_BURST - 1) / PERSON_PER_SECOND
        if now + wait > deadline:
            raise WaitTooLong(wait)
        self._next[person] = at + 1.0 / PERSON_PER_SECOND
        if wait > 0:
            await asyncio.sleep(wait)


class Limiter:
    """All limits of one bot, in one process. It is not thread-safe and belongs to one event loop."""

    def __init__(self, per_second: float = GLOBAL_PER_SECOND) -> None:
        self.turns: RequestTurns = RequestTurns(per_second)
        """The global rate."""
        self._people = PersonPace()
        self._hashes: dict[tuple[str, str], str] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}

    async def acquire(self, route: str, major: str, deadline: float, lane: str = READS) -> Ticket:
        """Wait for the right to send one request. Raises WaitTooLong if that would be after `deadline` (loop time).

        `route` is the method and path template, `major` the id of the guild or channel in it (or "").
        """
        person = _asking.get()
        if person:
            # Before the bucket, because people who wait for their own turn must not occupy the guild's tickets.
            await self._people.take(person, deadline)
        ticket = await self._from_bucket(self._bucket(route, major), deadline)
        try:
            await self.turns.take(lane, person or major, deadline)
        except BaseException:
            self.give_back(ticket)
            raise
        return ticket

    def give_back(self, ticket: Ticket) -> None:
        """Give the ticket of a request that was never sent to another request."""
        ticket.bucket.give_back()
        self._wake(ticket.bucket)

    def answered(self, ticket: Ticket, route: str, major: str, headers: Mapping[str, str] | None) -> None:
        """Learn from the answer's headers (lower-case names); None when no answer came."""
        bucket = ticket.bucket
        bucket.answered(ticket, _now(), headers)
        name = headers.get("x-ratelimit-bucket") if headers else None
        if name:
            self._hashes[route, major] = name
            # A pause that the answer asks for concerns the bucket that the route turns out to belong to.
            ticket.bucket = self._buckets.setdefault((name, major), bucket)
            self._move(bucket, ticket.bucket)
        self._wake(self._bucket(route, major))
        self._wake(bucket)
        self._forget_idle()

    def pause(self, ticket: Ticket, seconds: float) -> None:
        """Pause the ticket's bucket for `seconds`, after a 429 that concerns it."""
        bucket = ticket.bucket
        bucket.blocked_until = max(bucket.blocked_until, _now() + min(seconds, LONGEST_PAUSE))
        self._wake(bucket)

    def pause_all(self, seconds: float) -> None:
        """Pause all requests for `seconds`, after a global 429."""
        self.turns.pause(min(seconds, LONGEST_PAUSE))

    def _bucket(self, route: str, major: str) -> Bucket:
        key = (self._hashes.get((route, major), route), major)
        if key not in self._buckets:
            self._buckets[key] = Bucket()
        return self._buckets[key]

    async def _from_bucket(self, bucket: Bucket, deadline: float) -> Ticket:
        now = _now()
        ticket = None if bucket.waiters else bucket.take(now)
        if ticket is not None:
            return ticket
        free = bucket.free_at(now)
        if free is not None and free > deadline:
            raise WaitTooLong(free - now)
        waiter: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        bucket.waiters.append(waiter)
        self._wake(bucket)
        try:
            async with asyncio.timeout_at(deadline):
                return await waiter
        except BaseException as fault:
            if waiter.done() and not waiter.cancelled():
                unused = waiter.result()
                unused.bucket.give_back()
                self._wake(unused.bucket)
            if isinstance(fault, TimeoutError):
                raise WaitTooLong(max((bucket.free_at(_now()) or 0.0) - _now(), 1.0)) from None
            raise

    def _wake(self, bucket: Bucket) -> None:
        """Hand out the available tickets in order of arrival, and run again when the window ends."""
        now = _now()
        while bucket.waiters:
            if bucket.waiters[0].done():
                bucket.waiters.popleft()
                continue
            ticket = bucket.take(now)
            if ticket is None:
                break
            bucket.waiters.popleft().set_result(ticket)
        if bucket.timer is not None:
            bucket.timer.cancel()
            bucket.timer = None
        free = bucket.free_at(now) if bucket.waiters else None
        if free is not None:
            bucket.timer = asyncio.get_running_loop().call_at(free, self._wake, bucket)

    def _move(self, old: Bucket, new: Bucket) -> None:
        """Merge two buckets whose routes turn out to share one limit: the old one's waiters move to the new one."""
        if old is not new:
            new.waiters.extend(old.waiters)
            old.waiters.clear()
            self._wake(new)

    def _forget_idle(self) -> None:
        """Remove idle buckets when there are more than KEPT_BUCKETS."""
        if len(self._buckets) <= KEPT_BUCKETS:
            return
        now = _now()
        for key, bucket in list(self._buckets.items()):
            over = now >= max(bucket.reset_at or 0.0, bucket.blocked_until)
            if over and not bucket.waiters and not bucket.on_the_way:
                del self._buckets[key]
        self._hashes = {at: name for at, name in self._hashes.items() if (name, at[1]) in self._buckets}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _window(headers: Mapping[str, str] | None) -> tuple[int | None, int | None, float | None]:
    """Return Limit, Remaining and Reset-After (seconds, with decimals); all None when one is absent or unreadable."""
    if headers is None:
        return None, None, None
    try:
        after = float(headers["x-ratelimit-reset-after"])
        limit, left = int(headers["x-ratelimit-limit"]), int(headers["x-ratelimit-remaining"])
    except (KeyError, ValueError):
        return None, None, None
    return (limit, left, min(after, LONGEST_PAUSE)) if math.isfinite(after) else (None, None, None)
