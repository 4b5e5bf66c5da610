"""A server at DATABASE_URL that is older than the programs here: a backup of it is restored there all the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app import backup
from app.backup import BackupFailed
from app.postgres.binaries import program_dir
from app.postgres.server import Postgres
from setting_checks import libpq_url
from settings import ROOT
from tests.conftest import temporary_dir
from tests.support.databases import named

OLDER = "16"
"""The version in `deploy/compose.scale.yaml`, whose programs the wheel of PostgreSQL has too."""


class OlderServer(Postgres):
    """A server of that version, which has no builtin locales yet."""

    def _programs(self) -> Path:
        return program_dir(OLDER)

    def _run(self, program: str, *arguments: object) -> str:
        known = [one for one in arguments if not str(one).startswith(("--locale-provider", "--builtin-locale"))]
        return super()._run(program, *known)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a migrated database in it, from which tests get clones."""
    with temporary_dir() as directory, OlderServer(directory / "older", durable=False, say=lambda _: None) as server:
        migrate = [sys.executable, "-m", "alembic", "upgrade", "head"]
        subprocess.run(migrate, cwd=ROOT, env=os.environ | {"DATABASE_URL": server.url}, check=True)
        with psycopg.connect(libpq_url(server.url)) as writer:
            writer.execute("INSERT INTO spent_transaction (hash, chain, spent_at) VALUES ('old', 'base', now())")
        yield server.url


@pytest.fixture
def older(server: str) -> Iterator[str]:
    """The address of this test's own clone."""
    with psycopg.connect(libpq_url(named(server, "postgres")), autocommit=True) as admin:
        admin.execute("CREATE DATABASE own TEMPLATE holdfast")
        yield named(server, "own")
        admin.execute("DROP DATABASE own WITH (FORCE)")


def hashes(url: str) -> list[str]:
    with psycopg.connect(libpq_url(url)) as reader:
        return [str(one) for (one,) in reader.execute("SELECT hash FROM spent_transaction ORDER BY hash").fetchall()]


def test_a_backup_of_an_older_server_is_restored_there(older: str, short_dir: Path) -> None:
    backup.dump(older, short_dir / "x.dump")
    with psycopg.connect(libpq_url(older)) as writer:
        writer.execute("INSERT INTO spent_transaction (hash, chain, spent_at) VALUES ('newer', 'base', now())")
    backup.restore_elsewhere(short_dir / "x.dump", older, force=True, say=lambda _: None)
    assert hashes(older) == ["old"]


def test_one_of_the_embedded_database_is_too(older: str, database_url: str, short_dir: Path) -> None:
    backup.dump(database_url, short_dir / "x.dump")
    backup.restore_elsewhere(short_dir / "x.dump", older, force=True, say=lambda _: None)
    assert hashes(older) == []


KILLED = """
import os, signal, sys
from app import backup

def cut(reader, writer):
    script = reader.read()
    data = script.index(b"COPY public.spent_transaction")
    writer.write(script[: script.index(b"old", data)])
    writer.flush()
    os.kill(os.getpid(), signal.SIGKILL)

backup.shutil.copyfileobj = cut
backup.main()
"""


def test_a_restore_that_is_killed_there_changes_nothing(older: str, short_dir: Path) -> None:
    """For psql the script then ends, which must not commit what has come so far."""
    backup.dump(older, short_dir / "x.dump")
    with psycopg.connect(libpq_url(older)) as writer:
        writer.execute("INSERT INTO spent_transaction (hash, chain, spent_at) VALUES ('newer', 'base', now())")
    command = [sys.executable, "-c", KILLED, "restore", str(short_dir / "x.dump"), "--force"]
    environment = os.environ | {"DATABASE_URL": older, "DATA_DIR": str(short_dir)}
    killed = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    others = "SELECT 1 FROM pg_stat_activity WHERE datname = 'own' AND pid <> pg_backend_pid()"
    with psycopg.connect(libpq_url(older), autocommit=True) as watcher:
        while watcher.execute(others).fetchone():
            pass
    assert hashes(older) == ["newer", "old"]
    with psycopg.connect(libpq_url(older)) as reader:
        assert reader.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'before%'").fetchall() == []


@pytest.mark.parametrize("cut", ["in the data", "in the middle of the script"])
def test_a_restore_that_fails_there_changes_nothing(
    older: str, short_dir: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    backup.dump(older, short_dir / "x.dump")
    if cut == "in the data":
        whole = (short_dir / "x.dump").read_bytes()
        (short_dir / "x.dump").write_bytes(whole[: len(whole) - 2000])
        monkeypatch.setattr(backup, "check", lambda _: None)
    else:
        monkeypatch.setattr(backup, "UNKNOWN_BEFORE", frozenset[bytes]())
    with pytest.raises(BackupFailed):
        backup.restore_elsewhere(short_dir / "x.dump", older, force=True, say=lambda _: None)
    assert hashes(older) == ["old"]
