"""Other accounts of the machine can read nothing of what the product keeps and writes."""

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest

from app import build
from app.postgres import private_files
from app.supervisor.child_process import Keeper, Pauses, Program
from settings import SECRET_SETTINGS


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_its_owners_alone_and_an_old_one_is_listed_by_nobody_else(tmp_path: Path) -> None:
    private_files.directory(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o700
    old = tmp_path / "old"
    old.mkdir()
    old.chmod(0o755)
    private_files.directory(old)
    assert mode(old) == 0o711, "the database's account passes through"


def test_a_log_is_its_owners_alone_also_where_it_was_not_before(tmp_path: Path) -> None:
    old = tmp_path / "old.log"
    old.touch()
    old.chmod(0o644)
    for file in (old, tmp_path / "new.log"):
        with open(file, "w", opener=private_files.opener) as log:
            log.write("said")
        assert (mode(file), file.read_text()) == (0o600, "said")


async def test_what_a_program_writes_is_private_and_it_gets_only_what_it_needs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os; open('made', 'w').close(); print('has', os.environ.get('GIVEN'), os.environ.get('KEPT'))"
    program = Program("one", (sys.executable, "-c", code), hopeless_code=0, without=frozenset({"KEPT"}))
    environment = {**os.environ, "GIVEN": "yes", "KEPT": "secret"}
    ended = asyncio.Event()
    keeper = Keeper(program, cwd=tmp_path, environment=environment, pauses=Pauses(), say=lambda _: ended.set())
    keeper.start()
    await asyncio.wait_for(ended.wait(), 60)
    await keeper.stop()
    assert "has yes None" in capfd.readouterr().out
    assert mode(tmp_path / "made") == 0o600


def test_the_builder_of_the_screens_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {*SECRET_SETTINGS, "DATABASE_URL", "REDIS_URL", "RPC_BASE", "RPC_WS_BASE", "RPC_SOLANA"}
    for name in named:
        monkeypatch.setenv(name, f"s3cret-{name}")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://registry.example")
    assert not [name for name, value in build._environment().items() if "s3cret-" in value]  # pyright: ignore[reportPrivateUsage]
