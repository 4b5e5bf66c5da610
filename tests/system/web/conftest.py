"""The web process as operators run it, over the wire: sockets, headers, limits."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest

from app.supervisor.single_instance import MARK
from tests.conftest import ROOT, free_port, temporary_dir, wait_for
from tests.support.databases import TEMPLATE, named, plain
from tests.support.product import build_screens

START = (
    "import os; from app.supervisor.web import command; "
    "argv, more = command(); os.execve(argv[0], argv, os.environ | more)"
)


@dataclass(frozen=True)
class Web:
    """A web process: its address, its log, its database where a test may read it, and its process id."""

    url: str
    log: Path
    database: str | None = None
    pid: int = 0

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(urlsplit(self.url).port or 0)

    def logged(self) -> str:
        """Return everything that the process has logged."""
        return self.log.read_text(errors="replace")


def sign_in(url: str, person: str) -> str:
    """Sign a person in as a browser does, and return the session's id."""
    with httpx.Client(timeout=30) as browser:
        discord = browser.get(f"{url}/api/auth/discord").headers["location"]
        back = httpx.get(f"{discord}&as={person}").headers["location"]
        home = browser.get(back).headers["location"]
    return parse_qs(urlsplit(home).query)["session"][0]


def web_database(postgres_url: str, name: str) -> str:
    """Return the address of a new migrated database, kept for the whole test run; needs `template_url`."""
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
    return named(postgres_url, name)


@contextmanager
def running_web(database: str, sandbox_url: str, more: Mapping[str, str]) -> Iterator[Web]:
    """One web process with only the sandbox beside it, on this database and with more settings."""
    port = free_port()
    with temporary_dir() as directory:
        log = directory / "web.log"
        environment = {
            **{name: value for name, value in os.environ.items() if name not in {"PUBLIC_URL", "REDIS_URL"}},
            "PORT": str(port),
            "SANDBOX_PORT": str(urlsplit(sandbox_url).port),
            "DATABASE_URL": database,
            "DATA_DIR": str(directory / "data"),
            # A supervisor's child starts no companion processes.
            "HOLDFAST_SUPERVISED": "1",
            "PYTHONWARNINGS": "ignore",
            MARK: str(directory),
            **more,
        }
        build_screens()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", START], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            wait_for(f"http://localhost:{port}/api/openapi.json", process, log)
            yield Web(f"http://localhost:{port}", log, database, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def web(postgres_url: str, template_url: str, sandbox_url: str) -> Iterator[Web]:
    """One web process for all tests here, on a database of its own."""
    # All callers here have the same address.
    names = ("SIGN_INS", "WRITES", "PROOFS", "LOOKUPS", "PREVIEWS", "READS", "RECHECKS", "SOCKETS", "EVENTS")
    plenty = {f"LIMIT_{name}": "100000" for name in names}
    with running_web(web_database(postgres_url, "web_over_the_wire"), sandbox_url, plenty) as running:
        yield running
