"""Each trap of an embedded PostgreSQL: stale files, killed owners, two starts at once, accounts, paths, locales.

Creating a cluster takes most of the time of a start. Tests of something else begin with a copy of a cluster that was
created and stopped before.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.postgres import server
from app.postgres.binaries import PostgresFailed
from app.postgres.process import Postmaster, read_pid_file, serves
from app.postgres.server import DatabaseInUse, Postgres
from tests.conftest import temporary_dir

ROOT = Path(__file__).resolve().parents[3]
OWNER = """
import sys, time
from pathlib import Path
from app.postgres.server import Postgres
database = Postgres(Path(sys.argv[1]))
print(database.start(), flush=True)
time.sleep(600)
"""


def ask(url: str, query: str) -> str:
    """Run the statements, and return the first value of the last one's first row as text."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        *before, last = query.split("; ")
        for statement in before:
            connection.execute(statement.encode())
        row = connection.execute(last.encode()).fetchone()
    assert row is not None
    return str(row[0])


def postmaster(database: Postgres) -> Postmaster:
    """Return the process id of the running server, from its pid file."""
    found = read_pid_file(database.cluster)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """The directory of a database that was created and stopped."""
    with temporary_dir() as directory:
        with Postgres(directory / "db", durable=False):
            pass
        yield directory / "db"


def test_a_long_log_of_a_running_server_is_moved_aside(
    made: Path, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LONGEST_LOG", 10_000)
    with Postgres(copied(made, short_dir / "db"), durable=False) as database:
        url = database.start()
        database.shorten_log()
        assert not database.log.with_suffix(".log.old").exists()
        with database.log.open("a") as log:
            log.write("x" * 10_000)
        database.shorten_log()
        with pytest.raises(psycopg.errors.UndefinedTable):
            ask(url, "SELECT 1 FROM nothing_of_this_name")
        assert "x" * 10_000 in database.log.with_suffix(".log.old").read_text()
        assert database.log.read_text().startswith("20"), "a line begins with its time, at the beginning of the file"
        assert "nothing_of_this_name" in database.log.read_text()
        assert database.log.with_suffix(".log.old").stat().st_mode & 0o077 == 0


def copied(made: Path, data_dir: Path) -> Path:
    """Copy a stopped database with its owners and modes."""
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(made), str(data_dir)], check=True)
    return data_dir


@pytest.fixture
def fresh(short_dir: Path) -> Iterator[Postgres]:
    """A database that does not exist yet."""
    database = Postgres(short_dir / "db", durable=False)
    yield database
    database.stop()


@pytest.fixture
def database(made: Path, short_dir: Path) -> Iterator[Postgres]:
    """A database that was created and stopped."""
    database = Postgres(copied(made, short_dir / "db"), durable=False)
    yield database
    database.stop()


@pytest.fixture
def owner(database: Postgres, short_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the running database, in its own process group."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(short_dir / "db")],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    while (line := process.stdout.readline()) and not line.startswith("postgresql"):
        pass
    assert line, "the owner did not come up"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_it_starts_keeps_its_data_over_a_restart_and_listens_on_no_port(fresh: Postgres) -> None:
    url = fresh.start()
    ask(url, "CREATE TABLE kept AS SELECT 7 AS n; SELECT 1")
    assert ask(url, "SHOW listen_addresses") == ""
    assert ask(url, "SHOW max_connections") == "200"
    fresh.stop()
    assert not fresh.is_running()
    assert ask(fresh.start(), "SELECT n FROM kept") == "7"


def test_real_data_are_kept_safe_from_power_cuts(made: Path, short_dir: Path) -> None:
    with Postgres(copied(made, short_dir / "db")) as database:
        assert ask(database.url, "SHOW fsync") == "on"
        assert ask(database.url, "SHOW full_page_writes") == "on"


@pytest.mark.parametrize("locale", ["xx_YY.nowhere", "tr_TR.UTF-8"])
def test_no_locale_of_the_machine_can_sway_it(fresh: Postgres, monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    for name in ("LC_ALL", "LANG", "LC_COLLATE"):
        monkeypatch.setenv(name, locale)
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGPORT", "1")
    url = fresh.start()
    assert (
        ask(url, "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'holdfast'") == "bC.UTF-8"
    )
    assert ask(url, "SELECT upper('straße ñ')") == "STRAßE Ñ"
    assert ask(url, "SHOW server_encoding") == "UTF8"


def test_its_socket_is_private(database: Postgres) -> None:
    database.start()
    assert postmaster(database).socket_dir.stat().st_mode & 0o777 == 0o700


def test_a_data_path_too_long_for_a_socket_gets_a_short_private_one(short_dir: Path) -> None:
    deep = short_dir.joinpath(*["a-rather-long-name-of-a-directory"] * 4) / "with space and 'quote'"
    with Postgres(deep, durable=False) as database:
        socket_dir = postmaster(database).socket_dir
        assert len(str(socket_dir)) < 90
        assert socket_dir.stat().st_mode & 0o777 == 0o700
        assert ask(database.url, "SELECT 1") == "1"
    with Postgres(deep, durable=False) as database:
        assert postmaster(database).socket_dir == socket_dir
    socket_dir.rmdir()


def test_a_data_path_with_a_comma_gets_a_socket_elsewhere(made: Path, short_dir: Path) -> None:
    """Addresses of sockets are lists that commas separate."""
    (short_dir / "mine, live").mkdir()
    with Postgres(copied(made, short_dir / "mine, live" / "db"), durable=False) as database:
        socket_dir = postmaster(database).socket_dir
        assert ask(database.url, "SELECT 1") == "1"
    assert "," not in str(socket_dir)
    socket_dir.rmdir()


@pytest.mark.parametrize("name", ['a"b', "a$b", "a`b", "a\\b"])
def test_a_data_path_that_its_programs_cannot_take_is_refused_in_a_sentence(short_dir: Path, name: str) -> None:
    with pytest.raises(PostgresFailed, match="DATA_DIR"):
        Postgres(short_dir / name / "db", durable=False).start()
    assert not (short_dir / name).exists()


def test_a_full_disk_is_named_before_what_the_programs_say(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'FATAL:  could not write to file "pg_wal/xlogtemp.7": No space left on device'
    monkeypatch.setattr(Postgres, "_call", lambda *_: subprocess.CompletedProcess(["/bin/initdb"], 1, said, ""))
    with pytest.raises(
        PostgresFailed, match=rf"^The disk of {short_dir}/db is full: make room\.\ninitdb failed: FATAL"
    ):
        Postgres(short_dir / "db").start()


def test_a_start_that_fails_leaves_no_server_running(database: Postgres) -> None:
    ask(database.start(), "ALTER ROLE holdfast NOLOGIN; SELECT 1")
    database.stop()
    with pytest.raises(PostgresFailed, match="not permitted to log in"):
        database.start()
    assert not database.is_running()


def test_a_squatter_on_the_short_name_gets_nothing(made: Path, short_dir: Path, tmp_path: Path) -> None:
    deep = copied(made, short_dir.joinpath(*["a-rather-long-name-of-a-directory"] * 4))
    with Postgres(deep, durable=False) as database:
        usual = postmaster(database).socket_dir
    usual.rmdir()
    usual.symlink_to(tmp_path)
    try:
        with Postgres(deep, durable=False) as database:
            chosen = postmaster(database).socket_dir
            assert chosen != usual
            assert ask(database.url, "SELECT 1") == "1"
        chosen.rmdir()
        assert list(tmp_path.iterdir()) == []
    finally:
        usual.unlink()


def test_a_second_owner_is_refused_and_told_who_has_it(database: Postgres, owner: subprocess.Popen[str]) -> None:
    with pytest.raises(DatabaseInUse, match=str(owner.pid)):
        database.start()
    database.stop()
    assert database.is_running(), "a refused owner must not stop the server"
    end(database, owner)


def test_of_two_starts_at_once_exactly_one_wins(short_dir: Path) -> None:
    script = OWNER.replace("time.sleep(600)", "sys.stdin.read(); database.stop()")
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(short_dir / "db")],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    # The loser ends; the winner waits until its input closes.
    deadline = time.monotonic() + 60
    while all(process.poll() is None for process in both) and time.monotonic() < deadline:
        time.sleep(0.02)
    loser, winner = sorted(both, key=lambda process: process.poll() is None)
    assert "DatabaseInUse" in loser.communicate()[1]
    out, err = winner.communicate("")
    assert winner.returncode == 0, err
    assert "postgresql+psycopg://" in out


def test_a_server_whose_owner_was_killed_is_adopted(database: Postgres, owner: subprocess.Popen[str]) -> None:
    first = postmaster(database).pid
    os.killpg(owner.pid, signal.SIGKILL)
    owner.wait()
    assert ask(database.start(), "SELECT 1") == "1"
    assert postmaster(database).pid == first


def test_a_survivor_that_lost_its_socket_is_restarted(database: Postgres, owner: subprocess.Popen[str]) -> None:
    first = postmaster(database)
    os.killpg(owner.pid, signal.SIGKILL)
    owner.wait()
    (first.socket_dir / f".s.PGSQL.{first.port}").unlink()
    assert ask(database.start(), "SELECT 1") == "1"
    assert postmaster(database).pid != first.pid


def test_after_kill_9_of_everything_it_starts_with_what_was_committed(
    database: Postgres, owner: subprocess.Popen[str]
) -> None:
    server = postmaster(database)
    url = f"postgresql://holdfast@/holdfast?host={server.socket_dir}"
    ask(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n; SELECT 1")
    os.killpg(owner.pid, signal.SIGKILL)
    os.kill(server.pid, signal.SIGKILL)
    owner.wait()
    assert ask(database.start(), "SELECT count(*) FROM kept") == "1000"


def test_a_backend_that_outlives_its_killed_server_is_ended_before_the_next_start(
    database: Postgres, owner: subprocess.Popen[str]
) -> None:
    server = postmaster(database)
    with psycopg.connect(f"postgresql://holdfast@/holdfast?host={server.socket_dir}") as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)  # now it cannot react to anything
        os.killpg(owner.pid, signal.SIGKILL)
        os.kill(server.pid, signal.SIGKILL)
        owner.wait()
        assert ask(database.start(), "SELECT 1") == "1"
        assert not serves(backend, database.cluster)


@pytest.mark.parametrize("stands_behind", ["nobody", "a foreign process", "a zombie", "garbage"])
def test_a_stale_pid_file_is_removed_with_the_lock_of_the_socket(database: Postgres, stands_behind: str) -> None:
    database.start()
    database.stop()
    child = subprocess.Popen(["sleep", "600"] if stands_behind == "a foreign process" else ["true"])
    try:
        if stands_behind == "a zombie":
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            os.kill(child.pid, 0)  # still there, though dead
        if stands_behind == "nobody":
            child.wait()
        leave_behind(database, "?" if stands_behind == "garbage" else str(child.pid))
        assert not database.is_running()
        assert ask(database.start(), "SELECT 1") == "1"
        assert postmaster(database).pid != child.pid
    finally:
        child.kill()
        child.wait()


def test_a_recovery_that_takes_long_is_waited_for(
    database: Postgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that is ended while it recovers begins again, so a limit could keep it from ever being ready."""
    monkeypatch.setattr("app.postgres.server.START_SECONDS", 1)
    monkeypatch.setattr("app.postgres.server.STUCK_SECONDS", 1)
    recovers_slowly(database, seconds=2)
    assert ask(database.start(), "SELECT 1") == "1"
    assert "PostgreSQL is recovering" in capsys.readouterr().out


def test_a_killed_initdb_leaves_nothing_in_the_way(fresh: Postgres) -> None:
    half = fresh.data_dir / "cluster.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    assert ask(fresh.start(), "SELECT 1") == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has nothing to switch from")
class TestAsRoot:
    """As root the server runs under its own account; a forked child stands in for an ordinary user."""

    def test_the_server_runs_as_somebody_else_who_may_only_pass_through(
        self, short_dir: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        closed = short_dir / "closed"
        closed.mkdir(mode=0o700)
        with Postgres(closed / "db", durable=False) as database:
            assert os.stat(f"/proc/{postmaster(database).pid}").st_uid != 0
            assert database.cluster.stat().st_uid != 0
            assert ask(database.url, "SELECT 1") == "1"
        assert closed.stat().st_mode & 0o777 == 0o701
        assert f"added o+x to {closed}" in capsys.readouterr().out

    def test_an_ordinary_user_runs_it_as_themselves(self, short_dir: Path) -> None:
        short_dir.chmod(0o711)
        home = short_dir / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        assert in_child(lambda: start_and_stop(home / "db"), uid=65534) == 0
        assert (home / "db" / "cluster").stat().st_uid == 65534

    def test_an_ordinary_user_is_told_when_the_data_are_roots(self, made: Path, short_dir: Path) -> None:
        copied(made, short_dir / "db")
        assert in_child(lambda: start_and_stop(short_dir / "db"), uid=65534) == 1


def start_and_stop(data_dir: Path) -> None:
    with Postgres(data_dir, durable=False) as database:
        assert ask(database.url, "SELECT 1") == "1"
        assert os.stat(f"/proc/{postmaster(database).pid}").st_uid == (os.geteuid() or database.cluster.stat().st_uid)


def in_child(work: object, uid: int) -> int:
    """Run a function in a forked child as another user; return 0 if it returned and 1 if it raised."""
    assert callable(work)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def recovers_slowly(database: Postgres, seconds: int) -> None:
    """Let the next start ask an archive for its log, which takes so many seconds for each file and finds none."""
    with (database.cluster / "postgresql.conf").open("a") as conf:
        conf.write(f"\nrestore_command = 'sleep {seconds}; false'\n")
    (database.cluster / "recovery.signal").touch()
    owner = database.cluster.stat()
    os.chown(database.cluster / "recovery.signal", owner.st_uid, owner.st_gid)


def leave_behind(database: Postgres, pid: str) -> None:
    """Create the files that a killed server would have left, with this process id in them."""
    socket_dir = database.data_dir / "socket"
    owner = database.cluster.stat()
    lines = [pid, str(database.cluster), "1700000000", "5432", str(socket_dir), "", " 1234567 1234567", "ready   ", ""]
    for path in (database.cluster / "postmaster.pid", socket_dir / ".s.PGSQL.5432.lock"):
        path.write_text("\n".join(lines))
        path.chmod(0o600)
        os.chown(path, owner.st_uid, owner.st_gid)


def end(database: Postgres, owner: subprocess.Popen[str]) -> None:
    """Kill the owner and stop the server that it leaves behind."""
    owner.kill()
    owner.wait()
    database.start()
    database.stop()
