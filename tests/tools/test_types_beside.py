"""Type errors found by the check that runs beside the tests fail the test run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

RUN = """
import sys
from pathlib import Path
from tools import steps
steps.VENV, steps.PYTHON = Path(sys.argv[1]), Path(sys.executable)
with steps.types_beside() as typed:
    steps.hand_over(typed)
    steps.become("-m", "pytest", "-q", "-n", sys.argv[2], "tests/house/test_commands.py")
"""


@pytest.mark.parametrize(("processes", "fault"), [("0", ""), ("1", "x.py:1 is not an int")])
def test_a_fault_of_types_fails_the_run_beside_it(tmp_path: Path, processes: str, fault: str) -> None:
    checker = tmp_path / "bin" / "basedpyright"
    checker.parent.mkdir()
    checker.write_text(f"#!/bin/sh\necho '{fault}'\nexit {int(bool(fault))}\n")
    checker.chmod(0o755)
    argv = [sys.executable, "-c", RUN, str(tmp_path), processes]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == int(bool(fault)), done.stdout + done.stderr
    assert " passed" in done.stdout
    assert (fault in done.stdout, "1 failed" in done.stdout) == (True, bool(fault))
