"""The web without bot, jobs and database on its machine."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.supervisor import web
from app.supervisor.single_instance import Running, running
from app.supervisor.supervisor import Supervisor
from settings import settings
from tests.app.supervisor.test_supervisor import notes, patient, plan, until
from tests.conftest import free_port


def test_without_a_database_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    settings.cache_clear()
    with pytest.raises(SystemExit, match="DATABASE_URL is not set"):
        web.main()
    settings.cache_clear()


def test_a_build_that_fails_ends_it_without_another_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build has said why; where this one called it is of no use to an operator."""

    def fails(command: Sequence[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/holdfast")
    monkeypatch.setattr(subprocess, "run", fails)
    settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        web.main()
    settings.cache_clear()
    assert ended.value.code == 1


@pytest.mark.parametrize(("asked", "workers"), [("3", "3"), (" 3 ", "3"), ("", "2"), (" ", "2")])
def test_it_starts_nothing_beside_itself_and_several_workers_where_redis_is(
    monkeypatch: pytest.MonkeyPatch, asked: str, workers: str
) -> None:
    became: list[tuple[Sequence[str], Mapping[str, str]]] = []
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/holdfast")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    monkeypatch.setenv("WEB_CONCURRENCY", asked)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(web.os, "chdir", lambda _: None)
    monkeypatch.setattr(web.os, "execve", lambda _, argv, environment: became.append((argv, environment)))
    settings.cache_clear()
    web.main()
    settings.cache_clear()
    ((argv, environment),) = became
    assert argv[argv.index("--workers") + 1] == workers
    assert environment["HOLDFAST_SUPERVISED"] == "1"


@pytest.mark.parametrize(
    ("live", "bind", "host"),
    [(False, "0.0.0.0", "127.0.0.1"), (True, "127.0.0.1", "127.0.0.1"), (True, "0.0.0.0", "0.0.0.0")],
)
def test_with_the_sandbox_it_serves_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, live: bool, bind: str, host: str
) -> None:
    chosen = {"sandbox_url": "" if live else "http://localhost:1", "bind": bind}
    monkeypatch.setattr(web, "settings", lambda: settings().model_copy(update=chosen))
    argv, _ = web.command()
    assert argv[argv.index("--host") + 1] == host


@pytest.mark.parametrize("has_web", [True, False])
async def test_a_supervisor_publishes_whether_it_has_a_web_process(has_web: bool, tmp_path: Path) -> None:
    """The web alone builds the screens beside one that has none."""
    base = plan(tmp_path, patient("bot"))
    supervisor = Supervisor(
        replace(base, health=(free_port(), "/health", "localhost", "localhost") if has_web else None),
        say=lambda _: None,
    )
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "bot begins" in notes(tmp_path))
    assert running(tmp_path) == Running(os.getpid(), base.url, has_web=has_web)
    supervisor.stop()
    await task
