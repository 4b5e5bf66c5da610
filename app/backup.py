"""Back up the whole database to one file (`python -m app.backup make`), restore it (`… restore FILE`), look into it.

`python -m app.backup psql` opens PostgreSQL's prompt on it, whether the product runs or not.

Nothing here or elsewhere deletes a backup.
"""

import argparse
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from app.postgres import restore_swap
from app.postgres.account import NoDatabaseAccount, Say
from app.postgres.addresses import is_unreadable
from app.postgres.binaries import PostgresFailed, program_dir
from app.postgres.server import Postgres
from app.supervisor.installed import command_of, journal, update_under_way
from app.supervisor.processes import data_dir, database_dir, home_dir
from app.supervisor.single_instance import AlreadyRunning, Lock, Running, running
from app.supervisor.system import escape_output, tell, unusable
from setting_checks import libpq_url
from settings import ROOT, Settings, SettingsError, load, newest_migration, version

TABLES = "--schema=public"
"""The schema of the product's tables. A schema `before_<time>` from an earlier restore is not part of a backup."""

KNOWN_SINCE = 170_000
"""The first version of a server that knows all settings with which our `pg_restore` begins."""
UNKNOWN_BEFORE = frozenset({b"SET transaction_timeout = 0;\n"})
"""The lines of its scripts that set the others."""


class BackupFailed(Exception):
    """Raised when no backup was made or restored; the text says why. Nothing was changed."""


def dump(url: str, file: Path, major: str | None = None) -> None:
    """Write a consistent dump of the database at `url` to a new file that only its owner can read.

    The product may run meanwhile. `major` is the server's PostgreSQL version if it is not the newest installed here. An
    existing `file` is replaced only after the new backup is complete and readable. Raises BackupFailed, also if another
    backup to this file is under way, and OSError.
    """
    if file.is_dir():
        raise BackupFailed(f"{file} is a directory. Name a file in it, such as {file / 'holdfast.dump'}.")
    if file.parent != ROOT and not file.parent.exists():
        file.parent.mkdir(parents=True, mode=0o700)
    half = file.with_name(f"{file.name}.part")
    with _alone(half, file):
        try:
            _run("pg_dump", url, "-Fc", TABLES, "--no-owner", "--no-privileges", "-f", half, major=major)
            check(half)
            half.chmod(0o600)
            half.replace(file)
        finally:
            half.unlink(missing_ok=True)


@contextmanager
def _alone(half: Path, file: Path) -> Iterator[None]:
    """Hold the lock on an unfinished backup, which the kernel releases if this process dies."""
    with os.fdopen(os.open(half, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = half.exists() and os.fstat(lock.fileno()).st_ino == half.stat().st_ino
        except BlockingIOError:
            free = False
        except OSError:  # a file system without locks
            free = True
        if not free:
            raise BackupFailed(f"Another backup to {file} is under way.")
        yield


def check(file: Path) -> None:
    """Raise BackupFailed unless the file is a complete backup of a Holdfast database."""
    if not file.is_file():
        raise BackupFailed(f"There is no file {file}.")
    done = subprocess.run(
        [program_dir() / "pg_restore", "--list", file], capture_output=True, text=True, check=False, env=_plain()
    )
    if done.returncode != 0 or " alembic_version " not in done.stdout:
        raise BackupFailed(f"{file} is not a backup of this product. {done.stderr.strip()}".strip())


def refuse_newer(file: Path) -> None:
    """Raise BackupFailed if a backup is of a version with migrations that this one lacks: no start could use it."""
    options = ("--data-only", "--schema=public", "--table=alembic_version", "--file=-")
    done = subprocess.run(
        [program_dir() / "pg_restore", *options, file], capture_output=True, text=True, check=False, env=_plain()
    )
    migration = re.search(r"^COPY public\.alembic_version .*\n(\d+)$", done.stdout, re.MULTILINE)
    if migration and migration[1] > newest_migration():
        raise BackupFailed(
            f"{file} is of a newer version than {version()}: its migration {migration[1]} is unknown here. Install "
            "that version first."
        )


def fill(url: str, file: Path, *, first: str = "") -> None:
    """Restore a backup into an empty database, completely or not at all, also if this process is killed.

    `first` is SQL that empties the database, in the same transaction. Raises BackupFailed, psycopg.Error.
    """
    with psycopg.connect(libpq_url(url)) as connection:
        server = connection.info.server_version
    if first or server < KNOWN_SINCE:
        _fill_by_script(url, file, first, UNKNOWN_BEFORE if server < KNOWN_SINCE else frozenset())
    else:
        whole = ("--single-transaction", "--exit-on-error")
        _run("pg_restore", url, TABLES, *whole, "--no-owner", "--no-privileges", file)


def _fill_by_script(url: str, file: Path, first: str, unknown: frozenset[bytes]) -> None:
    """Restore with the script that `pg_restore` writes for psql, which gets `first` before it.

    `unknown` are lines near its beginning that are left out, because the server does not know these settings.
    """
    reading = [program_dir() / "pg_restore", TABLES, "--no-owner", "--no-privileges", "--file=-", file]
    command, environment = _on(url, "psql")
    writing = [*command, "-X", "-q", "--set=ON_ERROR_STOP=1", "--file=-"]
    with TemporaryFile("w+b") as unread, TemporaryFile("w+b") as unwritten:
        reader = subprocess.Popen(reading, env=_plain(), stdout=subprocess.PIPE, stderr=unread)
        writer = subprocess.Popen(
            writing, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=unwritten
        )
        assert reader.stdout is not None
        assert writer.stdin is not None
        try:
            with suppress(BrokenPipeError):  # psql has ended, and says why
                # Not --single-transaction, which commits at the end of the input: that also comes if we are killed.
                writer.stdin.write(f"BEGIN;\n{first}\n".encode())
                writer.stdin.writelines(line for line in islice(reader.stdout, 100) if line not in unknown)
                shutil.copyfileobj(reader.stdout, writer.stdin)
                _check_end("pg_restore", reader, unread)
                writer.stdin.write(b"COMMIT;\n")
                writer.stdin.close()
            _check_end("psql", writer, unwritten)
        finally:
            for process in (writer, reader):
                process.kill()
                process.wait()
            reader.stdout.close()
            with suppress(BrokenPipeError):
                writer.stdin.close()


def _check_end(program: str, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    if process.wait() != 0:
        errors.seek(0)
        raise BackupFailed(f"{program} failed: {errors.read().decode(errors='replace').strip()}")


def restore(file: Path, database: Path, *, force: bool, say: Say) -> None:
    """Make the embedded database in the directory `database` from a backup.

    An existing database is replaced only with `force` and once the new one is complete; it is kept beside the new one.
    The caller ensures that nothing uses the database. Raises BackupFailed.
    """
    check(file)
    refuse_newer(file)
    _refuse_root(database)
    restore_swap.finish(database, say)
    if (database / "cluster").exists():
        if not force:
            raise BackupFailed(f"There is a database in {database} already. To put it aside: FORCE=1, or --force.")
        old = Postgres(database, say=say)
        if old.is_running():  # its supervisor was killed
            old.start()
            old.stop()
    restore_swap.discard(database)
    try:
        with Postgres(restore_swap.unfinished(database), say=say) as fresh:
            fill(fresh.url, file)
    except BaseException:
        restore_swap.discard(database)
        raise
    restore_swap.put_in_place(database, database.with_name(f"{database.name}.before-{_stamp()}"), say)


def _refuse_root(database: Path) -> None:
    """Raise BackupFailed for root if another account has the database: it could not start one that root makes."""
    if os.geteuid() != 0 or not database.exists() or (owner := database.stat().st_uid) == 0:
        return
    try:
        name = database.owner()
    except KeyError:
        name = f"#{owner}"
    command = command_of(ROOT, "restore") or "python -m app.backup restore"
    raise BackupFailed(f"{database} belongs to {name}: restore as that account, as in sudo -u {name} {command}.")


def restore_elsewhere(file: Path, url: str, *, force: bool, say: Say) -> None:
    """Restore into the database at `url`. Existing tables are moved to another schema, and only with `force`.

    All of it is one transaction, so they stay in their place if the restore fails, is stopped or killed.
    """
    # Imported only if needed: with it come all tables.
    from models.db.schema_swap import has_tables, moving_aside

    check(file)
    refuse_newer(file)
    aside = f"before_{_stamp().replace('-', '_')}"
    full = has_tables(url)
    if full and not force:
        raise BackupFailed("The database at DATABASE_URL has tables already. To put them aside: FORCE=1, or --force.")
    fill(url, file, first=moving_aside(aside) if full else "")
    if full:
        say(f"what was there is kept in the schema {aside}")


def main() -> int:
    """Parse the command line and run. Return 0 on success, 1 with a printed sentence on failure, 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m app.backup", description="The database in one file, and back.")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write a backup")
    making.add_argument("--to", type=Path, metavar="FILE", help="where, instead of data/backups")
    restoring = commands.add_parser("restore", help="make a database of a backup")
    restoring.add_argument("file", type=Path)
    restoring.add_argument("--force", action="store_true", help="put what is there aside")
    # With a prefix that nobody types, everything that follows is psql's own, also what begins with a dash.
    looking = commands.add_parser("psql", help="PostgreSQL's prompt", add_help=False, prefix_chars="\0")
    looking.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    escape_output()
    # A backup at night drops what it prints, and only errors are mailed.
    complain = partial(print, file=sys.stderr)
    try:
        with _stoppable():
            if given.command == "make":
                _make(given.to)
            elif given.command == "psql":
                return _psql(given.arguments)
            else:
                _restore(given.file, given.force)
    except (BackupFailed, PostgresFailed, NoDatabaseAccount, SettingsError, psycopg.Error) as fault:
        if isinstance(fault, psycopg.Error) and is_unreadable(fault):
            complain("DATABASE_URL is not the address of a PostgreSQL: postgresql://user:password@host/database")
        else:
            complain(str(fault).strip())
        return 1
    except OSError as fault:
        complain(unusable(fault))
        return 1
    except KeyboardInterrupt:
        complain("stopped")
        return 130
    return 0


def _make(to: Path | None) -> None:
    settings = load()
    home = data_dir(settings)
    file = (to or home / "backups" / f"{home_dir(settings).name}-{_stamp()}.dump").absolute()
    with _opened(settings) as (url, major):
        dump(url, file, major)
    if to is None:
        hand_over(home, file)
    tell(f"The backup is in {file} ({file.stat().st_size} bytes). To restore it: {_restoring(file)}")
    tell("Keep SECRET_KEY too, in another place: without it people have to sign in again, and webhooks stop.")


def hand_over(home: Path, file: Path) -> None:
    """Give a backup that root made to the account whose data it is: its own next one is in the same directory."""
    owner = home.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for path in (file.parent, file):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _restoring(file: Path) -> str:
    """Return the command that restores a backup in this installation: a wheel, a repository or an image."""
    named, command = shlex.quote(str(file)), command_of(ROOT, "restore")
    if command is None:
        return f"python -m app.backup restore {named}"
    return f"{command} FILE={named}" if command.startswith("make ") else f"{command} {named}"


def _psql(arguments: list[str]) -> int:
    """Run psql on the product's database; return its exit code."""
    with _opened(load()) as (url, major):
        command, environment = _on(url, "psql", major)
        environment = {**environment, "LC_ALL": os.environ.get("LC_ALL", "")}  # the prompt is for people
        # Ctrl+C ends the statement that psql runs, and neither this process nor the database that it started.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return subprocess.run([*command, *arguments], env=environment, check=False).returncode


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Yield the URL of the product's database, and the embedded server's major version (None with DATABASE_URL).

    The embedded database is started for the block unless it already runs.
    """
    if settings.database_url:
        yield settings.database_url, None
        return
    database, now = database_dir(settings), running(data_dir(settings))
    if now is not None and not now.database_url:
        raise BackupFailed(f"Process {now.pid} starts or replaces the database: try again when it is ready.")
    if now is None:
        restore_swap.finish(database, tell)
    made_by = database / "cluster" / "PG_VERSION"
    if not made_by.exists():
        raise BackupFailed(f"There is no database in {database} yet.")
    major = made_by.read_text().strip()
    if now is not None and now.database_url:
        yield now.database_url, major
        return
    with Postgres(database, say=tell) as postgres:
        yield postgres.url, major


def _restore(file: Path, force: bool) -> None:
    settings = load()
    lock = Lock(data_dir(settings))
    try:
        lock.take(Running(os.getpid(), "a restore"))
    except AlreadyRunning as fault:
        raise BackupFailed(f"{fault} Stop it first.") from None
    try:
        _refuse_during_update()
        if settings.database_url:
            restore_elsewhere(file, settings.database_url, force=force, say=tell)
        else:
            restore(file.absolute(), database_dir(settings), force=force, say=tell)
    finally:
        lock.release()
    # The exit code says whether it was restored, also where nobody reads this.
    tell("Restored. The next start brings it up to date.")


def _refuse_during_update() -> None:
    """Raise BackupFailed if an update may still go back, which drops what is restored; not if that update asks."""
    note = journal(ROOT)
    if not note.open or _has_open(os.getppid(), note.lock):
        return
    raise BackupFailed(f"{update_under_way(ROOT)} Restore after that: a restore would be lost if it goes back.")


def _has_open(pid: int, file: Path) -> bool:
    """Return whether a process has a file open. Updates by earlier versions pass nothing by which to know them."""
    try:
        return any(one.exists() and one.samefile(file) for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # no such file, or a process of another account
        return False


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT, SIGTERM or SIGHUP in the block, and ignore later ones.

    The cleanup after the first signal puts the database back, or stops it, and must not be interrupted.
    """

    def stop(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(program: str, url: str, *arguments: str | Path, major: str | None = None) -> None:
    """Run one of PostgreSQL's programs on a database."""
    command, environment = _on(url, program, major)
    done = subprocess.run(
        [*command, *arguments], env=environment, umask=0o077, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise BackupFailed(f"{program} failed: {done.stderr.strip()}")


def _on(url: str, program: str, major: str | None = None) -> tuple[list[str | Path], dict[str, str]]:
    """Return the command of a program with its database, and its environment; a password is only in the latter."""
    parts = {name: str(value) for name, value in conninfo_to_dict(libpq_url(url)).items() if value is not None}
    environment = _plain() | ({"PGPASSWORD": parts.pop("password")} if "password" in parts else {})
    return [program_dir(major) / program, "-d", make_conninfo("", **parts)], environment


def _plain() -> dict[str, str]:
    """Return an environment without PG… variables, except the password: the others influence PostgreSQL's programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") or name == "PGPASSWORD"}
    return kept | {"LC_ALL": "C"}


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


if __name__ == "__main__":
    sys.exit(main())
