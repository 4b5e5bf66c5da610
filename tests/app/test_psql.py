"""PostgreSQL's prompt on the product's database: the running one, one that is started for it, or one elsewhere."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.postgres.server import Postgres
from app.supervisor.single_instance import Lock, Running
from setting_checks import libpq_url
from tests.app.postgres.test_server import copied
from tests.conftest import ROOT, temporary_dir

QUESTION = "SELECT mark FROM left_here"


def asking(data: Path, *questions: str, **more: str) -> subprocess.Popen[str]:
    """Start the prompt with questions on the data directory."""
    environment = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "SANDBOX_URL"}}
    return subprocess.Popen(
        [sys.executable, "-m", "app.backup", "psql", "-XAt", *(f"--command={one}" for one in questions)],
        cwd=ROOT, env={**environment, "DATA_DIR": str(data), **more}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def asked(data: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the prompt with one question on the data directory."""
    with asking(data, QUESTION, **more) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """A stopped embedded database with a mark."""
    with temporary_dir() as directory:
        with (
            Postgres(directory / "db", durable=False, say=lambda _: None) as server,
            psycopg.connect(libpq_url(server.url)) as admin,
        ):
            admin.execute("CREATE TABLE left_here AS SELECT 'embedded' AS mark")
        yield directory / "db"


@pytest.fixture
def data(stopped: Path, short_dir: Path) -> Path:
    """A data directory with a stopped embedded database of the sandbox."""
    copied(stopped, short_dir / "sandbox" / "db")
    return short_dir


def test_a_stopped_database_is_started_for_the_question_and_stopped_again(data: Path) -> None:
    done = asked(data)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "embedded"), done.stdout + done.stderr
    assert not Postgres(data / "sandbox" / "db").is_running()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_database_that_was_started_for_the_question_does_not_outlive_a_killed_prompt(
    data: Path, number: signal.Signals
) -> None:
    with asking(data, "\\! echo asked", "SELECT pg_sleep(600)") as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) and line != "asked\n":
            pass
        assert line, "the prompt ended before it asked"
        process.send_signal(number)
        process.wait()
    assert not Postgres(data / "sandbox" / "db").is_running()


def test_the_running_products_database_is_asked_and_stays(data: Path) -> None:
    lock = Lock(data)
    with Postgres(data / "sandbox" / "db", durable=False, say=lambda _: None) as server:
        lock.take(Running(os.getpid(), "http://localhost:3000"))
        starting = asked(data)
        assert (starting.returncode, "try again when it is ready" in starting.stderr) == (1, True)
        lock.say(Running(os.getpid(), "http://localhost:3000", server.url))
        assert asked(data).stdout == "embedded\n"
        assert server.is_running()
        lock.release()


def test_a_database_elsewhere_is_asked_instead(data: Path, stopped: Path, short_dir: Path) -> None:
    with Postgres(copied(stopped, short_dir / "elsewhere"), durable=False, say=lambda _: None) as server:
        with psycopg.connect(libpq_url(server.url)) as admin:
            admin.execute("UPDATE left_here SET mark = 'elsewhere'")
        assert asked(data, DATABASE_URL=server.url).stdout == "elsewhere\n"


def test_without_a_database_it_says_so(short_dir: Path) -> None:
    done = asked(short_dir)
    assert (done.returncode, "There is no database in" in done.stderr) == (1, True)
