"""The migrations bring a database to exactly what the tables say."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def alembic(database_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "alembic", *arguments],
        cwd=ROOT, env=os.environ | {"DATABASE_URL": database_url}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_nothing_is_left_to_migrate(database_url: str) -> None:
    done = alembic(database_url, "check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_migration_can_be_undone_and_done_again(database_url: str) -> None:
    for arguments in (("downgrade", "base"), ("upgrade", "head"), ("check",)):
        done = alembic(database_url, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
