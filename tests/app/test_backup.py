"""A backup taken during work holds the state of one moment, and a fresh folder starts with everything from it alone."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlmodel import select

import models
from app import backup
from app.backup import BackupFailed
from app.postgres.binaries import program_dir
from app.postgres.restore_swap import finish_or_undo
from app.postgres.server import Postgres
from app.supervisor.installed import journal
from app.supervisor.single_instance import Lock, Running
from app.supervisor.update import _alone
from models import Grant, Rule, SpentTransaction, Wallet, transaction
from setting_checks import libpq_url
from settings import ROOT
from tests.app.postgres.test_server import copied
from tests.conftest import temporary_dir
from tests.support.builders import a_grant, a_member, a_rule, a_server, address


@pytest.fixture
async def database(database_url: str) -> Any:
    """This test's own migrated database, which the process uses."""
    await models.use(database_url)
    yield database_url
    await models.use(None)


async def work() -> None:
    """Let a member prove a wallet and get a role in one transaction: a backup has both or neither."""
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        await a_grant(db, await a_member(db, server, wallet=address()), rule)


async def rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return every rule, wallet and grant in the database at an address, with all columns."""
    await models.use(url)
    async with transaction() as db:
        return {
            table.__name__: [row.model_dump() for row in (await db.exec(select(table).order_by(table.id))).all()]  # pyright: ignore[reportArgumentType]
            for table in (Rule, Wallet, Grant)
        }


async def test_from_a_backup_under_load_a_fresh_folder_comes_up_with_everything(database: str, short_dir: Path) -> None:
    for _ in range(20):
        await work()
    before = await rows(database)
    file = short_dir / "backups" / "x.dump"
    going = True

    async def load() -> None:
        while going:
            await work()

    loads = [asyncio.create_task(load()) for _ in range(3)]
    try:
        await asyncio.to_thread(backup.dump, database, file)
    finally:
        going = False
        await asyncio.gather(*loads)
    after = await rows(database)
    said: list[str] = []
    fresh = short_dir / "fresh" / "db"
    await models.use(None)
    await asyncio.to_thread(backup.restore, file, fresh, force=False, say=said.append)
    with Postgres(fresh, durable=False, say=said.append) as postgres:
        restored = await rows(postgres.url)
        await models.use(None)
    for table, lines in restored.items():
        assert before[table] == [line for line in lines if line in before[table]], "all of what was there before"
        assert all(line in after[table] for line in lines), "nothing that never was"
    assert len({len(lines) for lines in restored.values()}) == 1, "each transaction whole or not at all"
    assert file.stat().st_mode & 0o077 == 0


MakeOne = Callable[[Path], Path]


@pytest.fixture(scope="module")
def make_one() -> Iterator[MakeOne]:
    """Return a function that makes an embedded database with the spent transaction "old", and `old.dump` beside it.

    It has only that table and alembic's. Each is a copy of one that was stopped and dumped before.
    """

    def made(directory: Path) -> Path:
        database = copied(first / "db", directory / "db")
        shutil.copy2(first / "old.dump", directory)
        return database

    with temporary_dir() as first:
        with Postgres(first / "db", durable=False, say=lambda _: None) as postgres:
            with psycopg.connect(libpq_url(postgres.url)) as admin:
                admin.execute("CREATE TABLE alembic_version (version_num text)")
                admin.execute("CREATE TABLE spent_transaction (hash text)")
                admin.execute("INSERT INTO spent_transaction VALUES ('old')")
            backup.dump(postgres.url, first / "old.dump")
        yield made


def mark_in(database: Path) -> str:
    with (
        Postgres(database, durable=False, say=lambda _: None) as postgres,
        psycopg.connect(libpq_url(postgres.url)) as reader,
    ):
        row = reader.execute("SELECT hash FROM spent_transaction").fetchone()
    assert row is not None
    return str(row[0])


def test_a_restore_overwrites_only_when_told_and_keeps_what_was_there(short_dir: Path, make_one: MakeOne) -> None:
    said: list[str] = []
    database = make_one(short_dir)
    old = (short_dir / "old.dump").read_bytes()
    with pytest.raises(BackupFailed, match="FORCE=1"):
        backup.restore(short_dir / "old.dump", database, force=False, say=said.append)
    for content in (b"", b"not a backup", old[: len(old) // 2]):
        (short_dir / "bad.dump").write_bytes(content)
        with pytest.raises(BackupFailed):
            backup.restore(short_dir / "bad.dump", database, force=True, say=said.append)
    assert mark_in(database) == "old"
    with (
        Postgres(database, durable=False, say=said.append) as postgres,
        psycopg.connect(libpq_url(postgres.url)) as admin,
    ):
        admin.execute("UPDATE spent_transaction SET hash = 'newer'")
    backup.restore(short_dir / "old.dump", database, force=True, say=said.append)
    assert mark_in(database) == "old"
    (kept,) = short_dir.glob("db.before-*")
    assert mark_in(kept) == "newer"
    assert str(kept) in " ".join(said)


def test_a_restore_leaves_the_link_to_the_database(
    short_dir: Path, make_one: MakeOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update goes back to the directory behind the link, and would otherwise find the wrong one in its place."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(short_dir))
    made, link = make_one(short_dir), short_dir / "sandbox" / "db"
    link.parent.mkdir()
    disk = made.rename(short_dir / "disk")
    link.symlink_to(disk)
    monkeypatch.setattr(sys, "argv", ["backup", "restore", str(short_dir / "old.dump"), "--force"])
    assert backup.main() == 0
    assert link.readlink() == disk
    assert (mark_in(disk), len(list(short_dir.glob("disk.before-*")))) == ("old", 1)


def test_a_backup_by_root_is_the_accounts_whose_data_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory was root's afterwards, and the backups at night failed."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 12_345, 12_345)
    given = list[tuple[Path, int]]()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, user, group, **_: given.append((path, user)))
    file, owner = tmp_path / "backups" / "a.dump", tmp_path.stat().st_uid
    backup.hand_over(tmp_path, file)
    assert given == [(file.parent, owner), (file, owner)]


def test_root_does_not_restore_what_another_account_runs(
    short_dir: Path, make_one: MakeOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was root's afterwards, and the account that runs the product could not start it."""
    database = make_one(short_dir)
    if os.geteuid() == 0:
        os.chown(database, 65534, 65534)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BackupFailed, match=rf"^{database} belongs to .+: restore as that account, as in sudo -u "):
        backup.restore(short_dir / "old.dump", database, force=True, say=print)
    assert sorted(path.name for path in short_dir.iterdir()) == ["db", "old.dump"]


def run_program(program: str, *arguments: str | Path) -> str:
    """Run one of PostgreSQL's programs and return what it prints."""
    return subprocess.run([program_dir() / program, *arguments], capture_output=True, text=True, check=True).stdout


def entries(file: Path) -> str:
    """Return the table of contents of a dump."""
    return run_program("pg_restore", "--list", file)


def shape_of(url: str) -> list[str]:
    """Return the definitions in the schema public, without the random token of each run of pg_dump."""
    printed = run_program("pg_dump", "-d", libpq_url(url), "--schema-only", "--schema=public", "--no-owner")
    return [line for line in printed.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


async def test_at_an_address_of_ones_own_what_was_there_is_kept_in_a_schema(
    database: str, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transaction() as db:
        db.add(SpentTransaction(hash="old", chain="base"))
    backup.dump(database, short_dir / "x.dump")
    async with transaction() as db:
        db.add(SpentTransaction(hash="newer", chain="base"))
    said: list[str] = []
    await models.use(None)
    with pytest.raises(BackupFailed, match="FORCE=1"):
        backup.restore_elsewhere(short_dir / "x.dump", database, force=False, say=said.append)
    backup.restore_elsewhere(short_dir / "x.dump", database, force=True, say=said.append)
    with psycopg.connect(libpq_url(database)) as reader:
        assert reader.execute("SELECT hash FROM spent_transaction").fetchall() == [("old",)]
        schema = said[-1].rsplit(" ", 1)[1]
        kept = reader.execute(f"SELECT hash FROM {schema}.spent_transaction ORDER BY 1".encode()).fetchall()
    assert kept == [("newer",), ("old",)]
    backup.dump(database, short_dir / "y.dump")
    run_program("pg_dump", "-d", libpq_url(database), "-Fc", "--no-owner", "-f", short_dir / "all.dump")
    assert schema not in entries(short_dir / "y.dump")
    assert schema in entries(short_dir / "all.dump"), "as backups were made before"
    shape = shape_of(database)
    for name in ("y", "all"):
        monkeypatch.setattr(backup, "_stamp", partial(str, name))
        backup.restore_elsewhere(short_dir / f"{name}.dump", database, force=True, say=said.append)
        with psycopg.connect(libpq_url(database)) as reader:
            assert reader.execute("SELECT hash FROM spent_transaction").fetchall() == [("old",)]
        assert shape_of(database) == shape, "every table, index, trigger and function"


async def test_at_an_address_of_ones_own_a_restore_that_is_stopped_changes_nothing(
    database: str, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transaction() as db:
        db.add(SpentTransaction(hash="old", chain="base"))
    await models.use(None)
    backup.dump(database, short_dir / "x.dump")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for part in ("fill", "_check_end"):
        with monkeypatch.context() as patched:
            patched.setattr(backup, part, stopped)
            with pytest.raises(KeyboardInterrupt):
                backup.restore_elsewhere(short_dir / "x.dump", database, force=True, say=lambda _: None)
        with psycopg.connect(libpq_url(database)) as reader:
            assert reader.execute("SELECT hash FROM spent_transaction").fetchall() == [("old",)]
            left = reader.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'before%'").fetchall()
        assert left == []


async def test_a_backup_of_a_newer_version_replaces_nothing(database: str, short_dir: Path, make_one: MakeOne) -> None:
    await models.use(None)
    with psycopg.connect(libpq_url(database)) as admin:
        admin.execute("UPDATE alembic_version SET version_num = '9999'")
    backup.dump(database, short_dir / "newer.dump")
    own = make_one(short_dir / "own")
    with pytest.raises(BackupFailed, match="migration 9999"):
        backup.restore(short_dir / "newer.dump", own, force=True, say=lambda _: None)
    assert mark_in(own) == "old"
    assert list(own.parent.glob("db.*")) == []
    with pytest.raises(BackupFailed, match="migration 9999"):
        backup.restore_elsewhere(short_dir / "newer.dump", database, force=True, say=lambda _: None)
    with psycopg.connect(libpq_url(database)) as reader:
        assert reader.execute("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'before%'").fetchall() == []


CUT_SHORT = """
import os, signal, sys, time
from app import backup

number = int(sys.argv.pop())
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, children ignore it

def fill(*_):
    os.kill(os.getpid(), number)
    time.sleep(60)

backup.fill = fill
sys.exit(backup.main())
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_restore_that_is_cut_short_leaves_the_database_in_its_place(
    short_dir: Path, make_one: MakeOne, number: int, code: int
) -> None:
    database = make_one(short_dir / "sandbox")
    file = short_dir / "sandbox" / "old.dump"
    command = [sys.executable, "-c", CUT_SHORT, "restore", file, "--force", str(int(number))]
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        command, env=environment | {"DATA_DIR": str(short_dir)}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("stopped" in done.stderr) is (code == 130)
    assert mark_in(database) == "old"
    said: list[str] = []
    finish_or_undo(database, said.append)
    assert bool(said) is (code != 130), "only what was killed leaves something to undo"
    assert sorted(path.name for path in database.parent.iterdir()) == ["db", "old.dump"]
    assert mark_in(database) == "old"


def test_a_restore_that_was_killed_while_it_replaced_the_database_is_finished(
    short_dir: Path, make_one: MakeOne
) -> None:
    said: list[str] = []
    database = make_one(short_dir)
    database.rename(short_dir / "db.restored")
    with pytest.raises(BackupFailed, match="FORCE=1"):
        backup.restore(short_dir / "old.dump", database, force=False, say=said.append)
    assert "finished a restore" in said[0]
    assert mark_in(database) == "old"
    (short_dir / "db.restored").mkdir()
    finish_or_undo(database, said.append)
    assert "undid a restore" in said[1]
    assert mark_in(database) == "old"
    finish_or_undo(database, said.append)
    assert len(said) == 2


def test_no_backup_is_made_of_a_database_that_is_being_replaced(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATA_DIR", str(short_dir))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(sys, "argv", ["backup", "make"])
    lock = Lock(short_dir)
    lock.take(Running(os.getpid(), "a restore"))
    assert backup.main() == 1
    lock.release()
    assert f"Process {os.getpid()} starts or replaces the database" in capsys.readouterr().err


@pytest.fixture
def cut_short(short_dir: Path, make_one: MakeOne, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of an installation whose update was cut short; its mark is "new", and `old.dump` has "old"."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(short_dir))
    monkeypatch.setenv("HOLDFAST_HOME", str(short_dir))
    database = short_dir / "sandbox" / "db"
    database.parent.mkdir()
    make_one(short_dir).rename(database)
    with (
        Postgres(database, durable=False, say=lambda _: None) as postgres,
        psycopg.connect(libpq_url(postgres.url)) as writer,
    ):
        writer.execute("UPDATE spent_transaction SET hash = 'new'")
    journal(ROOT).write({"from": "0.1.0", "to": "0.2.0", "phase": "changing", "database": str(database), "url": ""})
    return database


def test_an_update_that_was_cut_short_is_taken_back_before_a_restore(
    cut_short: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Going back afterwards would put the database of before the update in the restored one's place."""
    file = cut_short.parents[1] / "old.dump"
    monkeypatch.setattr(sys, "argv", ["backup", "restore", str(file), "--force"])
    assert backup.main() == 1
    said = capsys.readouterr().err
    assert "An update is under way" in said
    assert "update` takes it back" in said
    assert mark_in(cut_short) == "new"
    journal(ROOT).clear()
    assert backup.main() == 0
    assert mark_in(cut_short) == "old"


def test_an_update_itself_restores_the_backup_that_it_was_given(cut_short: Path) -> None:
    command = [sys.executable, "-m", "app.backup", "restore", str(cut_short.parents[1] / "old.dump"), "--force"]
    with _alone(journal(ROOT)):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert mark_in(cut_short) == "old"


@pytest.mark.parametrize("user", ["me:s3cret", "me"])
def test_a_password_is_on_no_command_line(user: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret" if user == "me" else "another")
    seen: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[object], *, env: dict[str, str], **_: object) -> Any:
        seen.append(([str(part) for part in command], env))
        raise BackupFailed("seen")

    monkeypatch.setattr(backup.subprocess, "run", run)
    with pytest.raises(BackupFailed, match="seen"):
        backup.dump(f"postgresql://{user}@db.example:5433/x", tmp_path / "x.dump")
    ((command, environment),) = seen
    assert "s3cret" not in " ".join(command)
    assert environment["PGPASSWORD"] == "s3cret"
    assert "db.example" in " ".join(command)


def test_an_address_that_is_none_of_a_postgresql_is_not_printed(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATA_DIR", str(short_dir))
    monkeypatch.setenv("DATABASE_URL", "postgres//me:s3cret@db/x")
    monkeypatch.setattr(sys, "argv", ["backup", "make"])
    assert backup.main() == 1
    said = capsys.readouterr().err
    assert "DATABASE_URL is not the address of a PostgreSQL" in said
    assert "s3cret" not in said


def test_two_backups_to_one_file_at_once_leave_a_whole_one(
    short_dir: Path, make_one: MakeOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_one(short_dir)
    file = short_dir / "nightly.dump"
    file.write_bytes((short_dir / "old.dump").read_bytes())
    ran = backup._run

    def meanwhile(program: str, url: str, *arguments: str | Path, major: str | None = None) -> None:
        monkeypatch.setattr(backup, "_run", ran)
        with pytest.raises(BackupFailed, match="Another backup"):
            backup.dump(url, file)
        ran(program, url, *arguments, major=major)

    with Postgres(short_dir / "db", durable=False, say=lambda _: None) as postgres:
        monkeypatch.setattr(backup, "_run", meanwhile)
        backup.dump(postgres.url, file)
        backup.check(file)
        backup.dump(postgres.url, file)
    assert [path.name for path in short_dir.glob("nightly.dump*")] == ["nightly.dump"]


def test_a_directory_is_not_taken_for_the_backups_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(backup, "_run", lambda *_, **__: pytest.fail("the database was read"))
    with pytest.raises(BackupFailed, match=f"^{tmp_path} is a directory. Name a file in it"):
        backup.dump("postgresql://db.example/x", tmp_path)
    assert list(tmp_path.parent.glob(f"{tmp_path.name}.part")) == []


def test_the_command_that_restores_a_backup_can_be_typed_as_it_is_printed() -> None:
    file = Path("/srv/our data/it's.dump")
    assert shlex.split(backup._restoring(file))[-1].removeprefix("FILE=") == str(file)
