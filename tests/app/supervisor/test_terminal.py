"""A terminal that is closed, or a lost connection to the machine, stops everything in order, as Ctrl+C does."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.postgres.server import Postgres
from app.supervisor.child_process import Program
from app.supervisor.single_instance import end_survivors, running
from app.supervisor.supervisor import Supervisor
from tests.app.supervisor.test_supervisor import NOTE, ROOT, child, marked, notes, patient, plan, until
from tests.conftest import free_port

HOST = """
import asyncio, json, signal, sys
from pathlib import Path
from app.supervisor.output import say
from app.supervisor.child_process import Program
from app.supervisor.supervisor import ProcessPlan, Supervisor
directory, command, environment = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[4] == "nohup" else signal.SIG_DFL)
programs = (Program("bot", tuple(json.loads(command))),)
plan = ProcessPlan(
    directory, directory, "http://localhost:1", programs, environment, directory / "db", tuple(json.loads(sys.argv[5]))
)
asyncio.run(Supervisor(plan, say=say).run())
"""


@contextmanager
def in_a_terminal(
    directory: Path, how: str = "", migrate: Program | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a supervisor with a database in a terminal of its own; yield its process, and the terminal's other end."""
    ours, theirs = os.openpty()
    bot, migration = json.dumps(patient("bot").command), json.dumps(migrate.command if migrate else ())
    supervisor = subprocess.Popen(
        [sys.executable, "-c", HOST, str(directory), bot, json.dumps(marked(directory)), how, migration], cwd=ROOT,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    try:
        yield supervisor, ours
    finally:
        supervisor.kill()
        supervisor.wait()
        end_survivors(directory, patience=0)
        if Postgres(directory / "db").is_running():
            with Postgres(directory / "db", durable=False, say=lambda _: None):
                pass


def ignores_a_hang_up(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (ignored,) = (line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) & 1 << signal.SIGHUP - 1)


async def test_a_closed_terminal_ends_everything_in_order(short_dir: Path) -> None:
    with in_a_terminal(short_dir) as (supervisor, terminal):
        await until(lambda: notes(short_dir))
        os.close(terminal)
        supervisor.send_signal(signal.SIGHUP)  # a shell sends it too, and the second one must not kill
        await until(lambda: supervisor.poll() is not None)
        assert (supervisor.returncode, notes(short_dir)) == (0, ["bot begins", "bot ends"])
        assert not Postgres(short_dir / "db").is_running()


async def test_ctrl_c_during_the_first_start_is_no_failure(short_dir: Path) -> None:
    with in_a_terminal(short_dir) as (supervisor, terminal):
        await until((short_dir / "db" / "cluster.new" / "global" / "pg_control").exists)
        os.write(terminal, b"\x03")
        await until(lambda: supervisor.poll() is not None)
        assert (supervisor.returncode, notes(short_dir)) == (0, [])
        assert not Postgres(short_dir / "db").is_running()


async def test_ctrl_c_reaches_no_migration(short_dir: Path) -> None:
    """It would print where it was interrupted, as if something had failed."""
    code = (
        f"import signal, sys; signal.signal(2, lambda *_: {NOTE.format(text='interrupted')}); "
        f"signal.signal(15, lambda *_: ({NOTE.format(text='ended')}, sys.exit())); {NOTE.format(text='up')}\n"
        "while True: signal.pause()"
    )
    with in_a_terminal(short_dir, migrate=child("migrate", code)) as (supervisor, terminal):
        await until(lambda: notes(short_dir))
        os.write(terminal, b"\x03")
        await until(lambda: supervisor.poll() is not None)
        assert (supervisor.returncode, notes(short_dir)) == (0, ["up", "ended"])


async def test_what_a_second_ctrl_c_kills_is_not_started_again(tmp_path: Path) -> None:
    """The sandbox is the last to be stopped. It was reported as ended for lack of memory, and began again."""
    # The one that is deaf has a child, which holds its output open: its end takes a second.
    deaf = "import signal, subprocess; signal.signal(15, signal.SIG_IGN); subprocess.Popen(['sleep', '60']); "
    bot = child("bot", f"{deaf}{NOTE.format(text='bot begins')}; signal.pause()")
    said = list[str]()
    supervisor = Supervisor(plan(tmp_path, patient("sandbox", free_port()), bot), say=said.append)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: len(notes(tmp_path)) == 2)
    supervisor.stop()
    await until(lambda: "stopping" in said)
    supervisor.stop()
    await task
    assert notes(tmp_path) == ["sandbox begins", "bot begins"]
    assert said[-1] == "stopping"


async def test_with_nohup_everything_goes_on(short_dir: Path) -> None:
    with in_a_terminal(short_dir, "nohup") as (supervisor, terminal):
        await until(lambda: notes(short_dir))
        os.close(terminal)
        assert ignores_a_hang_up(supervisor.pid)
        assert running(short_dir) is not None
        supervisor.terminate()
        await until(lambda: supervisor.poll() is not None)
        assert (supervisor.returncode, notes(short_dir)) == (0, ["bot begins", "bot ends"])
