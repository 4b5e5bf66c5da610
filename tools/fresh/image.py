"""Run the image's steps without a container engine, and start the result: `make fresh-image`.

One minimal Debian in a chroot runs the scripts of `deploy/image` in the order of `deploy/Dockerfile`. Their result is
copied into a second one that has only Python, and started there as the image's account, without capabilities, on a
read-only tree. The sandbox's local Discord and marketplaces run outside of it. Needs root, `debootstrap`, a
network, and a repository that has run `make run` or `make test` once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Template

from tools.fresh.machine import (
    CLONE,
    RELEASES,
    ROOT,
    FreshFailed,
    Machine,
    debootstrap,
    free_port,
    make,
    on_each,
    run,
    start_and_stop,
)
from tools.steps import PYTHON

OUT = Path("/out")  # inside the first machine
ACCOUNT = 10_001
FORBIDDEN = ("npm", "node", "pip", "cc", "gcc", "make", "git")
"""Programs that the last stage must not contain."""


def main() -> int:
    """Return 0 if the image's content starts on every release, 1 with a printed sentence if not."""
    parser = argparse.ArgumentParser(prog="make fresh-image", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--releases", nargs="+", default=["13"], choices=list(RELEASES), metavar="NUMBER")
    parser.add_argument("--where", type=Path, help="the directory to make the machines in, which are then kept")
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("make fresh-image needs root and debootstrap: it makes machines with debootstrap and chroot.")
        return 1
    return on_each(given.releases, given.where, "holdfast-image-", try_out)


def try_out(number: str, home: Path) -> Machine:
    """Build on one machine, start on another, and return the first one with all steps. Raises FreshFailed."""
    builder = make(number, home / "build")
    if (kept := builder.root / OUT.relative_to("/")).exists():  # from an earlier run with --where
        shutil.rmtree(kept)
    for step in (["packages.sh"], ["screens.sh", str(OUT)]):
        _, seconds = run(builder, builder.argv("sh", f"deploy/image/{step[0]}", *step[1:]))
        builder.note(step[0], "done", seconds)
    last = _last_stage(builder, home / "last" / f"debian-{number}")
    size = sum(path.lstat().st_size for path in (last / "srv").rglob("*") if not path.is_symlink())
    print(f"The last stage adds {size / 2**20:.0f} MiB to Debian and Python.", flush=True)
    with world(home) as providers:
        _start_and_stop(builder, last, providers)
    return builder


def _last_stage(builder: Machine, last: Path) -> Path:
    """Make the machine of the last stage: a minimal Debian with Python, and the copy that `screens.sh` left."""
    begun = time.monotonic()
    last.parent.mkdir(parents=True, exist_ok=True)
    if not (last / "usr" / "bin" / "python3").exists():
        debootstrap(builder, last, ("python3", "ca-certificates"))
    home = last / CLONE.relative_to("/")
    if home.exists():
        shutil.rmtree(home)
    shutil.copytree(builder.root / OUT.relative_to("/"), home, symlinks=True)
    shutil.copy(ROOT / "deploy" / "image" / "account.sh", last / "tmp")
    if not (last / "data").exists():
        run(builder, ["chroot", str(last), "sh", "/tmp/account.sh"])
    for path in (Path("/etc/resolv.conf"), Path("/etc/hosts")):
        shutil.copy(path, last / "etc")
    places = ":".join(str(last / place) for place in ("usr/bin", "bin", "srv/holdfast/.venv/bin"))
    for name in FORBIDDEN:
        if shutil.which(name, path=places):
            raise FreshFailed(f"Debian {builder.number}: the last stage has {name}.")
    builder.note("last stage", "made", time.monotonic() - begun)
    return last


@contextmanager
def world(home: Path) -> Iterator[Mapping[str, str]]:
    """Run the sandbox's Discord and marketplaces; yield the settings with which a live start takes them for real."""
    port = str(free_port())
    own = {"SANDBOX_DATA": str(home / "world"), "SANDBOX_PORT": port, "SANDBOX_WITHOUT": "chains"}
    with (home / "world.log").open("w") as log:
        process = subprocess.Popen(
            [str(PYTHON), "-m", "sandbox"], cwd=ROOT, env={**os.environ, **own},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            filled = Template((ROOT / "sandbox" / "product.env").read_text()).safe_substitute(SANDBOX_PORT=port)
            pairs = [line.split("=", 1) for line in filled.splitlines() if line[:1].isalpha()]
            providers = ("DISCORD_", "OPENSEA_", "MAGICEDEN_")
            yield {name: value.strip('"') for name, value in pairs if name.startswith(providers)}
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _start_and_stop(machine: Machine, last: Path, providers: Mapping[str, str]) -> None:
    """Start the image's command as its account on a read-only tree, ask its health check, and stop it."""
    port = free_port()
    own = {"PORT": str(port), "PUBLIC_URL": f"http://localhost:{port}", "SECRET_KEY": "of-this-one-run-only-" * 2}

    def is_well() -> bool:
        argv = read_only(last, {"PORT": str(port)}, "python", "-m", "app.supervisor.probe")
        with machine.log.open("a") as log:
            return subprocess.run(argv, stdout=log, stderr=log, check=False).returncode == 0

    argv = read_only(last, {**providers, **own}, "python", "-m", "app")
    code = start_and_stop(machine, "the image, read-only", argv, port, signal.SIGTERM, is_well)
    if code != 0:
        raise FreshFailed(f"Debian {machine.number}: the image ended with exit code {code}; see {machine.log}.")


def read_only(root: Path, settings: Mapping[str, str], *command: str) -> list[str]:
    """Return a command as run in a chroot that nobody can write to, as the image's account without capabilities."""
    mounts = [
        f"mount --bind {root} {root}",
        f"mount -t proc proc {root}/proc",
        f"mount --rbind /dev {root}/dev",
        f"mount -t tmpfs -o mode=1777 none {root}/tmp",
        f"mount --bind {root}/data {root}/data",
        f"mount -o remount,ro,bind {root}",
    ]
    image = {"PATH": f"{CLONE}/.venv/bin:/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**image, "DATA_DIR": "/data", **settings}
    script = " && ".join([*mounts, f'exec chroot {root} "$@"'])
    identity = ["--reuid", str(ACCOUNT), "--regid", str(ACCOUNT), "--clear-groups", "--no-new-privs"]
    return [
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script, "sh",
        "setpriv", *identity, "--bounding-set=-all", "--inh-caps=-all",
        "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items()),
        "sh", "-c", f'cd {CLONE} && exec "$@"', "sh", *command,
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
