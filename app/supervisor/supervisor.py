"""The supervisor: starts the processes of one machine in order, keeps them running, and stops them in order."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.postgres.account import Say
from app.postgres.binaries import PostgresFailed
from app.postgres.restore_swap import finish_or_undo
from app.postgres.server import Postgres
from app.supervisor.child_process import Keeper, Pauses, Program, end_printing, printed
from app.supervisor.probe import answers_ok
from app.supervisor.single_instance import Lock, Running, end_survivors

WATCH_SECONDS = 2.0
MIGRATE = "migrate"
"""The name before each line of the command that migrates the database."""
SLOW_SECONDS = 60.0
HEALTH_FIRST_SECONDS = 20.0
"""Longest time for which `after_health` programs wait for the health check."""


class StartFailed(Exception):
    """Raised when a step that the processes need did not succeed."""


@dataclass(frozen=True)
class ProcessPlan:
    """The processes of one machine.

    `url` is what people open. `health` is the (port, path, Host header, address) of the check, None without web.
    `database` is the directory of the embedded PostgreSQL, None when `environment` has a DATABASE_URL. `migrate` is the
    command that migrates the database; it is left out where the embedded one already has `newest_migration`. Programs
    start in their order.
    """

    data_dir: Path
    cwd: Path
    url: str
    programs: tuple[Program, ...]
    environment: Mapping[str, str]
    database: Path | None = None
    migrate: tuple[str, ...] = ()
    newest_migration: str = ""
    health: tuple[int, str, str, str] | None = None
    ready_text: str = "Holdfast is ready."
    pauses: Pauses = field(default_factory=Pauses)


class Supervisor:
    """Runs a plan until stopped: by stop(), SIGINT, SIGTERM, or SIGHUP (a closed terminal) unless it is ignored."""

    def __init__(self, plan: ProcessPlan, *, say: Say, check: Callable[[], None] = lambda: None) -> None:
        self._plan = plan
        self._say = say
        self._check = check
        """Raises what prevents a start; called with the lock held."""
        self._lock = Lock(plan.data_dir)
        self._postgres = Postgres(plan.database, say=say) if plan.database else None
        self._environment = dict(plan.environment)
        self._keepers: list[Keeper] = []
        self._stopping = asyncio.Event()
        self.database_is_up = asyncio.Event()
        """Set once the database runs and is up to date, which takes minutes where migrations rewrite large tables."""
        self._answered_by_another = False
        """Whether a program that is not ours has answered the health check since before our start."""

    def stop(self) -> None:
        """Begin to stop; a second call kills the processes instead of waiting for them."""
        if self._stopping.is_set():
            for keeper in self._keepers:
                keeper.kill()
        self._stopping.set()
        if self._postgres is not None:
            self._postgres.give_up()

    async def run(self) -> None:
        """Start everything, keep it running, and stop it on request.

        Raises AlreadyRunning if another supervisor has the data directory, StartFailed or PostgresFailed if the
        database cannot be started; whatever has started by then is stopped first.
        """
        said = Running(os.getpid(), self._plan.url, has_web=self._plan.health is not None)
        self._lock.take(said)
        # Seconds since this machine's boot: nobody sets them, unlike its clock, and they continue while it sleeps.
        self._environment["HOLDFAST_STARTED"] = str(time.clock_gettime(time.CLOCK_BOOTTIME))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
            # A closed terminal may send it twice, which must not kill anything.
            loop.add_signal_handler(signal.SIGHUP, lambda: None if self._stopping.is_set() else self.stop())
        try:
            self._check()
            if ended := await asyncio.to_thread(end_survivors, self._plan.data_dir):
                self._say(f"ended {ended} processes that an earlier run left behind")
            await self._bring_up_database()
            self.database_is_up.set()
            self._lock.say(replace(said, database_url=self._environment.get("DATABASE_URL")))
            self._answered_by_another = self._plan.health is not None and await answers_ok(*self._plan.health)
            await self._bring_up_programs()
            await self._watch()
        finally:
            await self._take_down()

    async def _bring_up_database(self) -> None:
        if self._postgres is not None and not self._stopping.is_set():
            await asyncio.to_thread(finish_or_undo, self._postgres.data_dir, self._say)
            self._say("starting PostgreSQL")
            self._environment["DATABASE_URL"] = await asyncio.to_thread(self._postgres.start)
        if self._plan.migrate and not self._stopping.is_set() and not await self._is_migrated():
            self._say("bringing the database up to date")
            writing, printing = printed(MIGRATE)
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._plan.migrate, cwd=self._plan.cwd, env=self._environment, stdin=asyncio.subprocess.DEVNULL,
                    stdout=writing, stderr=writing, process_group=0,
                )  # fmt: skip
            finally:
                os.close(writing)
            ended = asyncio.ensure_future(process.wait())
            stopped = asyncio.ensure_future(self._stopping.wait())
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if process.returncode is None:  # the database rolls the migration back, and the next start repeats it
                process.terminate()
            code = await ended
            await end_printing(printing)
            if code != 0 and not self._stopping.is_set():
                raise StartFailed("The database could not be brought up to date; the reason is above.")

    async def _is_migrated(self) -> bool:
        """Return whether the embedded database has the newest migration; asking is cheaper than starting `migrate`."""
        if self._postgres is None or not self._plan.newest_migration:
            return False
        return await asyncio.to_thread(self._postgres.migration) == self._plan.newest_migration

    async def _bring_up_programs(self) -> None:
        for program in self._plan.programs:
            if program.after_health:
                await self._wait_for_health()
            if self._stopping.is_set():
                return
            self._say(f"starting {program.name}")
            keeper = Keeper(
                program, cwd=self._plan.cwd, environment=self._environment, pauses=self._plan.pauses, say=self._say
            )
            self._keepers.append(keeper)
            keeper.start()
            waits = [asyncio.ensure_future(keeper.ready()), asyncio.ensure_future(self._stopping.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if waits[0].done() and not waits[0].result() and not keeper.gave_up:
                self._say(f"{program.name} is not ready yet; going on without it")
            for wait in waits:
                wait.cancel()

    async def _wait_for_health(self) -> None:
        """Wait until the health check answers, but no longer than HEALTH_FIRST_SECONDS."""
        deadline = time.monotonic() + HEALTH_FIRST_SECONDS
        while not self._stopping.is_set() and time.monotonic() < deadline and not await self._is_healthy():
            await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        """Report the first time that all is well, and restart PostgreSQL if it ends."""
        begun, told, ready = time.monotonic(), False, False
        pause: float | None = None
        while not self._stopping.is_set():
            if not ready and (ready := await self._is_healthy()):
                self._say(self._plan.ready_text)
            if not ready and not told and time.monotonic() - begun > SLOW_SECONDS:
                told = True
                self._say("still not healthy; what the processes say is above")
            if self._postgres is not None and not self._postgres.is_running():
                self._say("PostgreSQL has ended; starting it again")
                pause = await self._restart_postgres(self._postgres, pause)
            else:
                pause = None
                if ready and self._postgres is not None:
                    await asyncio.to_thread(self._postgres.shorten_log)
            try:
                await asyncio.wait_for(self._stopping.wait(), pause or (WATCH_SECONDS if ready or told else 0.1))
            except TimeoutError:
                continue

    async def _restart_postgres(self, postgres: Postgres, pause: float | None) -> float | None:
        """Start PostgreSQL again. If that fails, return the pause until the next attempt: a full disk may get space."""
        try:
            await asyncio.to_thread(postgres.start)
        except (PostgresFailed, OSError) as fault:
            pause = self._plan.pauses.after(pause, ran=0.0)
            self._say(f"{fault}\nPostgreSQL did not start; trying again in {pause:g} s")
            return pause
        return None

    async def _is_healthy(self) -> bool:
        if self._plan.health is None:
            return True
        answered = await answers_ok(*self._plan.health)
        if self._answered_by_another:
            # Our web can listen only once the other program has let go of the port, and then nobody answers at first.
            self._answered_by_another = answered
            return False
        return answered

    async def _take_down(self) -> None:
        """Stop the programs that nobody waits for, all at once; then the others, last to first; then the database.

        If a step fails, the others are still taken; the last error is raised.
        """
        # The last step comes first on this stack.
        async with AsyncExitStack() as steps:
            steps.callback(self._lock.release)
            if self._postgres is not None:
                steps.push_async_callback(asyncio.to_thread, self._postgres.stop)
            # End the children of a child that was killed.
            steps.push_async_callback(asyncio.to_thread, end_survivors, self._plan.data_dir, patience=2.0)
            for keeper in self._keepers:
                if keeper.program.ready_port is not None:
                    steps.push_async_callback(keeper.stop)
            steps.push_async_callback(self._stop_those_nobody_waits_for)
            self._stopping.set()
            if self._keepers:
                self._say("stopping")

    async def _stop_those_nobody_waits_for(self) -> None:
        stops = [keeper.stop() for keeper in self._keepers if keeper.program.ready_port is None]
        for result in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
