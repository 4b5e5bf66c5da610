"""Update the product, and go back to the previous version if the new one fails: `make update`, `holdfast update`.

An update backs the database up, keeps what it will change, installs the fetched version, migrates the database and
starts the web once. If any of that fails, or somebody stops it, everything kept is put back. That works on a full disk
too, because what was kept is only renamed. After a power cut a journal says what has to be put back.
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.postgres.account import Say
from app.postgres.process import end_orphans
from app.supervisor.installed import STOP, Checkout, Installation, Journal, UpdateFailed, Wheel, journal, run
from app.supervisor.single_instance import AlreadyRunning, Lock, Running, running
from app.supervisor.system import escape_output, tell, unusable

ROOT = Path(__file__).resolve().parents[2]
SPACE = 2 * 2**30
"""Free bytes needed besides the copies of what is there, for a new version's packages, screens and npm packages."""


@dataclass(frozen=True)
class Data:
    """Where an installation keeps its data: `database` is the embedded database's directory, `url` another database."""

    home: Path
    backup: Path
    database: Path | None
    url: str | None = None


class Update:
    """One update of an installation, from `root` of the product's code."""

    def __init__(self, root: Path, installation: Installation, data: Data, note: Journal, say: Say) -> None:
        self._root = root
        self._installation = installation
        self._data = data
        self._note = note
        self._say = say

    def to(self, wanted: str, restore: Path | None = None) -> bool:
        """Update; with `restore`, also replace the database by that backup. Return whether there was anything to do.

        Raises UpdateFailed, OSError or KeyboardInterrupt; everything is then as it was, unless the journal is open.
        """
        if restore is not None and self._data.url:
            raise UpdateFailed(
                "An update cannot restore the database at DATABASE_URL: restore it first, and leave --restore out."
            )
        now = running(self._data.home)
        if now is not None:
            raise UpdateFailed(
                f"{AlreadyRunning(now if now.pid else None)} Stop it first, and start it again afterwards."
            )
        name = self._installation.fetch(wanted)
        if not name and restore is not None:
            raise UpdateFailed(
                "This version is installed already, and no backup was restored. To replace the database alone: "
                "make restore with FORCE=1, or holdfast restore with --force."
            )
        if not name:
            return False
        self._check_space()
        self._back_up()
        try:
            self._keep(name)
            self._change(restore)
        except BaseException:
            self._say(f"This did not work. Going back to {self._installation.present}")
            finish_or_go_back(self._root, self._installation, self._note)
            raise
        self._note.write({**self._note.read(), "phase": "done"})
        finish_or_go_back(self._root, self._installation, self._note)
        self._say(f"{name} is installed, and the next start runs it. Before it was {self._installation.present}.")
        return True

    def _check_space(self) -> None:
        copies = sum(map(_size, self._installation.copied)) + 2 * _size(self._data.database)
        free = shutil.disk_usage(self._data.home).free
        if free < SPACE + copies:
            raise UpdateFailed(
                f"The disk of {self._data.home} has {free / 2**30:.1f} GiB free, and an update may need "
                f"{(SPACE + copies) / 2**30:.1f} GiB."
            )

    def _back_up(self) -> None:
        if self._data.database is None or (self._data.database / "cluster").exists():
            self._module("app.backup", "make", "--to", str(self._data.backup))

    def _keep(self, name: str) -> None:
        """Copy what is changed in place: the embedded database, and the environment that pip changes.

        The journal prevents a start of the product, and the lock detects a product that runs already.
        """
        lock = Lock(self._data.home)
        try:
            lock.take(Running(os.getpid(), "an update"))
        except AlreadyRunning as fault:
            raise UpdateFailed(f"{fault} Stop it first.") from None
        try:
            self._copy(name)
        finally:
            lock.release()

    def _copy(self, name: str) -> None:
        # A copy of a link would lead to what the update changes, so the directory behind it is copied.
        database = self._data.database.resolve() if self._data.database and self._data.database.exists() else None
        state = {
            "from": self._installation.present,
            "to": name,
            "phase": "keeping",
            "database": str(database or ""),
            "url": self._data.url or "",
            "revision": "",
        }
        if self._data.url:
            state["revision"] = self._revision(self._data.url)
        self._note.write(state)
        for path in (*self._installation.copied, *([database] if database else [])):
            _remove(_kept(path))
            run(["cp", "-a", "--reflink=auto", "--", str(path), str(_kept(path))], cwd=Path("/"))
        # Before the journal says that the copies are whole: after a power cut they replace what has been changed.
        os.sync()
        self._note.write({**state, "phase": "changing"})

    def _change(self, restore: Path | None) -> None:
        self._say("Installing the new version")
        for path in self._installation.moved:
            if path.exists():
                _remove(_kept(path))
                path.rename(_kept(path))
        self._installation.install()
        if restore is not None:
            self._say(f"Restoring {restore}")
            self._module("app.backup", "restore", str(restore), "--force")
        self._module("app.build")  # refuses screens of a wheel that show other names than the settings
        self._note.write({**self._note.read(), "phase": "starting"})
        self._say("Starting it for a moment")
        self._module("app.supervisor.trial")

    def _module(self, *arguments: str) -> None:
        # Earlier versions start modules of this one, so the names of the modules must never change.
        run([str(self._installation.python), "-m", *arguments], cwd=self._root)

    def _revision(self, url: str) -> str:
        """Return the revision of a database that is not embedded, from alembic; an empty one if it has no tables."""
        command = [str(self._installation.python), "-m", "alembic", "current"]
        asked = subprocess.run(
            command,
            cwd=self._root,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode != 0:
            raise UpdateFailed(f"alembic cannot read the database's revision: {(asked.stderr or asked.stdout).strip()}")
        return asked.stdout.split()[0] if asked.stdout.strip() else ""


def finish_or_go_back(root: Path, installation: Installation, note: Journal) -> None:
    """Put back everything that the journal says was changed, or delete the kept copies if nothing has to be put back.

    It may be interrupted and called again. Raises UpdateFailed and then leaves the journal as it is.
    """
    state = note.read()
    if not state:
        return
    database = Path(state["database"]) if state["database"] else None
    changed = [*installation.moved, *installation.copied, *([database] if database else [])]
    if state["phase"] in {"keeping", "done"}:
        for path in changed:
            _remove(_kept(path))
        note.clear()
        return
    if state["phase"] == "starting" and state["revision"]:
        _downgrade(root, installation, state)
        # The packages that undo migrations are put away next. A full disk must not stop what needs no space.
        with suppress(OSError):
            note.write({**state, "phase": "changing"})
    if database is not None:
        end_orphans(database / "cluster")
    for path in changed:
        _swap(path)
    installation.put_back(state["from"])
    note.clear()


def _downgrade(root: Path, installation: Installation, state: Mapping[str, str]) -> None:
    """Undo the migrations of a database that is not embedded: others may have written to it meanwhile."""
    environment = {**os.environ, "DATABASE_URL": state["url"]}
    command = [str(installation.python), "-m", "alembic", "downgrade", state["revision"]]
    run(command, cwd=root, environment=environment, stoppable=False)


def _kept(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-update")


def _swap(path: Path) -> None:
    """Put a kept path back, if there is one; at every moment one of the two is whole."""
    if not _kept(path).exists():
        return
    failed = path.with_name(f"{path.name}.failed-update")
    _remove(failed)
    if path.exists():
        path.rename(failed)
    _kept(path).rename(path)
    _remove(failed)


def _remove(path: Path) -> None:
    """Remove a directory, or a link to one, if it is there."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _size(path: Path | None) -> int:
    """Return the bytes of all files below a path."""
    if path is None:
        return 0
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.exists())


@contextmanager
def _alone(note: Journal) -> Iterator[None]:
    """Hold the lock on updates. Raises UpdateFailed if another one is under way."""
    note.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with note.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UpdateFailed("Another update is under way here.") from None
        yield


def main() -> int:
    """Update; return 0 after that or if there is nothing newer, 1 if the previous version stays, 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="update", description="Another version, or the present one again.")
    parser.add_argument("version", nargs="?", default="", help="a version or branch; for a wheel its file or URL")
    parser.add_argument("--restore", type=Path, metavar="FILE", help="replace the database by this backup as well")
    given = parser.parse_args()
    escape_output()
    STOP.listen()
    note = journal(ROOT)
    try:
        with _alone(note):
            state = note.read()
            if state:
                finish_or_go_back(ROOT, _installation(note, state["from"]), note)
                short = state["phase"] != "done"
                tell(f"The update to {state['to']} {'was cut short' if short else 'is complete'}.")
                tell(f"{state['from']} is back with its data." if short else "Update again to look for a newer one.")
                return 1 if short else 0
            if not _update(note).to(given.version, given.restore.absolute() if given.restore else None):
                tell("There is no newer version.")
    except (UpdateFailed, OSError) as fault:
        tell(unusable(fault) if isinstance(fault, OSError) else str(fault))
        with suppress(OSError):  # if the journal cannot be read, the sentence above says so or names its directory
            if note.open:
                tell("Not everything is back yet. Once the reason is gone, update again: that goes back first.")
        return 1
    except KeyboardInterrupt:
        tell("stopped")
        return 130
    return 0


def _installation(note: Journal, present: str) -> Installation:
    if os.environ.get("HOLDFAST_HOME"):
        return Wheel(Path(sys.prefix), present, note.path.with_name("update-wheels"))
    return Checkout(ROOT)


def _update(note: Journal) -> Update:
    """Return an update of what is installed here; the settings say where the data is."""
    from app.supervisor.processes import data_dir, database_dir
    from settings import SettingsError, load, version

    try:
        settings = load()
    except SettingsError as fault:
        raise UpdateFailed(str(fault)) from None
    home = data_dir(settings)
    backup = home / "backups" / f"before-update-{datetime.now(UTC):%Y%m%d-%H%M%S}.dump"
    database = None if settings.database_url else database_dir(settings)
    data = Data(home, backup, database, settings.database_url)
    if home.is_relative_to(sys.prefix) or (os.environ.get("HOLDFAST_HOME") and sys.prefix == sys.base_prefix):
        raise UpdateFailed("An update needs a virtual environment that does not contain the data.")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Update(ROOT, _installation(note, version()), data, note, tell)


if __name__ == "__main__":
    sys.exit(main())
