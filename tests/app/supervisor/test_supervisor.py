"""The supervisor with fake children: growing pauses between restarts, an orderly end, and no orphaned children."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from app.supervisor import supervisor as supervisor_module
from app.supervisor.child_process import Pauses, Program
from app.supervisor.single_instance import AlreadyRunning, Lock, Running, end_survivors, running
from app.supervisor.supervisor import ProcessPlan, StartFailed, Supervisor
from tests.conftest import free_port
from tests.support.product import kill_session

ROOT = Path(__file__).resolve().parents[3]
NOTE = "open('notes', 'a').write({text!r} + '\\n')"
QUICK = Pauses(first=0.01, longest=0.04, stable=60)


def child(name: str, code: str, port: int | None = None, stop_seconds: float = 10) -> Program:
    """Return a fake program that runs this Python code in the plan's directory."""
    return Program(name, (sys.executable, "-S", "-c", code), ready_port=port, stop_seconds=stop_seconds)


def patient(name: str, port: int | None = None) -> Program:
    """Return a fake program that notes when it begins and when it is asked to end."""
    listen = f"import socket; s = socket.create_server(('127.0.0.1', {port})); " if port else ""
    code = (
        f"import signal, sys; signal.signal(15, lambda *_: ({NOTE.format(text=name + ' ends')}, sys.exit())); "
        f"{listen}{NOTE.format(text=name + ' begins')}; signal.pause()"
    )
    return child(name, code, port)


def plan(directory: Path, *programs: Program, pauses: Pauses = QUICK, migrate: tuple[str, ...] = ()) -> ProcessPlan:
    return ProcessPlan(
        data_dir=directory, cwd=directory, url="http://localhost:1", programs=programs, environment=marked(directory),
        pauses=pauses, migrate=migrate,
    )  # fmt: skip


def marked(directory: Path) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_RUN": str(directory)}


def notes(directory: Path) -> list[str]:
    path = directory / "notes"
    return path.read_text().splitlines() if path.exists() else []


async def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait until the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("previous", "ran", "pause"), [(None, 0.1, 1), (1, 0.1, 2), (32, 5, 60), (60, 5, 60), (60, 61, 1)]
)
def test_pauses_grow_to_a_limit_and_are_forgotten_after_a_stable_minute(
    previous: float | None, ran: float, pause: float
) -> None:
    assert Pauses().after(previous, ran) == pause


async def test_a_crash_restarts_the_program_with_growing_pauses(tmp_path: Path, said: list[str]) -> None:
    supervisor = Supervisor(
        plan(tmp_path, child("bot", f"{NOTE.format(text='x')}; raise SystemExit(3)")), say=said.append
    )
    task = asyncio.create_task(supervisor.run())
    await until(lambda: len(notes(tmp_path)) >= 4)
    supervisor.stop()
    await task
    restarts = [line for line in said if "bot ended" in line]
    assert (
        restarts[:4]
        == [f"bot ended with exit code 3; starting it again in {pause} s" for pause in (0.01, 0.02, 0.04, 0.04)][
            : len(restarts)
        ]
    )


async def test_a_program_that_does_not_exist_is_retried_and_spoils_nothing(tmp_path: Path, said: list[str]) -> None:
    supervisor = Supervisor(plan(tmp_path, Program("web", ("/no/such/program",)), patient("bot")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "bot begins" in notes(tmp_path))
    supervisor.stop()
    await task
    assert any("web could not be started" in line for line in said)


async def test_others_start_after_the_port_they_need_and_end_before_it(tmp_path: Path, said: list[str]) -> None:
    supervisor = Supervisor(plan(tmp_path, patient("sandbox", free_port()), patient("bot")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "bot begins" in notes(tmp_path))
    os.kill(os.getpid(), signal.SIGTERM)
    await task
    assert notes(tmp_path) == ["sandbox begins", "bot begins", "bot ends", "sandbox ends"]


async def test_a_deaf_program_is_killed_when_its_time_is_up(tmp_path: Path, said: list[str]) -> None:
    deaf = f"import signal; signal.signal(15, signal.SIG_IGN); {NOTE.format(text='up')}; signal.pause()"
    supervisor = Supervisor(plan(tmp_path, child("jobs", deaf, stop_seconds=0.1)), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(tmp_path))
    supervisor.stop()
    await asyncio.wait_for(task, 10)
    assert any("killing it" in line for line in said)


async def test_the_children_of_a_killed_program_are_ended_too(tmp_path: Path, said: list[str]) -> None:
    deaf = (
        "import signal, subprocess; signal.signal(15, signal.SIG_IGN); grandchild = subprocess.Popen(['sleep', '60']); "
        "open('notes', 'w').write(f'{grandchild.pid}\\n'); signal.pause()"
    )
    supervisor = Supervisor(plan(tmp_path, child("web", deaf, stop_seconds=0.1)), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(tmp_path))
    supervisor.stop()
    await task
    assert not alive(int(notes(tmp_path)[0]))


async def test_every_line_has_its_programs_name_in_front(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = tmp_path / "printed"
    code = (
        "print('one'); print('x' * 200_000); print('last', end='', flush=True); "
        f"open({str(printed)!r}, 'w').close(); import signal; signal.pause()"
    )
    supervisor = Supervisor(plan(tmp_path, child("web", code)), say=lambda _: None)
    task = asyncio.create_task(supervisor.run())
    out = ""

    def seen() -> bool:
        nonlocal out
        out += capfd.readouterr().out
        return out.count("\n") >= 2 and printed.exists()

    await until(seen)
    supervisor.stop()
    await task
    out += capfd.readouterr().out
    assert out.splitlines() == ["web     | one", "web     | " + "x" * 200_000, "web     | last"]


async def test_programs_know_the_start_by_a_clock_that_nobody_sets(tmp_path: Path, said: list[str]) -> None:
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    tell = "import os, signal; open('notes', 'a').write(os.environ['HOLDFAST_STARTED'] + '\\n'); signal.pause()"
    supervisor = Supervisor(plan(tmp_path, child("bot", tell)), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(tmp_path))
    supervisor.stop()
    await task
    assert began <= float(notes(tmp_path)[0]) <= time.clock_gettime(time.CLOCK_BOOTTIME)


async def test_a_failed_migration_starts_nothing(tmp_path: Path, said: list[str]) -> None:
    supervisor = Supervisor(plan(tmp_path, patient("bot"), migrate=("false",)), say=said.append)
    with pytest.raises(StartFailed):
        await supervisor.run()
    assert notes(tmp_path) == []


def web(port: int) -> Program:
    """A fake web that notes each question, and is healthy from the third one on."""
    code = (
        "import http.server as h\n"
        "class H(h.BaseHTTPRequestHandler):\n"
        "    n = 0\n"
        "    def do_GET(self):\n"
        f"        {NOTE.format(text='asked')}\n"
        "        H.n += 1; self.send_response(503 if H.n < 3 else 200); self.end_headers()\n"
        f"h.HTTPServer(('127.0.0.1', {port}), H).serve_forever()"
    )
    return child("web", code)


async def test_a_program_that_nobody_waits_for_starts_after_the_web_is_healthy(tmp_path: Path, said: list[str]) -> None:
    port = free_port()
    base = plan(tmp_path, web(port), replace(patient("jobs"), after_health=True))
    supervisor = Supervisor(replace(base, health=(port, "/health", "localhost", "localhost")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "jobs begins" in notes(tmp_path))
    assert notes(tmp_path)[:3] == ["asked"] * 3
    supervisor.stop()
    await task


async def test_without_health_everything_starts_all_the_same(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "HEALTH_FIRST_SECONDS", 0.2)
    base = plan(tmp_path, replace(patient("jobs"), after_health=True))
    supervisor = Supervisor(replace(base, health=(free_port(), "/health", "localhost", "localhost")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "jobs begins" in notes(tmp_path))
    supervisor.stop()
    await task


async def test_it_says_ready_once_health_answers_200(tmp_path: Path, said: list[str]) -> None:
    port = free_port()
    base = plan(tmp_path, web(port))
    supervisor = Supervisor(
        replace(base, health=(port, "/health", "localhost", "localhost"), ready_text="ready!"), say=said.append
    )
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "ready!" in said)
    assert len(notes(tmp_path)) == 3
    supervisor.stop()
    await task
    assert said.count("ready!") == 1


async def test_a_second_start_is_told_where_the_first_one_runs(tmp_path: Path, said: list[str]) -> None:
    first = Supervisor(plan(tmp_path, patient("bot")), say=said.append)
    task = asyncio.create_task(first.run())
    await until(lambda: "bot begins" in notes(tmp_path))
    with pytest.raises(AlreadyRunning, match=rf"already runs at http://localhost:1 \(process {os.getpid()}\)"):
        await Supervisor(plan(tmp_path, patient("bot")), say=said.append).run()
    first.stop()
    await task
    assert notes(tmp_path) == ["bot begins", "bot ends"]
    assert running(tmp_path) is None


async def test_postgres_is_brought_up_handed_down_and_brought_back(short_dir: Path, said: list[str]) -> None:
    tell = "import os, signal; open('notes', 'a').write(os.environ['DATABASE_URL'] + '\\n'); signal.pause()"
    base = plan(short_dir, child("bot", tell), migrate=("true",))
    supervisor = Supervisor(ProcessPlan(**{**vars(base), "database": short_dir / "db"}), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: notes(short_dir))
    found = running(short_dir)
    assert found is not None
    assert found.database_url == notes(short_dir)[0]
    pid_file = short_dir / "db" / "cluster" / "postmaster.pid"
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    await until(lambda: any("PostgreSQL has ended" in line for line in said))
    supervisor.stop()
    await task
    assert not pid_file.exists()


async def test_a_start_undoes_a_restore_that_was_killed_and_migrates_unless_the_database_is_the_newest(
    short_dir: Path, said: list[str]
) -> None:
    (short_dir / "db.restoring" / "cluster").mkdir(parents=True)
    code = (
        "import os, psycopg\n"
        f"{NOTE.format(text='migrating')}\n"
        "with psycopg.connect(os.environ['DATABASE_URL'].replace('+psycopg', '')) as db:\n"
        "    db.execute('CREATE TABLE IF NOT EXISTS alembic_version AS SELECT 42 AS version_num')\n"
    )
    base = plan(short_dir, patient("bot"), migrate=(sys.executable, "-c", code))
    for newest, runs in (("42", 1), ("42", 1), ("43", 2)):
        (short_dir / "notes").write_text("".join(f"{line}\n" for line in notes(short_dir) if line == "migrating"))
        supervisor = Supervisor(replace(base, database=short_dir / "db", newest_migration=newest), say=said.append)
        task = asyncio.create_task(supervisor.run())
        await until(lambda: "bot begins" in notes(short_dir), 90)
        supervisor.stop()
        await task
        assert notes(short_dir).count("migrating") == runs
        assert not (short_dir / "db.restoring").exists()
    assert said.index("starting PostgreSQL") == 1 + next(n for n, line in enumerate(said) if "undid a restore" in line)


HOST = """
import asyncio, json, sys
from pathlib import Path
from app.supervisor.output import say
from app.supervisor.child_process import Program
from app.supervisor.supervisor import ProcessPlan, Supervisor
directory, command, environment = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
programs = (Program("bot", tuple(json.loads(command))),)
plan = ProcessPlan(directory, directory, "http://localhost:1", programs, environment)
asyncio.run(Supervisor(plan, say=say).run())
"""


class Host(Protocol):
    """A starter of a supervisor with one program; its output goes to ours, or to `stdout`."""

    def __call__(self, program: Program, /, *, stdout: int | None = None) -> subprocess.Popen[bytes]: ...


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A starter of a supervisor in its own process and process group."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: Program, /, *, stdout: int | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", HOST, str(tmp_path), json.dumps(program.command), json.dumps(marked(tmp_path))]
        started.append(subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=stdout))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    end_survivors(tmp_path, patience=0)


@pytest.mark.parametrize("whom", ["the supervisor", "the session"])
async def test_kill_9_takes_the_children_too(tmp_path: Path, host: Host, whom: str) -> None:
    code = "import os, signal; open('notes', 'w').write(str(os.getpid()) + '\\n'); signal.pause()"
    supervisor = host(child("bot", code))
    await until(lambda: notes(tmp_path))
    pid = int(notes(tmp_path)[0])
    assert os.getsid(pid) == supervisor.pid
    if whom == "the supervisor":
        supervisor.kill()
    else:
        kill_session(supervisor.pid)
    supervisor.wait()
    await until(lambda: not alive(pid))


async def test_ctrl_c_reaches_the_supervisor_alone_and_it_ends_the_others(tmp_path: Path, host: Host) -> None:
    code = (
        f"import signal, sys; signal.signal(2, lambda *_: {NOTE.format(text='interrupted')}); "
        f"signal.signal(15, lambda *_: ({NOTE.format(text='ended')}, sys.exit())); {NOTE.format(text='up')}\n"
        "while True: signal.pause()"
    )
    supervisor = host(child("bot", code))
    await until(lambda: notes(tmp_path))
    os.killpg(supervisor.pid, signal.SIGINT)
    await until(lambda: supervisor.poll() is not None)
    assert notes(tmp_path) == ["up", "ended"]


async def test_it_ends_in_order_when_nobody_reads_its_output_any_more(tmp_path: Path, host: Host) -> None:
    supervisor = host(patient("bot"), stdout=subprocess.PIPE)
    await until(lambda: notes(tmp_path), 60)
    assert supervisor.stdout is not None
    supervisor.stdout.close()
    os.killpg(supervisor.pid, signal.SIGINT)
    await until(lambda: supervisor.poll() is not None, 60)
    assert (supervisor.returncode, notes(tmp_path)) == (0, ["bot begins", "bot ends"])
    assert running(tmp_path) is None


async def test_a_crash_restarts_the_program_when_nobody_reads_the_output_any_more(tmp_path: Path, host: Host) -> None:
    code = (
        f"import os, time; {NOTE.format(text='x')}\n"
        "while not os.path.exists('nobody reads'): time.sleep(0.01)\n"
        "print('crashing', flush=True); raise SystemExit(3)"
    )
    supervisor = host(child("bot", code), stdout=subprocess.PIPE)
    await until(lambda: notes(tmp_path), 60)
    assert supervisor.stdout is not None
    supervisor.stdout.close()
    (tmp_path / "nobody reads").touch()
    await until(lambda: len(notes(tmp_path)) >= 3, 60)


@pytest.mark.parametrize("step", ["say", "end_survivors"])
async def test_a_step_of_the_end_that_fails_keeps_none_of_the_others_from_being_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def say(text: str) -> None:
        if (step, text) == ("say", "stopping"):
            raise OSError("no output")

    def end(directory: Path, patience: float = 0.0) -> int:
        # The start makes this call without patience; only the call at the end has to fail.
        if step == "end_survivors" and patience:
            raise OSError("no processes")
        return 0

    monkeypatch.setattr(supervisor_module, "end_survivors", end)
    supervisor = Supervisor(plan(tmp_path, patient("sandbox", free_port()), patient("bot")), say=say)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: "bot begins" in notes(tmp_path))
    supervisor.stop()
    with pytest.raises(OSError, match="no "):
        await task
    assert notes(tmp_path) == ["sandbox begins", "bot begins", "bot ends", "sandbox ends"]
    assert running(tmp_path) is None


async def test_a_program_that_cannot_run_here_says_so_once(tmp_path: Path, said: list[str]) -> None:
    code = f"{NOTE.format(text='x')}; raise SystemExit(3)"
    hopeless = replace(child("sandbox", code, free_port()), hopeless_code=3)
    supervisor = Supervisor(plan(tmp_path, hopeless, patient("bot")), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: any("cannot run here" in line for line in said))
    await until(lambda: "bot begins" in notes(tmp_path))
    supervisor.stop()
    await task
    assert notes(tmp_path).count("x") == 1
    assert [line for line in said if "sandbox" in line] == [
        "starting sandbox", "sandbox cannot run here and is not started again; the reason is above"
    ]  # fmt: skip


async def test_what_survives_a_killed_supervisor_is_ended_by_the_next_start(
    tmp_path: Path, host: Host, said: list[str]
) -> None:
    deaf = (
        "import os, signal; signal.signal(15, signal.SIG_IGN); "
        "open('notes', 'w').write(f'{os.getpid()}\\n'); signal.pause()"
    )
    supervisor = host(child("bot", deaf))
    await until(lambda: notes(tmp_path))
    pid = int(notes(tmp_path)[0])
    supervisor.kill()
    supervisor.wait()
    assert alive(pid)
    assert end_survivors(tmp_path, patience=0.1) == 1
    assert not alive(pid)


def test_a_short_look_at_the_lock_does_not_refuse_a_start(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.take(Running(1, "http://localhost:1"))
    assert running(tmp_path) == Running(1, "http://localhost:1")
    lock.release()
    assert running(tmp_path) is None
    assert running(tmp_path / "nowhere") is None


def alive(pid: int) -> bool:
    """Return whether the process runs (one that is dead but not yet waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
