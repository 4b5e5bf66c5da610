"""A trial starts the database and the web, and neither the bot nor the jobs."""

import sys
from pathlib import Path

import pytest

from app.supervisor import trial
from app.supervisor.child_process import Program
from app.supervisor.single_instance import running
from app.supervisor.supervisor import ProcessPlan, StartFailed
from app.supervisor.trial import plan_of, try_out
from settings import load
from tests.conftest import free_port

WEB = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("localhost", int(sys.argv[1])), Handler).serve_forever()
"""


def test_only_the_web_starts_and_it_waits_for_no_bot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    plan = plan_of(load(), 4711)
    assert [program.name for program in plan.programs] == ["web"]
    assert "HOLDFAST_SUPERVISED" in plan.programs[0].without
    assert plan.health is not None
    assert plan.health[:2] == (4711, "/health")
    assert "alembic" in plan.migrate


def plan(directory: Path, port: int, *migrate: str) -> ProcessPlan:
    web = Program("web", (sys.executable, "-c", WEB, str(port)))
    health = (port, "/health", "localhost", "localhost")
    return ProcessPlan(directory, directory, "", (web,), {"PATH": "/usr/bin:/bin"}, migrate=migrate, health=health)


async def test_a_version_whose_web_answers_works_and_is_stopped_again(tmp_path: Path) -> None:
    assert await try_out(plan(tmp_path, free_port()))
    assert running(tmp_path) is None


async def test_a_version_whose_web_answers_nothing_does_not_work(tmp_path: Path) -> None:
    assert not await try_out(plan(tmp_path, free_port()), patience=0)


async def test_migrations_may_take_longer_than_the_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tmp_path / "migrated"

    async def is_migrated(*_health: object) -> bool:
        return done.exists()

    monkeypatch.setattr(trial, "answers_ok", is_migrated)
    migrate = f"import pathlib, time; time.sleep(0.3); pathlib.Path({str(done)!r}).touch()"
    assert await try_out(plan(tmp_path, free_port(), sys.executable, "-c", migrate), patience=0.05)


async def test_a_version_whose_migration_fails_does_not_work(tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="brought up to date"):
        await try_out(plan(tmp_path, free_port(), sys.executable, "-c", "raise SystemExit(1)"))
