"""Rate limits: a number of calls a minute, then one at a time; with Redis all processes count together."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from redis.asyncio import Redis

from services.core.actors import Actor, TokenUse
from services.core.errors import TooMany
from services.runtime import rate_limits
from services.runtime.rate_limits import MOST_KEYS, WRITES, OwnCounts, SharedCounts
from settings import settings
from tests.conftest import free_port


class Clock:
    """A clock that stops until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that sets limits for a test."""

    def say(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name.upper(), str(value))
        settings.cache_clear()

    monkeypatch.delenv("REDIS_URL", raising=False)
    settings.cache_clear()
    yield say
    settings.cache_clear()


@pytest.fixture(autouse=True)
async def fresh() -> AsyncIterator[None]:
    """Empty counts before and after the test."""
    await rate_limits.forget()
    yield
    await rate_limits.forget()


async def refused_after(spend: Callable[[], Awaitable[None]], most: int = 50) -> int:
    """Return how many calls pass before the first refusal."""
    for number in range(most):
        try:
            await spend()
        except TooMany:
            return number
    return most


async def test_so_many_come_at_once_and_then_one_at_a_time() -> None:
    clock = Clock()
    counts = OwnCounts(clock)
    assert [await counts.spend("a", 6) for _ in range(6)] == [0.0] * 6
    assert await counts.spend("a", 6) == pytest.approx(10)
    clock.now += 9
    assert await counts.spend("a", 6) == pytest.approx(1)
    clock.now += 1
    assert await counts.spend("a", 6) == 0.0
    assert await counts.spend("a", 6) == pytest.approx(10)
    assert await counts.spend("b", 6) == 0.0, "another key is another's"
    clock.now += 1_000
    assert [await counts.spend("a", 6) for _ in range(7)] == [*[0.0] * 6, pytest.approx(10)]


async def test_what_is_made_up_for_is_forgotten_and_never_more_is_kept_than_fits() -> None:
    clock = Clock()
    counts = OwnCounts(clock)
    for number in range(MOST_KEYS + 1_000):
        await counts.spend(str(number), 1)
    assert len(counts._made_up) <= MOST_KEYS
    assert await counts.spend(str(MOST_KEYS + 999), 1) > 0, "the newest are kept"
    clock.now += 61
    for number in range(MOST_KEYS):
        await counts.spend(f"later {number}", 1)
    assert len(counts._made_up) <= MOST_KEYS
    assert str(MOST_KEYS + 999) not in counts._made_up


async def test_processes_count_together_in_redis(redis_url: str) -> None:
    one, other = SharedCounts(redis_url), SharedCounts(redis_url)
    try:
        waits = [await counts.spend("together", 6) for counts in (one, other) * 4]
    finally:
        await one.close()
        await other.close()
    assert waits[:6] == [0.0] * 6
    assert all(9 < wait <= 10 for wait in waits[6:]), waits


async def test_after_a_clock_that_was_ahead_nobody_waits_until_its_time(redis_url: str) -> None:
    counts, redis = SharedCounts(redis_url), Redis.from_url(redis_url)  # pyright: ignore[reportUnknownMemberType]
    try:
        seconds, _ = await redis.time()
        await redis.set("holdfast:limit:ahead", str(seconds + 86_400))
        assert [await counts.spend("ahead", 6) for _ in range(7)] == [*[0.0] * 6, pytest.approx(10, abs=1)]
    finally:
        await redis.delete("holdfast:limit:ahead")
        await redis.aclose()
        await counts.close()


async def test_a_person_and_an_address_are_counted_apart(limited: Callable[..., None]) -> None:
    limited(limit_previews=3)
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PREVIEWS, 7)) == 3
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PREVIEWS, 8)) == 3
    assert await refused_after(lambda: rate_limits.spend_for_address(rate_limits.PREVIEWS, "192.0.2.7")) == 6
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PROOFS, 7), 3) == 3, (
        "another thing is counted apart"
    )


async def test_with_redis_set_it_is_counted_there(limited: Callable[..., None], redis_url: str) -> None:
    limited(limit_previews=3, redis_url=redis_url)
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PREVIEWS, 70_001)) == 3
    await rate_limits.forget()  # as a new process that has counted nothing
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PREVIEWS, 70_001)) == 0


async def test_without_an_answer_from_redis_nobody_is_shut_out(
    limited: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    limited(limit_previews=1, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    assert await refused_after(lambda: rate_limits.spend(rate_limits.PREVIEWS, 7), 3) == 3
    assert "Redis unavailable" in caplog.text


async def test_it_says_when_to_come_again(limited: Callable[..., None]) -> None:
    limited(limit_previews=1)
    await rate_limits.spend(rate_limits.PREVIEWS, 7)
    with pytest.raises(TooMany, match=r"^That was too often\. Please try again in 60 seconds\.$") as refused:
        await rate_limits.spend(rate_limits.PREVIEWS, 7)
    assert refused.value.status == 429
    assert refused.value.retry_after == 60


async def test_new_tokens_bring_no_new_limits(limited: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    limited(limit_writes=2)
    monkeypatch.setattr(rate_limits, "_counts", OwnCounts(Clock()))

    def token(number: int, *, server_id: int = 1, user_id: int = 1) -> Actor:
        use = TokenUse(number, "ci", server_id, frozenset({"read"}))
        return Actor(user_id, str(user_id), "somebody", token=use)

    async def allowed(actor: Actor) -> int:
        return await refused_after(lambda: rate_limits.spend_for(WRITES, actor))

    assert [await allowed(token(number)) for number in range(1, 6)] == [2, 2, 2, 0, 0]
    assert await allowed(token(6, server_id=2)) == 2, "another server's tokens count for themselves"
    assert await allowed(token(7, user_id=2)) == 2, "and so do those of another admin"
    assert await allowed(Actor(1, "1", "somebody")) == 2, "and the person in the browser"
