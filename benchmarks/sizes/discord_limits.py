"""The effect of Discord's limits at 50,000 guilds: `python -m benchmarks.sizes.discord_limits [--quick]`.

Nothing waits for a real clock, and no formula is used: the product's own client, limiter and rate shares call a
Discord of 50 requests a second and ten role writes in ten seconds a guild, on an event loop whose clock jumps. The
identifies are taken from the product's own count in a PostgreSQL, which says when each may be sent.
"""

import asyncio
import random
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import quantiles

import httpx

from benchmarks.support import community
from benchmarks.support.rounds import goal, options
from gateways.discord.application import SessionStarts
from gateways.discord.rate_limiter import READS, WRITES
from gateways.discord.rest import Discord
from gateways.transport.errors import NotYet
from jobs.role_writer import AT_ONCE
from models import transaction
from services.guilds import rate_shares
from services.guilds.gateway import identifies
from services.guilds.rate_shares import BOT, WEB, WRITER, Wish
from services.roles.outbox import EACH
from tests.gateways.clockwork import TickingDiscord, run

LIMITS = "Discord's limits"
GUILDS, MEMBERS = 50_000, 4_000_000
LARGEST = 100_000
"""Members of the largest guild."""
A_SHARD = 1_000
"""Guilds for which Discord recommends one shard more."""
WEB_WANTS, BOT_WANTS = 3.0, 2.0
"""Requests a second of the web and of the bot beside the writer."""
TRADED, BUSIEST = 0.01, 0.1
"""The share of members who buy and of those who sell in a day, and the part of these in the busiest hour."""
STORM, STORM_SECONDS = 2_000, 1_200.0
"""Members of one guild who buy within so long, as when a collection is minted."""
HOUR = 3_600.0


@dataclass(order=True, frozen=True, slots=True)
class Change:
    """A role to give or take in a guild, and its earliest time (loop time). A member is read before a removal."""

    at: float
    guild: int
    member: int
    takes: bool = False


class DiscordOfReads(TickingDiscord):
    """Also answers reads of members, which have no bucket and only the global rate."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a read, or a write as its limits allow."""
        if request.method != "GET":
            return await super().handle_async_request(request)
        await asyncio.sleep(self.latency)
        self.seconds[int(asyncio.get_running_loop().time())] += 1
        who = request.url.path.rpartition("/")[2]
        user = {"id": who, "username": "somebody", "discriminator": "0", "avatar": None}
        body = {"user": user, "roles": ["7"], "nick": None, "joined_at": "2026-01-01T00:00:00+00:00"}
        return httpx.Response(200, json={**body, "pending": False, "flags": 0, "deaf": False, "mute": False})


class QueueOfChanges:
    """Carries changes out as the role writer does: so many at once, so many a guild, with guilds in turns."""

    def __init__(self, discord: Discord) -> None:
        self._discord = discord
        self._waiting: dict[int, deque[Change]] = {}
        self._busy: dict[int, int] = {}
        self._resting: dict[int, float] = {}
        self._called = asyncio.Event()
        self.waits: list[tuple[int, float]] = []
        """The guild, and the seconds from a change's earliest time to its answer."""

    def add(self, change: Change) -> None:
        """Put a change into the queue."""
        self._waiting.setdefault(change.guild, deque()).append(change)
        self._called.set()

    async def work(self) -> None:
        """Carry out changes until cancelled."""
        clock = asyncio.get_running_loop().time
        running = set[asyncio.Task[None]]()
        while True:
            self._called.clear()
            while len(running) < AT_ONCE and (change := self._next(clock())) is not None:
                task = asyncio.create_task(self._carry_out(change))
                running.add(task)
                task.add_done_callback(running.discard)
                task.add_done_callback(lambda _: self._called.set())
            rests = [until for guild, until in self._resting.items() if guild in self._waiting]
            pause = max(0.001, min(rests, default=clock() + 1.0) - clock())
            try:
                async with asyncio.timeout(pause):
                    await self._called.wait()
            except TimeoutError:
                continue

    def _next(self, now: float) -> Change | None:
        free = (guild for guild in self._waiting if self._is_free(guild, now))
        if (guild := next(free, None)) is None:
            return None
        self._resting.pop(guild, None)
        changes = self._waiting.pop(guild)
        change = changes.popleft()
        if changes:
            # Moved to the end, so that all guilds have turns.
            self._waiting[guild] = changes
        self._busy[guild] = self._busy.get(guild, 0) + 1
        return change

    def _is_free(self, guild: int, now: float) -> bool:
        return self._resting.get(guild, 0.0) <= now and self._busy.get(guild, 0) < EACH

    async def _carry_out(self, change: Change) -> None:
        clock, guild, member = asyncio.get_running_loop().time, str(100 + change.guild), str(10**6 + change.member)
        try:
            if change.takes:
                await self._discord.member(guild, member)
                await self._discord.remove_role(guild, member, "7", "because")
            else:
                await self._discord.add_role(guild, member, "7", "because")
            self.waits.append((change.guild, clock() - change.at))
        except NotYet as wait:
            self._resting[change.guild] = clock() + (wait.retry_after or 0.01)
            self._waiting.setdefault(change.guild, deque()).appendleft(change)
        finally:
            self._busy[change.guild] -= 1
            if not self._busy[change.guild]:
                del self._busy[change.guild]


@asynccontextmanager
async def writing(server: TickingDiscord) -> AsyncIterator[QueueOfChanges]:
    """A queue that runs with the writer's share of the rate, beside web and bot."""
    discord = Discord("http://discord.test/api/v10", "t", "http://x", deadline=10_000, transport=server)
    queue = QueueOfChanges(discord)
    tasks = [asyncio.create_task(queue.work()), asyncio.create_task(_shared(discord))]
    try:
        yield queue
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await discord.close()


async def _shared(discord: Discord) -> None:
    clock = asyncio.get_running_loop().time
    while True:
        asked = discord.turns.wanted()
        wanted = (asked[WRITES] + asked[READS]) / rate_shares.BEAT_SECONDS
        wishes = [Wish("w", WRITER, max(wanted, 1.0)), Wish("a", WEB, WEB_WANTS), Wish("b", BOT, BOT_WANTS)]
        discord.turns.lease(rate_shares.shares(wishes)["w"], clock() + rate_shares.LEASE_SECONDS)
        await asyncio.sleep(rate_shares.BEAT_SECONDS)


def guild_sizes() -> list[int]:
    """Return the members of each guild: the n-th has a part of LARGEST that falls with n, MEMBERS together."""
    power = 0.62
    raw = [LARGEST / (place**power) for place in range(1, GUILDS + 1)]
    rest = (MEMBERS - LARGEST) / sum(raw[1:])
    return [LARGEST, *(max(1, round(size * rest)) for size in raw[1:])]


async def rate_of(guilds: int, seconds: float) -> tuple[float, int]:
    """Give roles in so many guilds for so long; return the writes a second, and the 429s."""
    server = DiscordOfReads(latency=0.08)
    began = asyncio.get_running_loop().time()
    async with writing(server) as queue:
        # More than can be written in that time.
        for member in range(max(1, round(60 * seconds / guilds))):
            for guild in range(guilds):
                queue.add(Change(began, guild, member))
        await asyncio.sleep(seconds)
        return len(queue.waits) / seconds, server.too_many


def all_again(sizes: Sequence[int], most: float, alone: float) -> tuple[float, float]:
    """Return the seconds until every member has a role again, and until all but the last ten guilds have them.

    Guilds have turns: the n-th role of each guild comes before the next one of any. `most` is the rate of many guilds,
    `alone` that of one.
    """
    left, seconds, before = sorted(sizes), 0.0, 0
    all_but_ten = 0.0
    for place, size in enumerate(left):
        guilds = len(left) - place
        seconds += (size - before) * max(guilds / most, 1 / alone)
        before = size
        if guilds == 11:
            all_but_ten = seconds
    return seconds, all_but_ten


async def busiest_hour(sizes: Sequence[int], chance: random.Random) -> tuple[list[float], list[float], int]:
    """Trade as in the busiest hour; return the waits outside of the guild with a mint, those in it, and the 429s."""
    server = DiscordOfReads(latency=0.08)
    loop = asyncio.get_running_loop()
    began, each = loop.time(), round(MEMBERS * TRADED * BUSIEST)
    guilds = chance.choices(range(1, len(sizes)), weights=sizes[1:], k=2 * each)
    changes = [
        Change(began + chance.uniform(0, HOUR), guild, number, takes=number % 2 == 1)
        for number, guild in enumerate(guilds)
    ]
    changes += [Change(began + 600 + chance.uniform(0, STORM_SECONDS), 0, number) for number in range(STORM)]
    async with writing(server) as queue:
        for change in sorted(changes):
            await asyncio.sleep(max(0.0, change.at - loop.time()))
            queue.add(change)
        while len(queue.waits) < len(changes):
            await asyncio.sleep(1.0)
        there = [wait for guild, wait in queue.waits if guild == 0]
        return [wait for guild, wait in queue.waits if guild], there, server.too_many


async def restarted(database: str, shards: int, concurrency: int) -> tuple[float, int]:
    """Identify all shards again and again; return the seconds of the first time, and how often a day's count allows."""
    async with community.product(database):
        async with transaction() as db:
            await identifies.learn(db, SessionStarts(1_000, 1_000, 86_400.0, concurrency, shards))
        clock = asyncio.get_running_loop().time
        began, longest, times = clock(), 0.0, 0
        while True:
            for shard in range(shards):
                try:
                    async with transaction() as db:
                        wait = await identifies.take(db, shard)
                except identifies.TooManyIdentifies:
                    return longest, times
                if not times:
                    longest = max(longest, clock() - began + wait)
            times += 1


def main(arguments: Sequence[str] = ()) -> None:
    """Simulate and print."""
    parser = options("sizes.discord_limits", __doc__, quick="two minutes of a full re-grant instead of ten")
    given = parser.parse_args(arguments)
    sizes = guild_sizes()
    print(f"\n{GUILDS:,} guilds, {sum(sizes):,} members with a role each, {LARGEST:,} in the largest guild\n")
    seconds = 120.0 if given.quick else 600.0
    most, refused = run(rate_of(10_000, seconds))
    alone, too = run(rate_of(1, seconds))
    every, many = all_again(sizes, most, alone)
    print(
        f"- every role again: {most:.1f} writes a second in many guilds, {alone:.2f} in one; all guilds but ten have "
        f"theirs after {many / HOUR:.0f} hours, the largest after {every / HOUR:.0f}"
    )
    elsewhere, there, again = run(busiest_hour(sizes, random.Random(1)))
    cut = quantiles(elsewhere, n=20)
    print(
        f"- the busiest hour of a day of trades, {len(elsewhere):,} changes in all guilds: from a change to Discord's "
        f"answer half within {cut[9]:.2f} s, 95 of 100 within {cut[-1]:.2f} s, all within {max(elsewhere):.1f} s"
    )
    print(
        f"- {STORM:,} purchases within {STORM_SECONDS / 60:.0f} minutes in one guild at the same time: half of them "
        f"within {quantiles(there, n=2)[0] / 60:.0f} minutes, all within {max(there) / 60:.0f}"
    )
    shards = GUILDS // A_SHARD
    for concurrency in (1, 16):
        with community.database() as database:
            longest, times = asyncio.run(restarted(database, shards, concurrency))
        print(
            f"- {shards} shards identify, {concurrency} at once: the last one after {longest:.0f} s; a day has "
            f"enough for {times} times, and a restart resumes, which takes none"
        )
    goal(LIMITS, "writes a second of a full re-grant", most, least=38)
    goal(LIMITS, "429s of a full re-grant and of the busiest hour", refused + too + again, most=0)
    goal(LIMITS, "seconds from a trade's change to Discord's answer beside a mint, 95 of 100", cut[-1], most=5)


if __name__ == "__main__":
    main(sys.argv[1:])
