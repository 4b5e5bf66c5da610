"""Install the newest wheel on a minimal Debian, and start it as an ordinary user: `make fresh-wheel`.

Run it after `make wheel`. It prints how long pip takes, and how long `holdfast run` takes until /health answers. Then
it updates the wheel to one whose web fails, which is undone, and to one that works. The sandbox's local Discord and
marketplaces run outside of the machine. Needs root, `debootstrap` and a network.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tools.fresh.image import ACCOUNT, world
from tools.fresh.machine import (
    PIP_FILES,
    RELEASES,
    STABLE,
    FreshFailed,
    Machine,
    free_port,
    make,
    on_each,
    run,
    start_and_stop,
)
from tools.prepare import LIVE_BUILD
from tools.wheel import MADE, build, stage

HOME = Path("/srv/ada")  # inside the chroot


def main() -> int:
    """Return 0 if the wheel starts on every release, 1 with a printed sentence if not."""
    parser = argparse.ArgumentParser(prog="make fresh-wheel", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--releases", nargs="+", default=list(STABLE), choices=list(RELEASES), metavar="NUMBER")
    parser.add_argument("--where", type=Path, help="the directory to make the machines in, which are then kept")
    given = parser.parse_args()
    wheels = sorted(MADE.glob("holdfast-*.whl"), key=lambda path: path.stat().st_mtime)
    if os.geteuid() != 0 or not shutil.which("debootstrap") or not wheels:
        print("make fresh-wheel needs root, debootstrap, and a wheel that `make wheel` has made.")
        return 1
    return on_each(given.releases, given.where, "holdfast-wheel-", partial(try_out, wheel=wheels[-1]))


def try_out(number: str, home: Path, wheel: Path) -> Machine:
    """Install and start the wheel on one machine, twice, and return the machine with all steps. Raises FreshFailed."""
    machine = make(number, home)
    inside = machine.root / HOME.relative_to("/")
    if not inside.exists():
        account = ["useradd", "--uid", str(ACCOUNT), "--create-home", "--home-dir", str(HOME), "ada"]
        run(machine, ["chroot", str(machine.root), *account])
    for path in (one.expanduser() for one in PIP_FILES):
        if path.is_file():  # an ordinary user reads only /etc/pip.conf
            shutil.copy(path, machine.root / "etc" / "pip.conf")
    shutil.rmtree(inside / "data", ignore_errors=True)
    shutil.copy(wheel, inside)
    _, seconds = run(machine, as_ada(machine, {}, "python3 -m venv --clear holdfast"))
    machine.note("python3 -m venv", "made", seconds)
    _, seconds = run(machine, as_ada(machine, {}, f"holdfast/bin/pip install --quiet --no-input {wheel.name}"))
    machine.note("pip install", "installed", seconds)
    with world(home) as providers:
        for title in ("holdfast run", "holdfast run again"):
            port = free_port()
            own = {"PORT": str(port), "PUBLIC_URL": f"http://localhost:{port}", "SECRET_KEY": "of-this-run-only-" * 3}
            argv = as_ada(machine, {**providers, **own}, "exec holdfast/bin/holdfast run")
            before = _processor_seconds()
            start_and_stop(machine, title, argv, port, signal.SIGINT)
            machine.note(f"{title}: processor time with the stop", "used", _processor_seconds() - before)
        later = {**providers, "SECRET_KEY": "of-this-run-only-" * 3}
        for version, works in (("998.0.0", False), ("999.0.0", True)):
            update(machine, inside, version, works=works, settings=later)
    return machine


def update(machine: Machine, inside: Path, version: str, *, works: bool, settings: Mapping[str, str]) -> None:
    """Update the installed wheel to a version made for this, with a web that fails unless it works."""
    with tempfile.TemporaryDirectory(prefix="holdfast-wheel-") as directory:
        _stage_for_live(Path(directory))
        project = Path(directory) / "pyproject.toml"
        project.write_text(re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', project.read_text()))
        if not works:
            app = Path(directory) / "holdfast" / "product" / "app" / "app.py"
            app.write_text('raise RuntimeError("this web does not start")\n')
        build(Path(directory), inside)
    before = _installed(machine)
    file = f"holdfast-{version}-py3-none-any.whl"
    command = f"if holdfast/bin/holdfast update {file}; then echo ended well; else echo ended badly; fi"
    said, seconds = run(machine, as_ada(machine, settings, command))
    if (f"ended {'well' if works else 'badly'}" not in said) or _installed(machine) != (version if works else before):
        raise FreshFailed(
            f"Debian {machine.number}: the update to {version} left {_installed(machine)}; see {machine.log}."
        )
    machine.note("holdfast update" if works else "holdfast update to a web that fails", _installed(machine), seconds)


def _stage_for_live(directory: Path) -> None:
    """Stage a wheel as `make wheel` does: the names on its screens are those of a live start."""
    before = dict(os.environ)
    os.environ.update(LIVE_BUILD)
    try:
        stage(directory)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _installed(machine: Machine) -> str:
    """Return the version that pip says is installed."""
    said, _ = run(machine, as_ada(machine, {}, "holdfast/bin/pip list --disable-pip-version-check"))
    return next(line.split()[1] for line in said.splitlines() if line.split()[:1] == ["holdfast"])


def as_ada(machine: Machine, settings: Mapping[str, str], command: str) -> list[str]:
    """Return a shell command as run in the machine by an ordinary user in her home."""
    own = [f"HOME={HOME}", "PATH=/usr/bin:/bin", *(f"{name}={value}" for name, value in settings.items())]
    identity = ["setpriv", "--reuid", str(ACCOUNT), "--regid", str(ACCOUNT), "--clear-groups", "--no-new-privs"]
    return machine.argv(*identity, "env", *own, "sh", "-c", f"cd {HOME} && {command}")


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
