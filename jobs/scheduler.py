"""The schedule: APScheduler starts each job, and the job's row in the database decides which process runs it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from apscheduler.job import Job as Entry  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.jobstores.memory import MemoryJobStore  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.base import BaseTrigger  # pyright: ignore[reportMissingTypeStubs]

from gateways import gateways
from models import transaction
from services.collections.census import reach_by_day
from services.core import rollups
from services.guilds import rivals
from services.privacy import erasure, log_partitions, retention
from services.roles import breaker
from services.roles.moves import coverage, lifecycle, messages
from services.rules import pausing
from services.rules.replacements import contract_migrations
from services.runtime import database_faults, schedules
from services.runtime.retries import LONGEST_PAUSE_SECONDS, RESTART_SECONDS, backoff, cancellation_first
from services.runtime.schedules import Work
from services.runtime.task_cancellation import stop
from services.servers import verified_counts
from services.triggers import sweep
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")


class Every(BaseTrigger):
    """A trigger that fires one period after APScheduler last checked the job.

    Missed times are not made up, because the row in the database says what is overdue. APScheduler's own interval
    trigger would list every second of a year if the machine's clock were set forward by a year.
    """

    __slots__ = ("period",)

    def __init__(self, period: timedelta) -> None:
        self.period = period

    # The library's triggers return a datetime too, but its abstract method has no body and no annotation.
    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime:
        """Return the end of the period that starts now."""
        return now + self.period


class SteadyStore(MemoryJobStore):
    """A job store in memory in which no job waits longer than its period, even if the machine's clock is set back."""

    def get_due_jobs(self, now: datetime) -> list[Entry]:
        """Return the jobs that are due, and those whose next time is further away than their period."""
        for entry in cast("list[Entry]", self.get_all_jobs()):  # pyright: ignore[reportUnknownMemberType]
            if cast("datetime", entry.next_run_time) > now + cast("Every", entry.trigger).period:
                entry.next_run_time = now
                self.update_job(entry)  # pyright: ignore[reportUnknownMemberType]
        return cast("list[Entry]", super().get_due_jobs(now))  # pyright: ignore[reportUnknownMemberType]


EACH_SECOND = Every(timedelta(seconds=1))
"""Often enough to start a requested sweep within a second. Asking for a turn that is not due writes nothing."""


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job: what it does, how often one of the processes runs it, and when each process asks for a turn.

    With `every`, the row of `schedule` with the job's name decides which process runs it. Without `every`, each process
    runs the job, and its work locks the rows that it changes. After a turn that was not due, or whose work returned
    nothing (a false value), this process asks for no other for as long as `idle`.
    """

    name: str
    work: Work
    every: timedelta | None = None
    idle: timedelta = timedelta()
    trigger: Every = EACH_SECOND


CALM = timedelta(seconds=5)
"""How long a job pauses when it found nothing to do, so that a quiet product asks little."""
FOLD_EVERY = timedelta(seconds=10)
"""The longest wait of counts before they are folded. Until then, each read adds them up."""
IDLE_EVERY = timedelta(seconds=10)
"""The interval at which trips of the breaker for which nobody waits are ended."""
COUNT_EVERY = timedelta(seconds=5)
"""The interval at which the coverage of one move is stored; each move is stored once within `coverage.STORED_EVERY`."""
REACH_EVERY = timedelta(seconds=5)
"""The interval at which one rule that has no numbers for today gets its daily count."""
HOUSEKEEPING_EVERY = timedelta(hours=1)


def all_jobs() -> Sequence[ScheduledJob]:
    """Return the whole schedule."""
    return (
        ScheduledJob(sweep.SCHEDULE, sweep.begin, timedelta(seconds=settings().sweep_seconds)),
        ScheduledJob("sweep_end", sweep.finish_if_done),
        ScheduledJob("erasure", erasure.finish, idle=CALM),
        ScheduledJob("truces", rivals.end_expired, idle=CALM),
        ScheduledJob("idle_breakers", breaker.end_idle, IDLE_EVERY, idle=CALM),
        ScheduledJob("moves", lifecycle.begin_due, idle=CALM),
        ScheduledJob("move_messages", lambda db: messages.bring_up_to_date(db, gateways()), idle=CALM),
        ScheduledJob("migrations", contract_migrations.end_due, idle=CALM),
        ScheduledJob("move_counts", coverage.store_oldest, COUNT_EVERY),
        ScheduledJob("reach_days", reach_by_day.begin_due, REACH_EVERY),
        ScheduledJob("refused_roles", pausing.retry_refused, idle=CALM),
        ScheduledJob("rollups", rollups.fold, FOLD_EVERY, idle=CALM),
        ScheduledJob("verified_counts", verified_counts.fold, FOLD_EVERY, idle=CALM),
        ScheduledJob(retention.STRANGERS, retention.forget_strangers, HOUSEKEEPING_EVERY, idle=CALM),
        ScheduledJob(retention.SCHEDULE, retention.housekeep, HOUSEKEEPING_EVERY, idle=CALM),
        ScheduledJob(log_partitions.SCHEDULE, log_partitions.maintain_one_step, HOUSEKEEPING_EVERY, idle=CALM),
    )


async def prepare(jobs: Sequence[ScheduledJob]) -> None:
    """Create the missing `schedule` rows of the jobs that need one."""
    async with transaction() as db:
        for job in jobs:
            if job.every is not None:
                await schedules.ensure(db, job.name, job.every)


async def take_turn(job: ScheduledJob) -> bool:
    """Run the job if it is due and no other process runs it; return whether there may be more to do at once."""
    async with transaction() as db:
        if job.every is None:
            return bool(await job.work(db))
        if not await schedules.claim(db, job.name, job.every):
            return False
        await job.work(db)
        return True


class JobRunner:
    """A runner of one job in this process: one turn at a time, with a longer pause after each failure in a row.

    A failure of the job is logged here and does not stop the other jobs. If the database is unreachable, the error is
    put into `lost`.
    """

    def __init__(self, job: ScheduledJob, lost: asyncio.Queue[Exception]) -> None:
        self.job = job
        self._lost = lost
        self._turn: asyncio.Task[None] | None = None
        self._pauses, self._not_before = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS), 0.0
        self._ended = False

    async def begin(self) -> None:
        """Start a turn, unless one is running or the pause after a failure is not over.

        APScheduler runs plain functions in a thread, logs a cancelled coroutine as an error, and does not wait until it
        ends. So it calls this coroutine, which only starts the turn in a separate task.
        """
        free = self._turn is None or self._turn.done()
        if free and not self._ended and asyncio.get_running_loop().time() >= self._not_before:
            self._turn = asyncio.create_task(self._take())

    async def end(self) -> None:
        """Cancel the running turn, wait until it has ended, and start no other."""
        self._ended = True
        if self._turn is not None:
            await stop(self._turn)

    async def _take(self) -> None:
        try:
            with cancellation_first():
                more = await take_turn(self.job)
            self._pauses = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS)
            if not more:
                self._not_before = asyncio.get_running_loop().time() + self.job.idle.total_seconds()
        except Exception as fault:
            if database_faults.is_absent(fault):
                self._lost.put_nowait(fault)
            elif database_faults.is_the_databases(fault):
                database_faults.log_fault(log, fault, f"the job {self.job.name} will be retried")
            else:
                pause = next(self._pauses)
                log.exception("job failed name=%s retry_seconds=%.0f", self.job.name, pause)
                self._not_before = asyncio.get_running_loop().time() + pause


async def run(jobs: Sequence[ScheduledJob] | None = None) -> None:
    """Run the schedule until cancelled, and end every turn before returning. Raises if the database is unreachable."""
    jobs = all_jobs() if jobs is None else jobs
    await prepare(jobs)
    lost = asyncio.Queue[Exception]()
    runners = [JobRunner(job, lost) for job in jobs]
    # A late turn still starts, once.
    late = {"misfire_grace_time": None, "coalesce": True}
    clock = AsyncIOScheduler(jobstores={"default": SteadyStore()}, job_defaults=late, timezone=UTC)
    for runner in runners:
        clock.add_job(runner.begin, runner.job.trigger, id=runner.job.name)  # pyright: ignore[reportUnknownMemberType]
    clock.start()
    try:
        raise await lost.get()
    finally:
        # The pause takes effect at once, the shutdown only when the event loop runs it.
        clock.pause()
        clock.shutdown(wait=False)
        await asyncio.gather(*(runner.end() for runner in runners))
