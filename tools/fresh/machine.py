"""Run both commands of the README on minimal Debian machines in chroots, and time every step: `make fresh`.

It needs root, `debootstrap` and a network. The committed tree is cloned into each machine. Settings of apt, pip and
npm, the environment and the certificates are copied from this machine, so that packages have the same sources.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = {"12": "bookworm", "13": "trixie", "sid": "sid"}
# The releases that are tried unless others are named; sid, Debian's unstable release, has the newest Python.
STABLE = ("12", "13")
# What the README asks for, and the certificates that git and pip need.
PACKAGES = ("git", "make", "python3", "python3-venv", "ca-certificates")
CLONE = Path("/srv/holdfast")  # inside the chroot
START_SECONDS = 900.0
STOP_SECONDS = 60.0
STEP = re.compile(r"^\[\d+/\d+\] ([^:.]+): (.*?)(?: \(([\d.]+) s\))?$")
# Output that no start or stop may contain.
UNCLEAN = re.compile(r"Traceback|[Kk]illing|panicked|Unclosed|Unexpected exit")
TESTS_DONE = re.compile(r"=+ (.*\bin [\d.]+s.*?) =+$")
# Variables for the sources of packages and certificates.
CARRIED = re.compile(r"(?i)(pip|uv|npm_config)_.*|(https?|no|all)_proxy|.*(cert|_ca_|cainfo).*|lang|lc_all|term")
NETWORK = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/resolv.conf"), Path("/etc/hosts"))
PIP_FILES = (Path("/etc/pip.conf"), Path("~/.config/pip/pip.conf"), Path("~/.pip/pip.conf"))
LOCAL_PATH = re.compile(r"(?:(?<=file://)|(?<![\w/.:]))/[\w./-]+")


class FreshFailed(Exception):
    """Raised when a machine could not be made or a command failed on it; the text says which and why."""


@dataclass
class Machine:
    """A minimal Debian in a directory; `number` is its release, as in "12" or "sid"."""

    number: str
    root: Path
    shared: tuple[Path, ...]
    environment: Mapping[str, str]
    log: Path
    steps: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])

    def argv(self, *command: str) -> list[str]:
        """Return the command line for the chroot, with its own mounts and processes, so that none outlives it.

        Run it with the machine's environment: arguments can be read by every account.
        """
        mounts = [
            f"mount -t proc proc {self.root}/proc",
            f"mount -t sysfs -o ro sys {self.root}/sys",
            f"mount --rbind /dev {self.root}/dev",
            *(f"mount --bind -o ro {path} {self.root}{path}" for path in self.shared),
        ]
        script = " && ".join([*mounts, f'exec chroot {self.root} "$@"'])
        return [
            "unshare", "--mount", "--pid", "--fork", "--kill-child",
            "sh", "-ec", script, "sh", "sh", "-c", f'cd {CLONE} && "$@"; exit $?', "sh", *command,
        ]  # fmt: skip

    def note(self, step: str, result: str, seconds: float) -> None:
        """Add a line to the table, and print it."""
        self.steps.append((step, result, seconds))
        print(f"Debian {self.number}: {step}: {result} ({seconds:.1f} s)", flush=True)

    def read_steps(self, title: str, said: str) -> None:
        """Note the steps of set-up in the output of `make`."""
        for line in said.splitlines():
            if (found := STEP.match(line)) and found[2] != "begin":
                self.note(f"{title}: {found[1]}", found[2], float(found[3] or 0))


def main() -> int:
    """Return 0 if both commands work on every machine, 1 with a printed sentence if not."""
    parser = argparse.ArgumentParser(prog="make fresh", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--releases", nargs="+", default=list(STABLE), choices=list(RELEASES), metavar="NUMBER")
    parser.add_argument("--without-tests", action="store_true", help="make run only")
    parser.add_argument(
        "--tests", type=str.split, default=[], help='arguments of make test, as in --tests="-n 2 tests/app"'
    )
    parser.add_argument("--keep", action="store_true", help="keep the machines")
    parser.add_argument("--where", type=Path, help="the directory to make them in, instead of a temporary one")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("make fresh needs root: it makes machines with debootstrap and chroot.")
        return 1
    if not shutil.which("debootstrap"):
        print("make fresh needs debootstrap: apt-get install debootstrap")
        return 1
    home = given.where or Path(tempfile.mkdtemp(prefix="holdfast-fresh-"))
    machines: list[Machine] = []
    try:
        for number in given.releases:
            machine = make(number, home)
            machines.append(machine)
            try_out(machine, tests=None if given.without_tests else given.tests)
            if not given.keep:
                shutil.rmtree(machine.root)
    except FreshFailed as failed:
        print(failed)
        return 1
    finally:
        if not given.keep:
            for number in given.releases:
                shutil.rmtree(home / f"debian-{number}", ignore_errors=True)
    print(f"\n{table(machines)}\n\nWhat the commands said is in {home}/*.log.")
    return 0


def on_each(releases: Sequence[str], where: Path | None, prefix: str, try_out: Callable[[str, Path], Machine]) -> int:
    """Try something on a machine of each release and print the table; return 0, or 1 with the failure printed.

    Without `where`, the machines are made in a temporary directory and deleted, and only their logs stay.
    """
    home = where or Path(tempfile.mkdtemp(prefix=prefix))
    machines: list[Machine] = []
    try:
        for number in releases:
            machines.append(try_out(number, home))
    except FreshFailed as failed:
        print(failed)
        return 1
    finally:
        if where is None:
            for path in home.glob("*/"):
                shutil.rmtree(path, ignore_errors=True)
    print(f"\n{table(machines)}\n\nWhat the steps said is in {home}/*.log.")
    return 0


def make(number: str, home: Path) -> Machine:
    """Make a minimal Debian with the README's requirements and a clone of the committed tree. Raises FreshFailed."""
    root = home / f"debian-{number}"
    home.mkdir(parents=True, exist_ok=True)
    files, directories, environment = carried(root)
    machine = Machine(number, root, directories, environment, home / f"debian-{number}.log")
    machine.log.unlink(missing_ok=True)
    begun = time.monotonic()
    if not (root / "usr" / "bin" / "git").exists():
        debootstrap(machine, root, PACKAGES)
    machine.note("the machine (debootstrap)", "made", time.monotonic() - begun)
    for path in directories:
        (root / path.relative_to("/")).mkdir(parents=True, exist_ok=True)
    for path in files:
        there = root / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.unlink(missing_ok=True)
        shutil.copy(path, there)
    asked = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False)
    (root / "etc" / "apt" / "apt.conf.d" / "99-as-the-host").write_text(asked.stdout)
    clone = root / CLONE.relative_to("/")
    if clone.exists():
        shutil.rmtree(clone)
    begun = time.monotonic()
    run(machine, ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(clone)])
    machine.note("git clone", "done", time.monotonic() - begun)
    return machine


def debootstrap(machine: Machine, root: Path, packages: Sequence[str]) -> None:
    """Make a minimal Debian of the machine's release in a directory. Raises FreshFailed."""
    mirror = [found] if (found := debian_mirror()) else []
    include = f"--include={','.join(packages)}"
    run(machine, ["debootstrap", "--variant=minbase", include, RELEASES[machine.number], str(root), *mirror])


def carried(root: Path) -> tuple[tuple[Path, ...], tuple[Path, ...], dict[str, str]]:
    """Return what to copy from this machine: files, directories of packages to mount, and the environment."""
    files = [*NETWORK, *PIP_FILES, Path("~/.npmrc")]
    environment = {name: value for name, value in os.environ.items() if CARRIED.fullmatch(name)}
    asked = ["npm", "config", "get", "globalconfig"]
    npm = subprocess.run(asked, capture_output=True, text=True, check=False) if shutil.which("npm") else None
    for place in (npm.stdout.strip() if npm else "", "/usr/etc/npmrc", "/etc/npmrc"):
        if place and Path(place).is_file():
            # npm looks for this file beside its own program, which is elsewhere in the chroot.
            environment.setdefault("NPM_CONFIG_GLOBALCONFIG", place)
            files.append(Path(place))
    files = [path for path in (path.expanduser() for path in files) if path.is_file()]
    texts = [*(path.read_text() for path in files if path.suffix == ".conf"), *environment.values()]
    named = {Path(found) for text in texts for found in LOCAL_PATH.findall(text)}
    # A package index is named by its list; the files it links to are beside it.
    places = {path.parent if path.name == "simple" else path for path in named}
    directories = {path for path in places if path.is_dir() and Path("/etc") not in path.parents}
    own = {"HOME": str(Path.home()), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return tuple(files), tuple(sorted(path for path in directories if not root.is_relative_to(path))), environment | own


def debian_mirror() -> str | None:
    """Return this machine's source of Debian packages; None on another system."""
    asked = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    found = [line.split("|")[2] for line in told.splitlines() if line.startswith("Debian|Debian|")]
    return found[0] if found else None


def try_out(machine: Machine, tests: list[str] | None) -> None:
    """Run `make run` twice, then `make test` with these arguments unless they are None. Raises FreshFailed."""
    for title in ("make run", "make run again"):
        port, sandbox_port = free_port(), free_port()
        command = ["env", f"PORT={port}", f"SANDBOX_PORT={sandbox_port}", "make", "--no-print-directory", "run"]
        start_and_stop(machine, title, machine.argv(*command), port, signal.SIGINT)
    if tests is None:
        return
    arguments = [f"ARGS={' '.join(tests)}"] if tests else []
    said, seconds = run(machine, machine.argv("make", "--no-print-directory", "test", *arguments))
    machine.read_steps("make test", said)
    verdict = TESTS_DONE.findall(said)
    machine.note("make test: all of it", verdict[-1] if verdict else "passed", seconds)


def start_and_stop(
    machine: Machine,
    title: str,
    argv: Sequence[str],
    port: int,
    ends: signal.Signals,
    probe: Callable[[], bool] | None = None,
) -> int:
    """Start the product until it is healthy, and for the probe too if there is one, then stop it by this signal.

    Return its exit code. Raises FreshFailed.
    """
    begun = time.monotonic()
    with machine.log.open("a") as log:
        from_here = log.tell()
        process = subprocess.Popen(
            argv, env=dict(machine.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            while not (healthy := answers(port)) and process.poll() is None:
                if time.monotonic() - begun > START_SECONDS:
                    break
                time.sleep(0.1)
            took = time.monotonic() - begun
            healthy = healthy and (probe is None or probe())
            with suppress(ProcessLookupError):  # it may have ended already
                os.killpg(process.pid, ends)
            try:
                code = process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise FreshFailed(f"Debian {machine.number}: {title} did not stop; see {machine.log}.") from None
        finally:
            process.kill()  # which ends everything in the chroot
            process.wait()
    said = machine.log.read_bytes()[from_here:].decode(errors="replace")
    machine.read_steps(title, said)
    if not healthy:
        raise FreshFailed(f"{_tail(said)}\nDebian {machine.number}: {title} answered no /health; see {machine.log}.")
    machine.note(f"{title}: until /health answers", "healthy", took)
    if fault := UNCLEAN.search(said):
        raise FreshFailed(f"Debian {machine.number}: {title} said {fault[0]!r}; see {machine.log}.")
    return code


def answers(port: int) -> bool:
    """Return whether /health on this port answers 200."""
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as refused:
        refused.close()
    except OSError:
        pass
    return False


def free_port() -> int:
    """Return a free port: the machines share this one's network."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(machine: Machine, argv: list[str]) -> tuple[str, float]:
    """Run a program with its output in the machine's log; return output and seconds. Raises FreshFailed."""
    begun = time.monotonic()
    with machine.log.open("a") as log:
        from_here = log.tell()
        done = subprocess.run(
            argv, env=dict(machine.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
    said = machine.log.read_bytes()[from_here:].decode(errors="replace")
    if done.returncode != 0:
        raise FreshFailed(f"{_tail(said)}\nDebian {machine.number}: {argv[0]} … failed; see {machine.log}.")
    return said, time.monotonic() - begun


def _tail(said: str) -> str:
    return "\n".join(f"    {line}" for line in said.splitlines()[-25:])


def table(machines: list[Machine]) -> str:
    """Return the steps as a Markdown table with a column for each machine."""
    names = list(dict.fromkeys(step for machine in machines for step, _, _ in machine.steps))
    lines = [
        "| | " + " | ".join(f"Debian {machine.number}" for machine in machines) + " |",
        "|---|" + "---|" * len(machines),
    ]
    for name in names:
        took = [next((f"{s:.1f} s" for step, _, s in machine.steps if step == name), "") for machine in machines]
        lines.append(f"| {name} | " + " | ".join(took) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
