"""The pace of role writes: close to what Discord allows, and never above it."""

import asyncio
from itertools import pairwise

import pytest

from gateways.discord.invalid_requests import ALLOWED, Refusals
from gateways.discord.rate_limiter import READS, WRITES, Limiter, RequestTurns, WaitTooLong, for_person
from gateways.discord.rest import Discord
from gateways.transport.errors import LONGEST_PAUSE, NotYet
from tests.gateways.clockwork import TickingDiscord, run


async def _write(discord: Discord, guild: int, count: int) -> None:
    """Send `count` writes in one guild, some tens at a time as a writer would."""
    todo = list(range(count))

    async def worker() -> None:
        while todo:
            member = todo.pop()
            await _patiently(discord, str(100 + guild), str(10_000 + member))

    await asyncio.gather(*(worker() for _ in range(20)))


async def _patiently(discord: Discord, guild: str, member: str) -> None:
    """Send one write, retried when the gateway allows it."""
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
    # Well inside the run: the burst at its start and the stragglers at its end are left out.
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


def test_four_hundred_writes_wait_and_are_all_sent() -> None:
    server = TickingDiscord(limit=100, window=0.2, per_second=10**9, latency=0.001)

    async def crowd() -> None:
        discord = Discord(
            "http://discord.test", "t", "http://x", deadline=10_000, limiter=Limiter(10**6), transport=server
        )
        await asyncio.gather(*(_patiently(discord, "1", str(n + 1)) for n in range(400)))
        await discord.close()

    run(crowd())
    assert server.sent == 400


def test_one_key_that_asks_for_much_keeps_nobody_else_waiting() -> None:
    async def story() -> None:
        turns, served = RequestTurns(10), list[str]()

        async def ask(lane: str, key: str) -> None:
            await turns.take(lane, key, 10_000)
            served.append(key)

        many = [asyncio.create_task(ask(READS, "many")) for _ in range(50)]
        await asyncio.sleep(0)
        others = [asyncio.create_task(ask(READS, "one")), asyncio.create_task(ask(WRITES, "role"))]
        await asyncio.gather(*others)
        assert len(served) <= 5
        await asyncio.gather(*many)

    run(story())


def test_role_writes_have_two_of_three_turns_while_reads_wait_too() -> None:
    async def story() -> None:
        turns, served = RequestTurns(10), list[str]()

        async def ask(lane: str, key: str) -> None:
            await turns.take(lane, key, 10_000)
            served.append(lane)

        await asyncio.gather(*(ask(lane, str(key)) for key in range(60) for lane in (READS, WRITES)))
        assert 55 <= served[:90].count(WRITES) <= 60

    run(story())


def test_a_share_is_kept_to_and_next_to_nothing_is_sent_once_it_lapsed() -> None:
    async def story() -> None:
        loop, turns, moments = asyncio.get_running_loop(), RequestTurns(48), list[float]()
        began = loop.time()
        turns.lease(20, began + 5)

        async def ask(key: int) -> None:
            await turns.take(READS, str(key), 10_000)
            moments.append(loop.time() - began)

        await asyncio.gather(*(ask(key) for key in range(110)))
        assert 98 <= sum(moment < 5 for moment in moments) <= 101
        late = [moment for moment in moments if moment > 5]
        assert all(after - before >= 0.99 for before, after in pairwise(late))

    run(story())


def test_who_gave_up_takes_nobodys_turn() -> None:
    async def story() -> None:
        turns = RequestTurns(1)
        await turns.take(READS, "a", 10_000)
        began = asyncio.get_running_loop().time()
        with pytest.raises(WaitTooLong):
            await turns.take(READS, "a", began + 0.5)
        gone = asyncio.create_task(turns.take(READS, "a", 10_000))
        await asyncio.sleep(0.1)
        gone.cancel()
        await turns.take(READS, "b", 10_000)
        assert asyncio.get_running_loop().time() - began <= 1.01
        assert turns.wanted() == {READS: 4, WRITES: 0}
        assert turns.wanted() == {READS: 0, WRITES: 0}

    run(story())


def test_processes_with_shares_stay_within_discords_rate_together() -> None:
    server = TickingDiscord(limit=1000, window=0.2)

    async def processes() -> None:
        clients = [Discord("http://discord.test", "t", "http://x", deadline=10_000, transport=server) for _ in range(4)]
        for client, share in zip(clients, (30, 10, 4, 2), strict=True):
            client.turns.lease(share, 10_000)
        work = asyncio.gather(*(_write(client, place, 60) for place, client in enumerate(clients)))
        await asyncio.sleep(2)
        server.too_many = 0  # after a pause a small share allows the requests of one screen at once
        await work
        for client in clients:
            await client.close()

    run(processes())
    assert server.too_many == 0


def test_of_one_person_at_most_ten_requests_leave_in_a_second_and_nobody_waits_behind_them() -> None:
    async def all_at_once() -> tuple[list[float], float, float]:
        limiter, clock = Limiter(), asyncio.get_running_loop().time
        began, sent = clock(), list[float]()

        async def ask(person: str, guild: str, lane: str = READS) -> float:
            with for_person(person):
                ticket = await limiter.acquire("GET /guilds/{}", guild, began + 1_000, lane)
            limiter.answered(ticket, "GET /guilds/{}", guild, {})
            return clock() - began

        async def hostile(number: int) -> None:
            sent.append(await ask("mallory", str(number)))

        many = [asyncio.create_task(hostile(number)) for number in range(300)]
        await asyncio.sleep(0.05)
        admin, write = await asyncio.gather(ask("ada", "7"), ask("", "7", WRITES))
        await asyncio.gather(*many)
        return sent, admin, write

    sent, admin, write = run(all_at_once())
    assert max(sum(first <= one < first + 1.0 for one in sent) for first in sent) <= 10
    assert admin < 1.0
    assert write < 1.0


def test_what_one_person_asks_past_the_deadline_is_refused_at_once() -> None:
    async def flood() -> int:
        limiter = Limiter()
        deadline = asyncio.get_running_loop().time() + 2.0
        with for_person("mallory"):
            answers = await asyncio.gather(
                *(limiter.acquire("GET /guilds/{}", str(number), deadline) for number in range(100)),
                return_exceptions=True,
            )
        assert {type(answer) for answer in answers if isinstance(answer, BaseException)} == {WaitTooLong}
        return sum(not isinstance(answer, BaseException) for answer in answers)

    assert run(flood()) <= 20


@pytest.mark.parametrize("said", ["nan", "inf", "1e308", "1784000000"])
def test_no_answer_ends_a_route_for_ever(said: str) -> None:
    """Some proxies write the time of day in place of seconds."""

    async def ask_twice() -> None:
        limiter, loop = Limiter(), asyncio.get_running_loop()
        used_up = {"x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": said}
        ticket = await limiter.acquire("GET /x", "1", loop.time() + 1)
        limiter.answered(ticket, "GET /x", "1", used_up)
        await asyncio.sleep(LONGEST_PAUSE + 1)
        await limiter.acquire("GET /x", "1", loop.time() + 1)

    run(ask_twice())


@pytest.mark.parametrize("all_of_them", [False, True])
def test_no_429_stops_requests_for_ever(all_of_them: bool) -> None:
    async def ask_twice() -> None:
        limiter, loop = Limiter(), asyncio.get_running_loop()
        ticket = await limiter.acquire("GET /x", "1", loop.time() + 1)
        limiter.answered(ticket, "GET /x", "1", None)
        if all_of_them:
            limiter.pause_all(1784000000.0)
        else:
            limiter.pause(ticket, 1784000000.0)
        with pytest.raises(WaitTooLong) as caught:
            await limiter.acquire("GET /x", "1", loop.time() + 1)
        assert caught.value.seconds == pytest.approx(LONGEST_PAUSE)
        assert limiter.turns.met_pause() <= LONGEST_PAUSE
        await asyncio.sleep(LONGEST_PAUSE + 1)
        await limiter.acquire("GET /x", "1", loop.time() + 1)

    run(ask_twice())


def test_a_429_pauses_the_bucket_that_two_routes_turn_out_to_share() -> None:
    told = {"x-ratelimit-bucket": "shared", "x-ratelimit-limit": "5", "x-ratelimit-reset-after": "10"}

    async def ask_by_both() -> None:
        limiter, clock = Limiter(), asyncio.get_running_loop()
        first = await limiter.acquire("PUT", "1", clock.time() + 1)
        limiter.answered(first, "PUT", "1", {**told, "x-ratelimit-remaining": "4"})
        other = await limiter.acquire("DELETE", "1", clock.time() + 1)
        limiter.answered(other, "DELETE", "1", {**told, "x-ratelimit-remaining": "0"})
        limiter.pause(other, 10.0)
        for route in ("PUT", "DELETE"):
            with pytest.raises(WaitTooLong):
                await limiter.acquire(route, "1", clock.time() + 1)

    run(ask_by_both())
