"""A killed test run leaves none of its directories, and none of the processes that work in them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from app.postgres.process import is_alive
from app.supervisor.single_instance import MARK
from tests.support.plugins.temporary_dirs import ROOT, temporary_dir

WORKER = (sys.executable, "-c", "import signal; signal.pause()")
# A run in the background of a shell is started with SIGQUIT ignored, and PostgreSQL handles it all the same.
SERVER = (
    sys.executable, "-c",
    "import signal; signal.signal(signal.SIGQUIT, signal.SIG_DFL); print('ready', flush=True); signal.pause()",
)  # fmt: skip
RUN = f"""
import os, subprocess
from tests.support.plugins.temporary_dirs import temporary_dir
with temporary_dir():
    pass
with temporary_dir() as directory:
    worker = subprocess.Popen({WORKER}, env=os.environ | {{"{MARK}": str(directory)}}, stdout=subprocess.DEVNULL)
    print(directory, worker.pid, flush=True)
    input()
"""


def test_a_killed_run_leaves_no_directory_and_no_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        path, worker = run.stdout.readline().split()
        directory = Path(path)
        assert directory.is_dir()
        assert is_alive(int(worker))
        run.send_signal(signal.SIGKILL)
        # The watchdog has the same output, which ends with it.
        assert run.stdout.read() == ""
    assert not directory.exists()
    assert not is_alive(int(worker))


def test_a_test_that_ends_leaves_no_directory_no_process_and_no_database() -> None:
    with temporary_dir() as directory:
        worker = subprocess.Popen(WORKER, env=os.environ | {MARK: str(directory)})
        server = subprocess.Popen(SERVER, stdout=subprocess.PIPE)
        assert server.stdout is not None
        with server.stdout:
            assert server.stdout.readline() == b"ready\n"
        (directory / "db" / "cluster").mkdir(parents=True)
        (directory / "db" / "cluster" / "postmaster.pid").write_text(f"{server.pid}\n")
    assert not directory.exists()
    assert not is_alive(worker.pid)
    assert (worker.wait(), server.wait(timeout=30)) == (-signal.SIGTERM, -signal.SIGQUIT)
