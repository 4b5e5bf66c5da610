"""The whole product as an operator starts it, on ports and data of its own, and the sandbox beside it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.house import product_settings
from tests.conftest import ANSWER_SECONDS, ROOT, free_port, wait_for

SWEEP_SECONDS = 5
"""How often the round comes in the product that the tests share."""
DAY = 24 * 60 * 60
"""The same as a live deployment has it, where what the jobs do is not what is looked at."""

COMMANDS = {"verify", "wallets", "why", "rules", "recheck", "forget", "setup", "help", "try"}
PLENTY = ("SIGN_INS", "WRITES", "PROOFS", "LOOKUPS", "READS", "SOCKETS", "EVENTS")
START_SECONDS = 180
STOP_SECONDS = 30


@dataclass(frozen=True)
class Product:
    """Where the product and the sandbox beside it answer, and where its data lie."""

    url: str
    sandbox: str
    data_dir: Path

    def control(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """Ask or tell the sandbox something as its `/control` has it."""
        request = urllib.request.Request(
            f"{self.sandbox}/control/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def world(self) -> dict[str, Any]:
        """Everything in the sandbox."""
        return self.control("world")

    def wallet(self, username: str) -> str:
        """A person's EVM address."""
        return next(user["wallets"]["evm"] for user in self.world()["users"] if user["username"] == username)

    def guild(self, name: str) -> dict[str, Any]:
        """A guild as the sandbox shows it now."""
        return next(guild for guild in self.world()["guilds"] if guild["name"] == name)

    def role(self, guild: str, name: str) -> str:
        """The id of a guild's role."""
        return next(role["id"] for role in self.guild(guild)["roles"] if role["name"] == name)

    def roles_of(self, guild: str, username: str) -> set[str]:
        """The names of the roles that a member has."""
        world = self.world()
        found = next(one for one in world["guilds"] if one["name"] == guild)
        names = {role["id"]: role["name"] for role in found["roles"]}
        user = next(one["id"] for one in world["users"] if one["username"] == username)
        member = next(one for one in found["members"] if one["user_id"] == user)
        return {names[role] for role in member["roles"]}

    def commands(self) -> set[str]:
        """The names of the commands that the bot has told Discord of."""
        own = product_settings(0)
        path = f"applications/{own['DISCORD_CLIENT_ID']}/commands"
        headers = {"Authorization": f"Bot {own['DISCORD_BOT_TOKEN']}"}
        request = urllib.request.Request(f"{self.sandbox}/discord/api/v10/{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {command["name"] for command in json.loads(answer.read())}


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
            # Every test's people have the same address, and come much quicker than people do.
            **{f"LIMIT_{name}": "100000" for name in PLENTY},
        }
        for name in ("PUBLIC_URL", "DATABASE_URL", "REDIS_URL"):
            self.environment.pop(name, None)
        sandbox = f"http://localhost:{self.sandbox_port}"
        self.product = Product(f"http://localhost:{self.port}", sandbox, directory / "data")
        self.process: subprocess.Popen[bytes] | None = None

    def build(self) -> None:
        """Build the screens if they are not up to date."""
        command = [sys.executable, "-m", "app.build"]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, capture_output=True)

    def start(self) -> None:
        """Start everything and wait until it is healthy; the processes are a session of their own."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app"],
                cwd=ROOT, env=self.environment, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        wait_for(f"{self.product.url}/health", self.process, self.log, START_SECONDS)

    def kill(self) -> None:
        """`kill -9` of the whole session."""
        assert self.process is not None
        kill_session(self.process.pid)
        self.process.wait()

    def stop(self) -> None:
        """Ask everything to end."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()


def kill_session(leader: int) -> None:
    """`kill -9` of every process of a session, as when a machine loses its power; the first one before its children."""
    for pid in sorted(members_of_session(leader), key=lambda pid: pid != leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def members_of_session(leader: int) -> list[int]:
    """The processes of the session that this process began."""
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
    """A machine with the product built and running on it."""
    machine = Machine(directory, sweep_seconds)
    machine.build()
    try:
        machine.start()
        yield machine
    finally:
        machine.stop()
