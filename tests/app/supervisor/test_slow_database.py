"""The supervisor while its database or the machine has nothing to give: a stop ends it at once, and it tries again."""

import asyncio
import errno
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from app.postgres.process import read_pid_file
from app.postgres.server import Postgres
from app.supervisor import child_process
from app.supervisor.supervisor import Supervisor
from tests.app.postgres.test_server import recovers_slowly
from tests.app.supervisor.test_supervisor import notes, patient, plan, until


@pytest.fixture
def said() -> list[str]:
    return []


async def test_a_stop_does_not_wait_until_postgres_has_recovered(
    short_dir: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Postgres(short_dir / "db", durable=False) as database:
        pass
    recovers_slowly(database, seconds=600)
    monkeypatch.setattr("app.postgres.server.START_SECONDS", 1)
    supervisor = Supervisor(replace(plan(short_dir, patient("bot")), database=short_dir / "db"), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: any("is recovering" in line for line in said))
    supervisor.stop()
    await asyncio.wait_for(task, 30)
    assert not database.is_running()
    assert notes(short_dir) == []


async def test_a_stop_ends_a_migration_that_takes_long(tmp_path: Path, said: list[str]) -> None:
    """systemd kills everything a minute after it asked, the database included."""
    supervisor = Supervisor(plan(tmp_path, patient("bot"), migrate=("sleep", "600")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "bringing the database up to date" in said)
    supervisor.stop()
    await asyncio.wait_for(task, 10)
    assert notes(tmp_path) == []


async def test_a_program_for_which_the_machine_has_no_pipe_is_tried_again(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, failed = os.pipe, list[str]()

    def full() -> tuple[int, int]:
        if not failed:
            failed.append("once")
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
        return pipe()

    monkeypatch.setattr(child_process.os, "pipe", full)
    supervisor = Supervisor(plan(tmp_path, patient("bot")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(tmp_path) or task.done(), 20)
    supervisor.stop()
    await task
    assert notes(tmp_path) == ["bot begins", "bot ends"]
    assert "bot could not be started: [Errno 23] Too many open files in system" in said


async def test_a_database_that_does_not_come_back_is_tried_again(
    short_dir: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full for a while must not end the product, which then would stay away."""
    supervisor = Supervisor(replace(plan(short_dir, patient("bot")), database=short_dir / "db"), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(short_dir))
    found = read_pid_file(short_dir / "db" / "cluster")
    assert found is not None
    control = short_dir / "db" / "cluster" / "global" / "pg_control"
    os.kill(found.pid, signal.SIGKILL)
    control.rename(control.with_name("away"))
    await until(lambda: sum("PostgreSQL did not start" in line for line in said) > 1)
    control.with_name("away").rename(control)
    await until(Postgres(short_dir / "db").is_running)
    assert notes(short_dir) == ["bot begins"]
    supervisor.stop()
    await task
