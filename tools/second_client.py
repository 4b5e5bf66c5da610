"""The environment of the tests' second Discord client, separate because its requirements conflict with ours."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

PINS = Path(__file__).resolve().parents[1] / "tests" / "sandbox" / "discord" / "gateway" / "second_client.txt"


def ready_in(tools: Path, python: str) -> Path:
    """Make the environment `second-client` below `tools` with this Python, unless it is up to date.

    Return its Python. Raises CalledProcessError when pip fails.
    """
    home = tools / "second-client"
    interpreter, stamp = home / "bin" / "python", home / ".installed"
    version = subprocess.run([python, "--version"], capture_output=True, check=True).stdout
    wanted = hashlib.sha256(PINS.read_bytes() + version + str(home).encode()).hexdigest()
    tools.mkdir(parents=True, exist_ok=True)
    with (tools / "second-client.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if interpreter.exists() and stamp.exists() and stamp.read_text() == wanted:
            return interpreter
        venv.create(home, clear=True, with_pip=False)
        # With the calling environment's pip: one of its own would cost more than all that it installs.
        pip = [python, "-m", "pip", "--python", str(interpreter), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-compile", "--no-deps", "-r", str(PINS)], env=dict(os.environ), check=True)
        stamp.write_text(wanted)
    return interpreter


if __name__ == "__main__":
    ready_in(Path(sys.argv[1]), sys.executable)
