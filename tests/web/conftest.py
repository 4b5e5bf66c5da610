"""The web process as operators run it, over the wire: sockets, headers, limits."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest

from app.leftovers import MARK
from tests.conftest import ROOT, TEMPLATE, free_port, temporary_dir, wait_for

START = "import os; from app.web import command; argv, more = command(); os.execve(argv[0], argv, os.environ | more)"


@dataclass(frozen=True)
class Web:
    """A web process: where it answers, and what it logs."""

    url: str
    log: Path

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(urlsplit(self.url).port or 0)

    def logged(self) -> str:
        """Everything that it has said."""
        return self.log.read_text(errors="replace")


def sign_in(url: str, person: str) -> str:
    """Sign somebody in as a browser does; the session's id."""
    with httpx.Client(timeout=30) as browser:
        discord = browser.get(f"{url}/api/auth/discord").headers["location"]
        back = httpx.get(f"{discord}&as={person}").headers["location"]
        home = browser.get(back).headers["location"]
    return parse_qs(urlsplit(home).query)["session"][0]


@pytest.fixture(scope="session")
def web(postgres_url: str, template_url: str, sandbox_url: str) -> Iterator[Web]:
    """One web process with nothing beside it but the sandbox, for all tests here, on a database of its own."""
    name = "web_over_the_wire"
    with psycopg.connect(postgres_url.replace("+psycopg", "", 1), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
    database = re.sub(r"/holdfast\?", f"/{name}?", postgres_url, count=1)
    port = free_port()
    with temporary_dir() as directory:
        log = directory / "web.log"
        environment = {
            **os.environ,
            "PORT": str(port),
            "SANDBOX_PORT": str(urlsplit(sandbox_url).port),
            "DATABASE_URL": database,
            "DATA_DIR": str(directory / "data"),
            # Everybody here has the same address.
            **{
                f"LIMIT_{name}": "100000"
                for name in ("SIGN_INS", "WRITES", "PROOFS", "LOOKUPS", "PREVIEWS", "RECHECKS", "SOCKETS")
            },
            # A supervisor's child starts no companions.
            "HOLDFAST_SUPERVISED": "1",
            "PYTHONWARNINGS": "ignore",
            MARK: str(directory),
        }
        for unwanted in ("PUBLIC_URL", "REDIS_URL"):
            environment.pop(unwanted, None)
        subprocess.run([sys.executable, "-m", "app.build"], cwd=ROOT, env=environment, check=True, capture_output=True)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", START], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            wait_for(f"http://localhost:{port}/api/openapi.json", process, log)
            yield Web(f"http://localhost:{port}", log)
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
