"""The product scaled out: a PostgreSQL with bot, two jobs processes and web, each killed at any time."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from app.postgres.server import Postgres
from app.supervisor.single_instance import MARK
from tests.conftest import ROOT
from tests.system.soak.clock_ahead import CLOCK_AHEAD_SECONDS
from tests.system.soak.distant_services import DatabaseWay

PROGRAMS = {"bot": "bot", "jobs-1": "jobs", "jobs-2": "jobs", "web": "app.supervisor.web"}
"""The processes by name, and the module that each runs."""
AHEAD = "jobs-2"
"""The process on a machine whose clock is ahead."""
STOP_SECONDS = 30


class Machine:
    """A database and the processes that share it; all files are in `directory`."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self.directory = directory
        # Durable: commits have to survive a sudden end of the database.
        self.postgres = Postgres(directory / "db", say=lambda _: None)
        self.url = self.postgres.start()
        self.way = DatabaseWay(self.url)
        self.nodes = {name: value for name, value in settings.items() if name.startswith("RPC_")}
        self.environment = {**os.environ, **settings, "DATABASE_URL": self.way.url, MARK: str(directory)}
        self.environment["PYTHONFAULTHANDLER"] = "1"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended_by_us: set[int] = set()
        self._stayed: list[str] = []
        for command in (("app.build",), ("alembic", "upgrade", "head")):
            subprocess.run(
                [sys.executable, "-m", *command],
                cwd=ROOT, env=self.environment, check=True, capture_output=True,
            )  # fmt: skip

    def start(self, name: str) -> None:
        """Start one of the processes, unless it runs."""
        process = self.running.get(name)
        if process is None or process.poll() is not None:
            clock = ("tests.system.soak.clock_ahead", str(CLOCK_AHEAD_SECONDS)) if name == AHEAD else ()
            with self.log(name).open("ab") as output:
                self.running[name] = subprocess.Popen(
                    [sys.executable, "-m", *clock, PROGRAMS[name]],
                    cwd=ROOT, env=self.environment, stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip

    def start_all(self) -> None:
        """Start every process that does not run."""
        for name in PROGRAMS:
            self.start(name)

    def log(self, name: str) -> Path:
        """Return the path of a process's log."""
        return self.directory / f"{name}.log"

    def end(self, name: str, how: signal.Signals) -> None:
        """Signal a process; after an ending signal, wait for it. All signals but SIGTERM reach its children as well."""
        process = self.running[name]
        if process.poll() is None:
            if how is signal.SIGTERM:
                process.terminate()
            else:
                os.killpg(process.pid, how)
            if how in {signal.SIGKILL, signal.SIGTERM}:
                self._ended_by_us.add(process.pid)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    # SIGABRT makes it write its present stack into its log.
                    process.send_signal(signal.SIGABRT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(STOP_SECONDS)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    told = self.log(name).read_text(errors="replace")[-6000:]
                    self._stayed.append(f"{name} did not end within {STOP_SECONDS} s of being told to:\n{told}")

    def restart_database(self, random: Random) -> None:
        """Stop the database, properly or as in a crash, and start it again."""
        if random.random() < 0.5:
            pid = int((self.postgres.cluster / "postmaster.pid").read_text().splitlines()[0])
            os.kill(pid, random.choice([signal.SIGQUIT, signal.SIGKILL]))
        self.postgres.stop()
        self.postgres.start()

    def ended(self) -> list[str]:
        """Return the processes that ended unasked, or did not end when asked."""
        return self._stayed + [
            f"{name} ended by itself:\n{self.log(name).read_text(errors='replace')[-1500:]}"
            for name, process in self.running.items()
            if process.poll() is not None and process.pid not in self._ended_by_us
        ]

    def unexpected(self) -> list[str]:
        """Return the tracebacks in the logs. The bot's are left out: its library logs one for every lost connection."""
        said: list[str] = []
        for name in sorted(set(PROGRAMS) - {"bot"}):
            log = self.log(name).read_text(errors="replace")
            said += [f"{name} said:\n{block[-1500:]}" for block in log.split("Traceback (most recent call last)")[1:]]
        return said

    def stop(self) -> None:
        """End every process."""
        for process in self.running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGCONT)
                process.terminate()
        for process in self.running.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.way.close()
        self.postgres.stop()
