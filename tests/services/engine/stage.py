"""A worker with stand-in reconciles that tests can hold up: `Stage`, and helpers that mark members for it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import inf

import pytest
from sqlalchemy import text

from jobs import reconciler
from jobs.reconciler import Reconciler
from models import AsyncSession, transaction
from services.core import queue
from services.core.queue import Claim
from services.engine import reconcile
from services.engine.reconcile import BatchPart
from services.runtime import postgres_listen
from services.runtime.postgres_listen import Listener
from services.runtime.task_cancellation import stop
from settings import settings


class Stage:
    """Reconciles that end at once, except those of servers in `held`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.held: set[int] = set()
        self.dear: set[int] = set()
        self.chains: dict[int, str] = {}
        self.under_way: list[int] = []
        self.settled: list[Claim] = []
        self.sizes: list[int] = []
        self.unanswered: set[int] = set()
        """Indexes in `sizes` of parts with a member who could not be read."""
        self.late: set[int] = set()
        """Indexes of parts that take longer than a lane may be occupied."""
        self.go_on = asyncio.Event()
        self.idle = False
        """Whether the worker has nothing to claim and waits for a notification."""
        monkeypatch.setattr(reconciler, "wait", self.wait)
        monkeypatch.setattr(reconcile, "parts", self.parts)
        monkeypatch.setattr(reconcile, "reconcile_part", self.reconcile_part)
        monkeypatch.setattr(reconciler, "PACE_SECONDS", 0.02)
        monkeypatch.setattr(reconciler, "IDLE_SECONDS", 0.02)

    async def parts(self, _db: AsyncSession, _outside: object, claims: Sequence[Claim]) -> list[BatchPart]:
        by_server: dict[int, list[Claim]] = {}
        for claim in claims:
            by_server.setdefault(claim.server_id, []).append(claim)
        return [
            BatchPart(
                some,
                None,  # pyright: ignore[reportArgumentType]
                None,  # pyright: ignore[reportArgumentType]
                server_id if server_id in self.dear else None,
                frozenset({self.chains[server_id]} if server_id in self.chains else ()),
            )
            for server_id, some in by_server.items()
        ]

    async def reconcile_part(self, _outside: object, worker: str, part: BatchPart) -> bool:
        (server_id,) = {claim.server_id for claim in part.claims}
        place = len(self.sizes)
        self.sizes.append(len(part))
        self.under_way.append(server_id)
        try:
            if server_id in self.held:
                await self.go_on.wait()
        finally:
            self.under_way.remove(server_id)
        async with transaction() as db:
            queue.complete(db, worker, part.claims)
        self.settled.extend(part.claims)
        self.monkeypatch.setattr(reconciler, "LANE_SECONDS", -1.0 if place in self.late else inf)
        return place not in self.unanswered

    async def wait(self, called: asyncio.Event, seconds: float) -> None:
        self.idle = seconds == reconciler.IDLE_SECONDS and not called.is_set()
        await postgres_listen.wait(called, seconds)
        self.idle = False

    def servers_settled(self) -> set[int]:
        return {claim.server_id for claim in self.settled}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[Stage]:
    monkeypatch.setenv("DATABASE_URL", database_url)
    settings.cache_clear()
    yield Stage(monkeypatch)
    settings.cache_clear()


async def mark(server_id: int, people: int = 1) -> None:
    async with transaction() as db:
        for number in range(people):
            await queue.mark_member(db, server_id, str(number), queue.CHANGED)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


async def while_it_works(doing: Callable[[Reconciler], Awaitable[None]]) -> None:
    called = asyncio.Event()
    worker = Reconciler(called)
    working = asyncio.create_task(worker.run())
    calling = asyncio.create_task(Listener({queue.CHANNEL: called}).run())
    try:
        await doing(worker)
    finally:
        await stop(working, calling)


async def left() -> int:
    async with transaction() as db:
        return int((await db.execute(text("SELECT count(*) FROM due"))).scalar_one())
