"""The migrations bring a database to exactly the schema of the tables in the code."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from alembic.config import CommandLine

from models import WatchedConnection
from setting_checks import libpq_url
from tests.conftest import free_port
from tools.release.way_back import FILL, KEPT, kept, rows_of

ROOT = Path(__file__).resolve().parents[2]
FIRST_TO_UPDATE = "0039"
"""The newest migration of the oldest commit that has updates and `make release`. No version has been tagged yet."""
COMMITTING = sorted(
    path.name.partition("_")[0]
    for path in (ROOT / "models" / "migrations" / "versions").glob("[0-9]*.py")
    if "autocommit_block" in path.read_text()
)
"""Migrations that commit before their number is stored."""


def alembic(database_url: str, *arguments: str) -> None:
    """Run a command of Alembic in this process, which saves a start; raises SystemExit when it fails."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DATABASE_URL", database_url)
        patched.chdir(ROOT)
        CommandLine(prog="alembic").main(list(arguments))


def test_nothing_is_left_to_migrate(database_url: str) -> None:
    alembic(database_url, "check")


def test_every_migration_can_be_undone_and_done_again(database_url: str) -> None:
    alembic(database_url, "downgrade", "base")
    alembic(database_url, "upgrade", "head")
    alembic(database_url, "check")


def test_every_rule_wallet_grant_and_session_is_kept_on_the_way_to_the_present_version_and_back(
    database_url: str,
) -> None:
    alembic(database_url, "downgrade", FIRST_TO_UPDATE)
    with psycopg.connect(libpq_url(database_url)) as connection:
        connection.execute(FILL)
        before = rows_of(connection)
    assert {table: len(before[table]) for table in KEPT if len(before[table]) < 20} == {}
    for command, revision in (("upgrade", "head"), ("downgrade", FIRST_TO_UPDATE), ("upgrade", "head")):
        alembic(database_url, command, revision)
        with psycopg.connect(libpq_url(database_url)) as connection:
            assert kept(f"{command} to {revision}", before, rows_of(connection))
            lost = {**before, "wallet": before["wallet"][1:]}
            assert not kept("a loss", lost, rows_of(connection))


def test_a_database_that_cannot_be_reached_is_told_with_what_to_do() -> None:
    port = free_port()
    with pytest.raises(SystemExit, match=f"The database holdfast at 127.0.0.1:{port} does not let us in") as told:
        alembic(f"postgresql://me:s3cret@127.0.0.1:{port}/holdfast", "upgrade", "head")
    assert "DATABASE_URL" in str(told.value)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("url", ["postgresql://me:s3cret%x@db/x", "postgresql://me:s3cret/x@db/x"])
def test_an_address_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(SystemExit, match="% is %25") as told:
        alembic(url, "upgrade", "head")
    assert "s3cret" not in str(told.value)


def test_a_database_without_rights_is_told_with_what_to_do(database_url: str) -> None:
    alembic(database_url, "downgrade", "0054")
    read_only = f"{database_url}&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(SystemExit, match="read-only transaction") as told:
        alembic(read_only, "upgrade", "head")
    assert "DATABASE_URL" in str(told.value)


@pytest.mark.parametrize("command", ["upgrade head", "current"])
def test_a_database_of_a_newer_version_is_told_with_what_to_do(database_url: str, command: str) -> None:
    """Somebody went back to an older version, or restored a backup of a newer one."""
    with psycopg.connect(libpq_url(database_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SystemExit, match="newer version") as told:
        alembic(database_url, *command.split())
    assert "migration 9999" in str(told.value)


def test_of_two_machines_that_start_at_once_one_waits_also_if_its_env_file_alone_has_the_address(
    database_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        admin.execute("DROP SCHEMA public CASCADE")
        admin.execute("CREATE SCHEMA public")
    (tmp_path / ".env").write_text(f"DATABASE_URL='{database_url}'\n")
    without = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    migrations = [
        subprocess.Popen(
            [sys.executable, "-m", "alembic", "upgrade", "head"], cwd=ROOT, text=True, env=without | address,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for address in ({"DATABASE_URL": database_url}, {"HOLDFAST_HOME": str(tmp_path)})
    ]  # fmt: skip
    told = [migration.communicate()[0] for migration in migrations]
    assert [migration.returncode for migration in migrations] == [0, 0], told
    alembic(database_url, "check")


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_that_a_pooler_keeps_does_not_keep_the_turn(
    database_url: str, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Each later start would wait for a migration that has ended."""
    kept_open = list[WatchedConnection]()

    async def leave(connection: WatchedConnection) -> None:
        kept_open.append(connection)

    with psycopg.connect(libpq_url(database_url)) as other, monkeypatch.context() as patched:
        if fails:
            alembic(database_url, "downgrade", "0009")
            other.execute('LOCK TABLE "grant" IN ACCESS SHARE MODE')
        patched.setattr(WatchedConnection, "close", leave)
        with pytest.raises(SystemExit, match="stayed locked") if fails else nullcontext():
            alembic(database_url, "-x", "lock_seconds=0.05", "-x", "pause_seconds=0", "upgrade", "head")
        held = other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    for connection in kept_open:
        connection.pgconn.finish()
    assert (len(kept_open), held) == (1, (0,))


def test_a_migration_waits_for_no_table_for_long_and_tries_again(database_url: str) -> None:
    alembic(database_url, "downgrade", "0009")
    with psycopg.connect(libpq_url(database_url)) as somebody:
        somebody.execute('LOCK TABLE "grant" IN ACCESS SHARE MODE')
        sooner = ("-x", "lock_seconds=0.2", "-x", "pause_seconds=2")
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "alembic", *sooner, "upgrade", "head"],
            cwd=ROOT, env=os.environ | {"DATABASE_URL": database_url}, stdout=subprocess.PIPE, text=True,
        ) as migrating:  # fmt: skip
            assert migrating.stdout is not None
            assert "trying again" in migrating.stdout.readline()
            # While it pauses, other transactions do not wait behind it: they continue to read and write.
            with psycopg.connect(libpq_url(database_url), options="-c lock_timeout=1s") as other:
                other.execute('SELECT count(*) FROM "grant"')
            somebody.rollback()
            assert migrating.wait(60) == 0
    alembic(database_url, "check")


def test_a_migration_that_is_ended_for_a_deadlock_is_tried_again(database_url: str) -> None:
    """It has changed `member` and needs `server_move`; the running version has `server_move` and needs `member`."""
    alembic(database_url, "downgrade", "0052")
    url = libpq_url(database_url)
    waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'server_move'::regclass"
    with psycopg.connect(url) as running, psycopg.connect(url, autocommit=True) as watcher:
        running.execute("SET deadlock_timeout = '10min'")  # the migration is the one that PostgreSQL ends
        running.execute("LOCK TABLE server_move IN ACCESS SHARE MODE")
        with subprocess.Popen(
            [sys.executable, "-m", "alembic", "-x", "pause_seconds=0", "upgrade", "head"], cwd=ROOT, text=True,
            env=os.environ | {"DATABASE_URL": database_url}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as migrating:  # fmt: skip
            while watcher.execute(waits).fetchone() is None:
                assert migrating.poll() is None
            running.execute("LOCK TABLE member IN ACCESS SHARE MODE")
            running.rollback()
            told, _ = migrating.communicate()
    assert (migrating.returncode, "trying again" in told) == (0, True), told
    alembic(database_url, "check")


def test_a_migration_that_the_database_breaks_off_says_why(database_url: str) -> None:
    """A full disk looks the same: the database is there, and its address is right."""
    alembic(database_url, "downgrade", "0053")
    impatient = f"{database_url}&options=-c%20statement_timeout%3D200"
    with psycopg.connect(libpq_url(database_url)) as somebody:
        somebody.execute("LOCK TABLE server_move IN ACCESS SHARE MODE")
        with pytest.raises(SystemExit, match="brought up to date: canceling statement") as told:
            alembic(impatient, "upgrade", "head")
    assert "DATABASE_URL" not in str(told.value)


@pytest.mark.parametrize("revision", COMMITTING)
def test_a_migration_that_commits_can_be_tried_again_before_its_number_is_stored(
    database_url: str, revision: str
) -> None:
    """Somebody ended it, or one after it met a table in use."""
    alembic(database_url, "downgrade", f"{int(revision) - 1:04}")
    with psycopg.connect(libpq_url(database_url)) as somebody:
        somebody.execute("LOCK TABLE alembic_version IN SHARE MODE")
        with pytest.raises(SystemExit, match="stayed locked"):
            alembic(database_url, "-x", "lock_seconds=0.05", "-x", "pause_seconds=0", "upgrade", revision)
    alembic(database_url, "upgrade", "head")
    alembic(database_url, "check")


def test_a_database_that_was_left_halfway_through_known_members_is_brought_up_to_date(database_url: str) -> None:
    """Earlier versions committed the tables of 0053 before its number was stored."""
    alembic(database_url, "downgrade", "0053")
    with psycopg.connect(libpq_url(database_url)) as connection:
        connection.execute("DROP INDEX ix_member_unread")
        connection.execute("UPDATE alembic_version SET version_num = '0052'")
    alembic(database_url, "upgrade", "head")
    alembic(database_url, "check")


def test_what_was_there_before_the_counts_is_counted(database_url: str) -> None:
    alembic(database_url, "downgrade", "0023")
    with psycopg.connect(libpq_url(database_url)) as before:
        before.execute(
            """
            INSERT INTO server (id, discord_id, name, description, bot_invited, created_at)
            VALUES (1, '1', 'A', '', true, now());
            INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, attempts,
                                 created_at, updated_at)
            SELECT 1, n::text, '7', '{5}', 'held', false, '{}', 0, now(), now() FROM generate_series(1, 3) n;
            INSERT INTO event (at, kind, server_id, subject, role_id, data)
            SELECT now(), 'role.given', 1, n::text, '7', '{"ruleIds": [5]}' FROM generate_series(1, 3) n;
            """
        )
    alembic(database_url, "upgrade", "head")
    with psycopg.connect(libpq_url(database_url)) as after:
        counts = after.execute("SELECT kind, rule_id, total FROM rollup ORDER BY kind").fetchall()
        assert counts == [("holders", 5, 3), ("role.given", 0, 3)]
        assert after.execute("SELECT rule_id, total FROM holder_count").fetchall() == [(5, 3)]


def test_who_was_verified_before_the_counts_is_counted(database_url: str) -> None:
    alembic(database_url, "downgrade", "0026")
    with psycopg.connect(libpq_url(database_url)) as before:
        before.execute(
            """
            INSERT INTO server (id, discord_id, name, description, bot_invited, created_at)
            SELECT n, n::text, 'A', '', true, now() FROM generate_series(1, 2) n;
            INSERT INTO "user" (id, discord_id, username, connected, created_at, updated_at)
            SELECT n, n::text, 'a', false, now(), now() FROM generate_series(1, 3) n;
            INSERT INTO wallet (user_id, family, address, method, evidence, created_at)
            SELECT n, 'evm', n::text, 'opensea_bio', '{}', now() FROM generate_series(1, 2) n;
            INSERT INTO member (server_id, discord_id, name, roles, pending, seen_at)
            SELECT s, n::text, 'a', '{}', false, now() FROM generate_series(1, 3) n, generate_series(1, 2) s
            WHERE n >= s;
            INSERT INTO event (at, kind, subject, data)
            VALUES ('2026-03-01T23:30Z', 'wallet.proved', '2', '{}'), ('2026-03-02T00:30Z', 'wallet.proved', '3', '{}');
            """
        )
    alembic(database_url, "upgrade", "head")
    with psycopg.connect(libpq_url(database_url)) as after:
        assert after.execute("SELECT * FROM verified_count ORDER BY 1").fetchall() == [(1, 2), (2, 1)]
        assert after.execute("SELECT servers, CAST(day AS text), total FROM audience ORDER BY 1, 2").fetchall() == [
            ([1], "1970-01-01", 1), ([1, 2], "1970-01-01", 1), ([1, 2], "2026-03-01", 1),
        ]  # fmt: skip
        members = after.execute("SELECT server_id, total FROM rollup WHERE kind = 'members' ORDER BY 1").fetchall()
        assert members == [(1, 3), (2, 2)]
