"""The schedule: which job starts when, in which process, and what happens when it cannot."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import psycopg
import pytest
from apscheduler.schedulers import base
from sqlalchemy.exc import OperationalError

from jobs import scheduler
from jobs.scheduler import Every, ScheduledJob
from models import Schedule, now, transaction
from services.runtime import schedules
from services.runtime.retries import run_forever
from services.runtime.task_cancellation import stop
from tests.jobs.town import until
from tests.services.conftest import database as database

pytestmark = pytest.mark.usefixtures("database")

OFTEN = Every(timedelta(milliseconds=10))
DAY = timedelta(days=1)
PATIENCE_SECONDS = 60


class Work:
    """Work that counts its runs; each run waits at the gate."""

    def __init__(self) -> None:
        self.turns = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = asyncio.Event()

    async def __call__(self, _: object) -> None:
        self.turns += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # as a database client cancels its statement
            self.cancelled.set()
            raise

    async def reaches(self, turns: int) -> None:
        """Wait until it has had so many runs."""

        async def there() -> bool:
            return self.turns >= turns

        await until(there)


@asynccontextmanager
async def kept(*jobs: ScheduledJob, processes: int = 1) -> AsyncIterator[None]:
    """Run a schedule in so many processes at once."""

    def run() -> Coroutine[Any, Any, None]:
        return run_forever(lambda: scheduler.run(jobs))

    tasks = [asyncio.create_task(run()) for _ in range(processes)]
    try:
        yield
    finally:
        await stop(*tasks)


def often(work: Callable[[Any], Coroutine[Any, Any, None]], name: str = "often") -> ScheduledJob:
    return ScheduledJob(name, work, trigger=OFTEN)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Set the clock that APScheduler reads forward or back."""
    real, shift = datetime, timedelta()

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Shifted":
            moved = real.now(tz or UTC) + shift
            return cls.combine(moved.date(), moved.timetz())

    def by(difference: timedelta) -> None:
        nonlocal shift
        shift += difference

    monkeypatch.setattr(base, "datetime", Shifted)
    return by


def test_each_job_has_a_name_of_its_own() -> None:
    names = [job.name for job in scheduler.all_jobs()]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("difference", [-DAY, 3650 * DAY])
async def test_a_clock_that_is_set_neither_stops_the_schedule_nor_brings_every_missed_turn(
    set_clock: Callable[[timedelta], None], difference: timedelta
) -> None:
    work = Work()
    async with kept(often(work)), asyncio.timeout(PATIENCE_SECONDS):
        await work.reaches(2)
        set_clock(difference)
        had = work.turns
        await work.reaches(had + 3)


@pytest.mark.parametrize("found", [0, False, None])
async def test_a_job_that_found_nothing_rests_while_the_others_go_on(found: object) -> None:
    turns = 0

    async def work(_: object) -> object:
        nonlocal turns
        turns += 1
        return 1 if turns < 3 else found

    asked, kept_waiting = Work(), Work()
    jobs = (
        ScheduledJob("calm", work, idle=DAY, trigger=OFTEN),
        ScheduledJob("daily", kept_waiting, DAY, idle=DAY, trigger=OFTEN), often(asked),
    )  # fmt: skip
    async with transaction() as db:
        db.add(Schedule(name="daily", next_at=now() - DAY))
    async with asyncio.timeout(PATIENCE_SECONDS), kept(*jobs):
        await asked.reaches(20)
        await kept_waiting.reaches(1)
        async with transaction() as db:
            await schedules.bring_forward(db, "daily")
        await asked.reaches(asked.turns + 20)
    assert (turns, kept_waiting.turns) == (3, 1)


async def test_of_two_processes_one_does_what_is_due() -> None:
    work, asked = Work(), Work()
    async with transaction() as db:
        db.add(Schedule(name="daily", next_at=now() - 3 * DAY))
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        kept(ScheduledJob("daily", work, DAY, trigger=OFTEN), often(asked), processes=2),
    ):
        await work.reaches(1)
        await asked.reaches(asked.turns + 20)
        assert work.turns == 1
        async with transaction() as db:
            await schedules.bring_forward(db, "daily")
        await work.reaches(2)
    async with transaction() as db:
        assert timedelta() < (await db.get_one(Schedule, "daily")).next_at - now() <= DAY


async def test_a_turn_that_fails_leaves_the_row_due() -> None:
    async def fails(_: object) -> None:
        raise ValueError

    job = ScheduledJob("daily", fails, DAY)
    async with transaction() as db:
        db.add(Schedule(name="daily", next_at=now() - DAY))
    with pytest.raises(ValueError):
        await scheduler.take_turn(job)
    async with transaction() as db:
        assert (await db.get_one(Schedule, "daily")).next_at < now()


async def test_a_job_that_fails_is_tried_ever_more_rarely_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scheduler, "LONGEST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(scheduler, "RESTART_SECONDS", 3600.0)
    tried = 0

    async def fails(_: object) -> None:
        nonlocal tried
        tried += 1
        raise ValueError("broken")

    work = Work()
    async with kept(often(fails, "broken"), often(work)), asyncio.timeout(PATIENCE_SECONDS):
        await work.reaches(20)
    assert tried == 1
    (told,) = (record for record in caplog.records if record.name == scheduler.log.name)
    assert told.getMessage() == "job failed name=broken retry_seconds=3600"
    assert told.exc_info is not None


async def test_a_slow_job_is_not_begun_twice_and_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    slow, work = Work(), Work()
    slow.gate.clear()
    async with kept(often(slow, "slow"), often(work)), asyncio.timeout(PATIENCE_SECONDS):
        await slow.reaches(1)
        await work.reaches(work.turns + 20)
        assert slow.turns == 1
        slow.gate.set()
        await slow.reaches(3)
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_the_end_waits_for_the_job_that_is_under_way(caplog: pytest.LogCaptureFixture) -> None:
    slow = Work()
    slow.gate.clear()
    async with asyncio.timeout(PATIENCE_SECONDS), kept(often(slow)):
        await slow.reaches(1)
    assert slow.cancelled.is_set()
    assert slow.turns == 1
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_while_the_database_is_away_one_line_says_so_and_then_all_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("services.runtime.retries.RESTART_SECONDS", 0.01)
    away = OperationalError("", {}, psycopg.OperationalError("the connection was lost"))
    works = [Work() for _ in range(5)]
    lost = False

    def losing(work: Work) -> Callable[[object], Coroutine[Any, Any, None]]:
        async def turn(db: object) -> None:
            if lost:
                raise away
            await work(db)

        return turn

    async with kept(*(often(losing(work), str(number)) for number, work in enumerate(works))):
        async with asyncio.timeout(PATIENCE_SECONDS):
            for work in works:
                await work.reaches(2)
            lost = True

            async def told() -> bool:
                return "did not answer" in caplog.text

            await until(told)
            lost = False
            for work in works:
                await work.reaches(work.turns + 2)
    lines = [record for record in caplog.records if record.levelname != "INFO"]
    assert {record.name for record in lines} == {"holdfast.services.runtime.retries"}
