"""How fast role writes leave: close to what Discord allows, and never faster."""

import asyncio
import time

import pytest

from gateways.discord import Discord
from gateways.discord_limits import Limiter
from gateways.errors import NotYet
from gateways.refusals import ALLOWED, Refusals
from tests.gateways.clockwork import TickingDiscord, run


async def _write(discord: Discord, guild: int, count: int) -> None:
    """`count` writes in one guild, some tens in flight as a writer would have them."""
    todo = list(range(count))

    async def worker() -> None:
        while todo:
            member = todo.pop()
            await _patiently(discord, str(100 + guild), str(10_000 + member))

    await asyncio.gather(*(worker() for _ in range(20)))


async def _patiently(discord: Discord, guild: str, member: str) -> None:
    """One write, tried again when the gateway says that it may go."""
    while True:
        try:
            return await discord.add_role(guild, member, "7", "because")
        except NotYet as wait:
            await asyncio.sleep(wait.retry_after or 0.01)


@pytest.mark.parametrize("guilds", [1, 4, 8])
@pytest.mark.parametrize(("limit", "window"), [(10, 10.0), (10, 1.0), (5, 5.0)])
def test_writes_reach_95_percent_of_the_allowed_rate_without_a_429(guilds: int, limit: int, window: float) -> None:
    server = TickingDiscord(limit=limit, window=window, latency=0.005)
    each = limit * 12

    async def all_guilds() -> None:
        discord = Discord("http://discord.test/api/v10", "t", "http://x", deadline=10_000, transport=server)
        await asyncio.gather(*(_write(discord, guild, each) for guild in range(guilds)))
        await discord.close()

    run(all_guilds())
    assert server.too_many == 0
    assert len(server.admitted) == each * guilds
    allowed = min(guilds * limit / window, server.per_second)
    # Well inside the run: neither the burst at its start nor the stragglers at its end count.
    start = server.admitted[0] + 3 * window
    steady = sum(start <= moment < start + 6 * window for moment in server.admitted) / (6 * window)
    assert steady >= 0.95 * allowed


def test_slow_answers_that_overtake_one_another_cause_no_429() -> None:
    server = TickingDiscord(limit=10, window=2.0, latency=0.4)

    async def two_guilds() -> None:
        discord = Discord("http://discord.test", "t", "http://x", deadline=10_000, transport=server)
        await asyncio.gather(*(_write(discord, guild, 100) for guild in range(2)))
        await discord.close()

    run(two_guilds())
    assert server.too_many == 0


def test_after_a_thousand_refusals_nothing_is_sent_for_the_rest_of_the_ten_minutes() -> None:
    async def story() -> None:
        refusals = Refusals()
        for _ in range(ALLOWED):
            refusals.add()
        assert refusals.pause() == pytest.approx(600)
        await asyncio.sleep(599)
        assert refusals.pause() == pytest.approx(1)
        await asyncio.sleep(2)
        assert refusals.pause() == 0

    run(story())


def test_four_thousand_waiting_writes_cost_little_each() -> None:
    server = TickingDiscord(limit=1000, window=0.2, per_second=10**9, latency=0.001)

    async def crowd() -> None:
        discord = Discord(
            "http://discord.test", "t", "http://x", deadline=10_000, limiter=Limiter(10**6), transport=server
        )
        await asyncio.gather(*(_patiently(discord, "1", str(n + 1)) for n in range(4_000)))
        await discord.close()

    began = time.process_time()
    run(crowd())
    print(f"{(time.process_time() - began) / 4_000 * 1e6:.0f} us a request, httpx included")
    assert server.sent == 4_000
