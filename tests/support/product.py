"""The whole product as an operator starts it, with its own ports and data, and the sandbox beside it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sandbox.assembly import product_settings
from tests.conftest import ANSWER_SECONDS, ROOT, free_port, wait_for

SWEEP_SECONDS = 5
"""Seconds between sweeps in the product that the tests share."""
DAY = 24 * 60 * 60
"""The same in a live deployment, for tests that are not about the jobs."""

COMMANDS = {"verify", "wallets", "why", "rules", "recheck", "forget", "setup", "help", "try"}
PLENTY = ("SIGN_INS", "WRITES", "PROOFS", "LOOKUPS", "READS", "SOCKETS", "EVENTS", "INTERACTIONS")
ADDRESSES = ("PUBLIC_URL", "DATABASE_URL", "REDIS_URL")
"""Settings in the environment of a test run that its products must not inherit."""

START_SECONDS = 180
STOP_SECONDS = 30


@dataclass(frozen=True)
class Product:
    """The addresses of the product and of the sandbox beside it, and the directory of the product's data."""

    url: str
    sandbox: str
    data_dir: Path

    @property
    def database_url(self) -> str:
        """The address of the product's own database."""
        (lock,) = self.data_dir.rglob("supervisor.lock")
        return json.loads(lock.read_text())["database_url"]

    def control(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """Call the sandbox's `/control` and return the answer."""
        request = urllib.request.Request(
            f"{self.sandbox}/control/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def world(self) -> dict[str, Any]:
        """Return everything in the sandbox."""
        return self.control("world")

    def wallet(self, username: str) -> str:
        """Return a person's EVM address."""
        return _wallet(self, username)

    def guild(self, name: str) -> dict[str, Any]:
        """Return a guild as the sandbox has it now."""
        return self.control(f"guilds/{quote(name, safe='')}")

    def role(self, guild: str, name: str) -> str:
        """Return the id of a guild's role."""
        return next(role["id"] for role in self.guild(guild)["roles"] if role["name"] == name)

    def roles_of(self, guild: str, username: str) -> set[str]:
        """Return the names of the roles that a member has."""
        found = self.guild(guild)
        names = {role["id"]: role["name"] for role in found["roles"]}
        member = next(one for one in found["members"] if one["username"] == username)
        return {names[role] for role in member["roles"]}

    def commands(self) -> set[str]:
        """Return the names of the commands that the bot has registered with Discord."""
        own = product_settings(0)
        path = f"applications/{own['DISCORD_CLIENT_ID']}/commands"
        headers = {"Authorization": f"Bot {own['DISCORD_BOT_TOKEN']}"}
        request = urllib.request.Request(f"{self.sandbox}/discord/api/v10/{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {command["name"] for command in json.loads(answer.read())}


@cache
def _wallet(product: Product, username: str) -> str:
    """Return a person's address: it never changes, and a view of the whole world takes the sandbox 30 ms."""
    return next(user["wallets"]["evm"] for user in product.world()["users"] if user["username"] == username)


class Machine:
    """One machine with the product on it: it can be started, stopped, and lose its power."""

    def __init__(self, directory: Path, sweep_seconds: int) -> None:
        self.log = directory / "product.log"
        self.port, self.sandbox_port = free_port(), free_port()
        self.environment = os.environ | {
            "PORT": str(self.port),
            "SANDBOX_PORT": str(self.sandbox_port),
            "DATA_DIR": str(directory / "data"),
            "SWEEP_SECONDS": str(sweep_seconds),
            "SANDBOX_ANSWER_SECONDS": ANSWER_SECONDS,
            # The people of all tests share one IP address, and act much faster than real people.
            **{f"LIMIT_{name}": "100000" for name in PLENTY},
        }
        for name in ADDRESSES:
            self.environment.pop(name, None)
        sandbox = f"http://localhost:{self.sandbox_port}"
        self.product = Product(f"http://localhost:{self.port}", sandbox, directory / "data")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start everything in a session of its own, and wait until it is healthy."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app"],
                cwd=ROOT, env=self.environment, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        wait_for(f"{self.product.url}/health", self.process, self.log, START_SECONDS)

    def kill(self) -> None:
        """Send SIGKILL to the whole session."""
        assert self.process is not None
        kill_session(self.process.pid)
        self.process.wait()

    def stop(self) -> None:
        """Ask all processes to end."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()


@cache
def build_screens() -> None:
    """Build the screens if they are not up to date; once, since nobody changes their sources during a test run.

    They contain no setting that differs between the products of tests.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ADDRESSES}
    command = [sys.executable, "-m", "app.build"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)


def kill_session(leader: int) -> None:
    """Send SIGKILL to every process of a session, parents first, as when a machine loses its power."""
    for pid in sorted(members_of_session(leader), key=lambda pid: pid != leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def members_of_session(leader: int) -> list[int]:
    """Return the ids of the processes in the session that this process leads."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == leader:
            found.append(int(stat.parent.name))
    return found


@contextmanager
def running(directory: Path, sweep_seconds: int) -> Iterator[Machine]:
    """Yield a machine with the product built and running on it."""
    machine = Machine(directory, sweep_seconds)
    build_screens()
    try:
        machine.start()
        yield machine
    finally:
        machine.stop()
