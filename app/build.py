"""Builds the screens if they are stale: `python -m app.build`, or `ensure_built` before the web process starts.

An image or a wheel cannot build them: there the built screens are only compared with the settings.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.postgres import private_files
from app.supervisor.single_instance import running
from locales.text_marks import WHILE_BUILDING
from settings import ROOT, SECRET_SETTINGS, chains_file, settings, version

STAMP = ROOT / ".web" / "holdfast.stamp"
INDEX = ROOT / ".web" / "build" / "client" / "index.html"
KEPT = ROOT / ".web" / "names.json"
"""The settings in screens that cannot be built here. The file exists only where the screens are installed."""
PACKAGES = ROOT / "reflex.lock" / "package.json"
LOCK = ROOT / "data" / "build.lock"
LOG = ROOT / "data" / "build.log"
SOURCES = (
    "components", "state", "services", "locales", "gateways/chains", "assets", "reflex.lock/package-lock.json",
    "app/app.py", "app/pages.py", "app/build.py", "rxconfig.py", "setting_checks.py", "settings.py",
    "requirements.txt", ".npmrc",
)  # fmt: skip
BAKED_SETTINGS = (
    "product_name", "brand", "brand_year", "sandbox", "support_invite", "contact_address", "hosting_dashboard",
    "staging_url", "operator_pages", "log_days",
)  # fmt: skip
"""Settings whose values are written into the pages at build time."""
_SAY_EVERY = 5.0
_NO_SECRET = "not-needed-to-build-the-screens-at-all"
_UNNEEDED = re.compile(r"DATABASE_URL|REDIS_URL|RPC_\w+")
"""Settings whose URLs contain a password or a key."""

Say = Callable[[str], None]


class BuildFailed(Exception):
    """Raised when the screens could not be built; the text has the end of the builder's output."""


def ensure_built(say: Say = print) -> bool:
    """Build the screens if they are stale; return whether anything was built. Raises BuildFailed.

    If several processes start at once, one builds and the others wait for it. Installed screens that were built with
    other settings raise BuildFailed too, and so do stale ones while a product on the same data serves them.
    """
    if KEPT.exists():
        _compare(json.loads(KEPT.read_text()))
        return False
    with _alone(say):
        wanted = fingerprint()
        if STAMP.exists() and INDEX.exists() and STAMP.read_text() == _stamp(wanted):
            return False
        _refuse_beside_a_product()
        STAMP.unlink(missing_ok=True)
        with _unsettled(PACKAGES):
            _build(say)
        if not INDEX.exists():
            raise BuildFailed(f"The builder made no {INDEX.relative_to(ROOT)}; its output is in {LOG}.")
        STAMP.write_text(_stamp(wanted))
        return True


def _refuse_beside_a_product() -> None:
    """Raise BuildFailed if a product serves the screens, whose open pages would miss their parts after a build."""
    try:
        found = running((ROOT / settings().data_dir).resolve())
    except OSError:  # of another account, or on a disk that only reads: a build needs no data
        return
    # An update and a restore have the lock too, and serve nothing.
    if found is not None and found.has_web and "://" in found.url:
        raise BuildFailed(
            f"The screens have to be built again, and Holdfast serves them at {found.url} (process {found.pid}). "
            "Stop it first."
        )


def keep_names(target: Path) -> None:
    """Write the settings that the screens contain beside the copy of the screens below `target`."""
    (target / KEPT.relative_to(ROOT)).write_text(json.dumps(_names(), indent=2) + "\n")


def _names() -> dict[str, str]:
    """Return the settings that are written into the screens, by their names in the environment."""
    added = chains_file()
    chains = hashlib.sha256(added.read_bytes()).hexdigest() if added and added.is_file() else ""
    return {name.upper(): str(getattr(settings(), name)) for name in BAKED_SETTINGS} | {"CHAINS_FILE": chains}


def _compare(built: dict[str, str]) -> None:
    wanted = _names()
    differ = sorted(name for name in wanted if built.get(name) != wanted[name])
    if differ:
        raise BuildFailed(
            f"The screens were built with other values of {', '.join(differ)}, and cannot be built again here. "
            "With the same .env, `docker compose build` makes an image with yours, `make wheel` a wheel."
        )


def _stamp(wanted: str) -> str:
    """Return the hashes of the sources and of the built page: hot reload builds something else into the same place."""
    return f"{wanted} {hashlib.sha256(INDEX.read_bytes()).hexdigest()}"


def fingerprint() -> str:
    """Return a hash of everything that the built screens depend on."""
    digest = hashlib.sha256(json.dumps([version(), _names()]).encode())
    for file in _files():
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for name in SOURCES:
        path = ROOT / name
        if path.is_file():
            yield path
        else:
            inside = sorted(path.rglob("*"))
            yield from (one for one in inside if one.is_file() and "__pycache__" not in one.parts)


@contextmanager
def _alone(say: Say) -> Iterator[None]:
    private_files.directory(LOCK.parent)
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Somebody else is building the screens; waiting for them.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _unsettled(path: Path) -> Iterator[None]:
    """Restore a JSON file if the block only wrote the same content in another order, as npm does."""
    before = path.read_text()
    try:
        yield
    finally:  # npm has written it even if the build was stopped
        after = path.read_text()
        if after != before and json.loads(after) == json.loads(before):
            path.write_text(before)


def _build(say: Say) -> None:
    first = not (ROOT / ".web" / "node_modules").exists()
    say("Building the screens" + (" (the first time fetches their parts from npm: about a minute)." if first else "."))
    began = said = time.monotonic()
    argv = [sys.executable, "-m", "reflex", "export", "--frontend-only", "--no-zip"]
    with open(LOG, "wb", opener=private_files.opener) as log:
        builder = subprocess.Popen(argv, cwd=ROOT, env=_environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            while builder.poll() is None:
                time.sleep(0.1)
                if time.monotonic() - said >= _SAY_EVERY:
                    said = time.monotonic()
                    say(f"Building the screens: {said - began:.0f} s. {_step()}")
        finally:
            if builder.poll() is None:
                builder.terminate()
                builder.wait()
    if builder.returncode != 0:
        raise BuildFailed(f"The screens could not be built:\n{LOG.read_text(errors='replace')[-4000:]}")
    say(f"The screens are built ({time.monotonic() - began:.0f} s).")


def _step() -> str:
    """Return the builder's last progress line."""
    steps = re.findall(r"(Installing|Compiling|Creating) ?([A-Za-z ]*)", LOG.read_text(errors="replace"))
    return " ".join(steps[-1]).strip() if steps else "starting"


def _environment() -> dict[str, str]:
    """Return an environment with the venv's node and npm first and npm's own registry (Reflex would try two)."""
    environment = {name: value for name, value in os.environ.items() if not _UNNEEDED.fullmatch(name)}
    # The builder needs none of the secrets, so it and the packages it runs do not get them.
    environment |= {name: _NO_SECRET for name in SECRET_SETTINGS if environment.get(name)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment |= {"REFLEX_USE_NPM": "1", "NO_COLOR": "1", "COLUMNS": "120", WHILE_BUILDING: "1"}
    if "NPM_CONFIG_REGISTRY" not in environment:
        asked = subprocess.run(
            ["npm", "config", "get", "registry"],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if asked.returncode == 0 and asked.stdout.strip().startswith("http"):
            environment["NPM_CONFIG_REGISTRY"] = asked.stdout.strip()
    return environment


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep-names"]:
        keep_names(Path(sys.argv[2]))
        sys.exit()
    try:
        if not ensure_built():
            print("The screens are up to date.")
    except BuildFailed as fault:
        raise SystemExit(str(fault)) from None
