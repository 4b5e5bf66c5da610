"""Each process ends in order: the web even during a call that is never answered, bot and jobs in the middle of work."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from app.http.shutdown import Leaving
from services.triggers.gateway_events import BOT_READY
from services.triggers.sweep import SCHEDULE
from setting_checks import libpq_url
from tests.conftest import free_port
from tests.system.whole.people import until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _nobody_leaves() -> Iterator[None]:
    Leaving._ends_at = None
    yield
    Leaving._ends_at = None


async def hanging(scope: object, receive: object, send: object) -> None:
    await asyncio.Event().wait()


async def test_a_call_under_way_is_told_to_come_again_and_so_is_a_late_one() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=Leaving(hanging)), base_url="http://x") as client:
        asked = asyncio.create_task(client.get("/"))
        while not Leaving._under_way:
            await asyncio.sleep(0)
        Leaving.begin(patience=0)
        for answer in (await asked, await client.get("/late")):
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "5"
            assert "try again" in answer.json()["message"]
    assert not Leaving._under_way


async def test_a_timeout_of_the_calls_own_stays_its_own() -> None:
    async def impatient(scope: object, receive: object, send: object) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=Leaving(impatient)), base_url="http://x") as client:
        with pytest.raises(TimeoutError):
            await client.get("/")


def ended_while_asked(path: str, kill_seconds: int, stuck_seconds: int) -> tuple[str, list[int]]:
    """End a web process during a call, and return its output up to the end and the call's error statuses."""
    port = free_port()
    web = subprocess.Popen(
        [
            sys.executable, "-m", "app.supervisor.granian_command", "--interface", "asgi", "--factory",
            "tests.app.slow_web:make", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--log-level", "warning", "--no-access-log", "--workers-kill-timeout", str(kill_seconds),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), "STUCK_SECONDS": str(stuck_seconds)},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    told: list[int] = []

    def ask() -> None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60).close()
        except urllib.error.HTTPError as refused:
            told.append(refused.code)
            refused.close()
        except OSError:  # the server has ended
            pass

    try:
        assert web.stdout is not None
        while True:
            assert web.poll() is None, web.stdout.read()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.02)  # a process that asks all the time keeps the other from starting
        asking = threading.Thread(target=ask)
        asking.start()
        assert web.stdout.readline().strip() == "asked"
        web.send_signal(signal.SIGTERM)
        rest = web.stdout.read()
        asking.join()
    finally:
        web.kill()
        web.communicate()
    return rest.strip(), told


def test_granian_needs_no_kill_for_a_call_that_nobody_answers() -> None:
    said, told = ended_while_asked("/never", kill_seconds=60, stuck_seconds=50)
    first, *rest = said.splitlines()
    assert (first, told) == ("connections closed", [503])
    # On Python 3.14 asyncio says that granian does not wait for its own last task.
    assert [line for line in rest if not line.startswith(("Task was destroyed", "task: <Task pending"))] == []


def test_a_worker_that_does_not_end_says_where_it_stands_before_it_is_killed() -> None:
    said, _ = ended_while_asked("/busy", kill_seconds=4, stuck_seconds=1)
    assert "slow_web.py" in said
    assert said.index("most recent call first") < said.index("Killing worker-1")


@pytest.mark.parametrize(("process", "at_work"), [("bot", BOT_READY), ("jobs", SCHEDULE)])
def test_bot_and_jobs_end_by_themselves_when_told(
    process: str, at_work: str, database_url: str, sandbox_url: str, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"PUBLIC_URL", "REDIS_URL"}},
        "DATABASE_URL": database_url, "SANDBOX_PORT": str(urlsplit(sandbox_url).port), "DATA_DIR": str(tmp_path),
        "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as output, psycopg.connect(libpq_url(database_url), autocommit=True) as database:
        running = subprocess.Popen(
            [sys.executable, "-m", process], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        try:
            until(
                lambda: database.execute("SELECT 1 FROM schedule WHERE name = %s", [at_work]).fetchone() is not None, 60
            )
            running.send_signal(signal.SIGTERM)
            assert running.wait(20) == 0, log.read_text()
        finally:
            running.kill()
            running.wait()
    assert "Traceback" not in log.read_text()
