"""When followers poll: all of a process at the same moment, and soon after a new block. The clock of the loop jumps."""

import asyncio
import selectors
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from jobs.following import follower
from jobs.following.follower import Follower
from services.runtime.task_cancellation import stop

Polls = dict[str, list[float]]


class Jumping(selectors.SelectSelector):
    """A selector that lets the time to the next timer pass at once."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.passed += timeout or 0
        return super().select(0)


@pytest.fixture
def loop() -> Iterator[asyncio.SelectorEventLoop]:
    """An event loop that waits for nothing."""
    jumping = Jumping()
    made = asyncio.SelectorEventLoop(jumping)
    made.time = lambda: 1_000.4 + jumping.passed
    yield made
    made.close()


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> Polls:
    """The times at which each chain is polled, once a second; nothing is read."""
    noted: Polls = {}

    async def once(polling: Follower) -> bool:
        noted.setdefault(polling.chain, []).append(asyncio.get_running_loop().time())
        return False

    async def nothing(*_: object) -> None:
        pass

    @asynccontextmanager
    async def no_database() -> AsyncIterator[None]:
        yield

    monkeypatch.setenv("FOLLOW_SECONDS", "1")
    follower.settings.cache_clear()
    monkeypatch.setattr(Follower, "once", once)
    monkeypatch.setattr(follower, "transaction", no_database)
    monkeypatch.setattr(follower.chain_cursor, "release_leases", nothing)
    return noted


def test_followers_that_start_apart_poll_together(loop: asyncio.SelectorEventLoop, polls: Polls) -> None:
    async def follow() -> None:
        first = asyncio.create_task(Follower("base").run())
        await asyncio.sleep(0.3)
        second = asyncio.create_task(Follower("ethereum").run())
        await asyncio.sleep(10)
        await stop(first, second)

    loop.run_until_complete(follow())
    assert len(polls["base"]) in range(9, 13)
    assert polls["base"][-5:] == pytest.approx(polls["ethereum"][-5:], abs=0.01)


def test_new_blocks_bring_a_poll_forward_but_not_more_than_one_a_second(
    loop: asyncio.SelectorEventLoop, polls: Polls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLLOW_SECONDS", "60")
    follower.settings.cache_clear()
    called = asyncio.Event()

    async def follow() -> None:
        following = asyncio.create_task(Follower("base", called=called).run())
        for _ in range(40):
            await asyncio.sleep(0.25)
            called.set()
        await stop(following)

    loop.run_until_complete(follow())
    times = polls["base"]
    assert 9 <= len(times) <= 11
    assert min(after - before for before, after in pairwise(times)) > 0.99
