"""A killed test run leaves none of its directories."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.plugins.temporary_dirs import ROOT

RUN = """
from tests.support.plugins.temporary_dirs import temporary_dir
with temporary_dir():
    pass
with temporary_dir() as directory:
    print(directory, flush=True)
    input()
"""


def test_the_directory_of_a_killed_run_is_removed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        directory = Path(run.stdout.readline().rstrip("\n"))
        assert directory.is_dir()
        run.send_signal(signal.SIGKILL)
        # The watchdog has the same output, which ends with it.
        assert run.stdout.read() == ""
    assert not directory.exists()
