"""Gets the peers: other libraries, pinned, each in an environment of its own below data/bench.

`python -m benchmarks.support.install_peers` does nothing for a peer that is installed already. It names and skips
one that cannot be installed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from benchmarks.support.nft_chain import ROOT

PEERS = ROOT / "data" / "bench"
PINS = Path(__file__).resolve().parents[1] / "peers"
PYTHON_PEERS = ("multicall", "discord_py")

Install = Callable[[Path, Path], None]
"""Fills a folder with the packages in a file of pins."""


def main() -> None:
    """Install all peers."""
    PEERS.mkdir(parents=True, exist_ok=True)
    for name in PYTHON_PEERS:
        get(name, PINS / f"{name}.txt", python_peer)
    get("npm", PINS / "npm" / "package-lock.json", npm_peers)


def python_of(name: str) -> str:
    """Return the interpreter of a peer from PyPI."""
    return str(PEERS / name / "bin" / "python")


def get(name: str, pins: Path, install: Install) -> None:
    """Install a peer unless exactly these pins are installed, at this place and for this Python."""
    home = PEERS / name
    stamp, wanted = (
        home / ".installed",
        hashlib.sha256(pins.read_bytes() + f"{home} {sys.version}".encode()).hexdigest(),
    )
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"Getting {name} ...", file=sys.stderr, flush=True)
    try:
        install(home, pins)
    except (OSError, subprocess.CalledProcessError) as fault:
        print(f"{name} is left out: {fault}", file=sys.stderr)
        return
    stamp.write_text(wanted)


def python_peer(home: Path, pins: Path) -> None:
    """Make an environment with exactly these packages."""
    venv.create(home, clear=True, with_pip=False)
    # With the pip of our own environment: a pip in each would take longer than everything that it installs.
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "-qq", "--no-deps"]
    subprocess.run([*pip, "--disable-pip-version-check", "-r", str(pins)], check=True, stdout=sys.stderr)


def npm_peers(home: Path, pins: Path) -> None:
    """Install the packages of the lock file with the npm of our own environment."""
    home.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(pins.parent / name, home / name)
    programs = ROOT / ".venv" / "bin"
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    subprocess.run(
        [str(programs / "npm"), "ci"], cwd=home, env={**os.environ, "PATH": path}, check=True, stdout=sys.stderr
    )


if __name__ == "__main__":
    main()
