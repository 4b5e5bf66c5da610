"""When a request to Discord may go out: buckets learnt from the headers, and the global rate.

Discord's rules (external-apis §1.7): a bucket is `X-RateLimit-Bucket` times the guild or channel, with Limit, Remaining
and Reset-After in its headers; 50 requests a second for the whole bot. Refusals are counted in `refusals.py`.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

GLOBAL_PER_SECOND = 48.0
"""Evenly spaced and 4 % under Discord's 50, so that jitter on the way never puts 51 into one of its seconds."""
KEPT_BUCKETS = 20_000


class WaitTooLong(Exception):
    """The limiter would have to wait past the caller's deadline; `seconds` is when to come back, at best."""

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
    """One limit of Discord's, as far as its headers have told; before that it lets one request through at a time.

    `left` is what may still be sent in this window, requests on their way already taken off. A request that is on its
    way when the window ends might be counted in the next one: it is taken off there until its answer says otherwise.
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
        """A ticket if one may be had now."""
        if now < self.blocked_until:
            return None
        self._turn(now)
        # A window whose end nobody has told yet lets a lone request through, or an answer lost would stop it for good.
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
        """When a ticket may next be had without any answer coming in; None if only an answer can tell."""
        if now < self.blocked_until:
            return self.blocked_until
        return self.reset_at

    def give_back(self, ticket: Ticket) -> None:
        """A request that was never sent."""
        self.on_the_way -= 1
        self.left += 1

    def answered(self, ticket: Ticket, now: float, headers: Mapping[str, str] | None) -> None:
        """What the headers of an answer teach; None when no answer came."""
        limit, left, after = _window(headers)
        if self.reset_at is not None and after is not None and now + after > self.reset_at + self.span / 2:
            # Discord's window is another one already: ours ends at the latest moment that it can have, or nobody has
            # asked for a ticket since. The request counts in the new one.
            self._turn(self.reset_at)
        self.on_the_way -= 1
        if limit is None or left is None or after is None:
            # Without headers there is no bucket to keep; without an answer, nothing is learnt.
            self.unlimited = self.unlimited or (headers is not None and self.limit is None)
            return
        if self.limit is None:
            self.left = left - self.on_the_way
        self.unlimited, self.limit, self.span = False, limit, max(self.span, after)
        ends = now + after
        if ticket.window != self.window and ends < self.began + self.span / 2:
            # It was still counted in the window before this one, so what was taken off here for it comes back.
            self.left = min(self.left + 1, limit)
            return
        self.left = min(self.left, left)
        if self.reset_at is None or left <= self.lowest:
            self.reset_at, self.lowest = ends, left


class Limiter:
    """All of one bot's limits, in one process. Not thread safe: it belongs to one event loop."""

    def __init__(self, per_second: float = GLOBAL_PER_SECOND) -> None:
        self._interval = 1.0 / per_second
        self._next_slot = 0.0
        self._global_until = 0.0
        self._hashes: dict[tuple[str, str], str] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}

    async def acquire(self, route: str, major: str, deadline: float) -> Ticket:
        """Wait for the right to send one request; raises WaitTooLong when that cannot be before `deadline` (loop time).

        `route` is the method and path template, `major` the id of the guild or channel in it (or "").
        """
        ticket = await self._from_bucket(self._bucket(route, major), deadline)
        try:
            await self._global_slot(deadline)
        except BaseException:
            ticket.bucket.give_back(ticket)
            self._wake(ticket.bucket)
            raise
        return ticket

    def answered(self, ticket: Ticket, route: str, major: str, headers: Mapping[str, str] | None) -> None:
        """Learn from the answer's headers (lower-case names); None when none came."""
        bucket = ticket.bucket
        bucket.answered(ticket, _now(), headers)
        name = headers.get("x-ratelimit-bucket") if headers else None
        if name:
            self._hashes[route, major] = name
            self._move(bucket, self._buckets.setdefault((name, major), bucket))
        self._wake(self._bucket(route, major))
        self._wake(bucket)
        self._forget_idle()

    def pause(self, ticket: Ticket, seconds: float) -> None:
        """A 429 of this bucket: nothing more from it for so long."""
        bucket = ticket.bucket
        bucket.blocked_until = max(bucket.blocked_until, _now() + seconds)
        self._wake(bucket)

    def pause_all(self, seconds: float) -> None:
        """A global 429: nothing at all for so long."""
        self._global_until = max(self._global_until, _now() + seconds)

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
                unused.bucket.give_back(unused)
                self._wake(unused.bucket)
            if isinstance(fault, TimeoutError):
                raise WaitTooLong(max((bucket.free_at(_now()) or 0.0) - _now(), 1.0)) from None
            raise

    async def _global_slot(self, deadline: float) -> None:
        while True:
            now = _now()
            slot = max(now, self._next_slot, self._global_until)
            if slot > deadline:
                raise WaitTooLong(slot - now)
            self._next_slot = slot + self._interval
            if slot > now:
                await asyncio.sleep(slot - now)
            if self._global_until <= _now():
                return

    def _wake(self, bucket: Bucket) -> None:
        """Hand out what may be had, in order of arrival, and come back when the window ends."""
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
        """Two routes turned out to share a bucket: who waits for the one now waits for the other."""
        if old is not new:
            new.waiters.extend(old.waiters)
            old.waiters.clear()
            self._wake(new)

    def _forget_idle(self) -> None:
        """Keep the tables small when many guilds come by."""
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
    """Limit, Remaining and Reset-After (seconds, with decimals), each None when absent or unreadable."""
    if headers is None:
        return None, None, None
    try:
        return (
            int(headers["x-ratelimit-limit"]),
            int(headers["x-ratelimit-remaining"]),
            float(headers["x-ratelimit-reset-after"]),
        )
    except (KeyError, ValueError):
        return None, None, None
