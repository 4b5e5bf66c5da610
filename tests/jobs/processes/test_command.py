"""`python -m jobs sweep --now`, typed while the product runs."""

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import models
from jobs import __main__ as jobs
from models import Schedule, now, transaction
from services.health import readiness
from services.runtime import schedules
from services.triggers import sweep
from settings import ROOT, settings

NOTHING_RUNS = "Holdfast does not run here: start it, or set DATABASE_URL."


async def typed(data: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code and all output, with this data directory and no DATABASE_URL."""
    environment = os.environ | {"DATA_DIR": str(data)}
    environment.pop("DATABASE_URL", None)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jobs", *arguments, cwd=ROOT, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_a_sweep_is_asked_for_where_the_supervisor_says_the_database_is(database_url: str, tmp_path: Path):
    (tmp_path / "supervisor.lock").write_text(json.dumps({"pid": 1, "url": "", "database_url": database_url}))
    await models.use(database_url)
    try:
        async with transaction() as db:
            await schedules.ensure(db, sweep.SCHEDULE, timedelta(days=1))
            await schedules.claim(db, sweep.SCHEDULE, timedelta(days=1))
        assert await typed(tmp_path, "sweep", "--now") == (
            0, "The sweep starts within a second, in the first jobs process that runs the schedule.\n",
        )  # fmt: skip
        async with transaction() as db:
            assert (await db.get_one(Schedule, sweep.SCHEDULE)).next_at <= now()
    finally:
        await models.use(None)


@pytest.fixture
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process with the test's data directory and no DATABASE_URL."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)


async def test_where_nothing_runs_a_sentence_says_so(nothing_set: None, capsys: pytest.CaptureFixture[str]):
    assert await jobs._ask_for_sweep() == 1
    assert capsys.readouterr() == ("", f"The sweep was not requested: {NOTHING_RUNS}\n")


@pytest.mark.parametrize("note", ["", "{}", '{"database_url": null}'])
def test_a_note_without_a_database_is_like_none(nothing_set: None, tmp_path: Path, note: str):
    (tmp_path / "supervisor.lock").write_text(note)
    with pytest.raises(readiness.NotRunning) as refused:
        readiness.running_database()
    assert str(refused.value) == NOTHING_RUNS


async def test_where_the_database_is_away_a_sentence_says_so(
    nothing_set: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    gone = f"postgresql+psycopg://holdfast@/holdfast?host={tmp_path}&port=5432"
    (tmp_path / "supervisor.lock").write_text(json.dumps({"pid": 1, "url": "", "database_url": gone}))
    assert await jobs._ask_for_sweep() == 1
    told, said = capsys.readouterr()
    assert told == ""
    assert said.startswith("The sweep was not requested: connection")
    assert len(said.splitlines()) == 1


@pytest.fixture(autouse=True)
def settings_afresh() -> None:
    """Settings that are read again for every test here."""
    settings.cache_clear()
