"""An update covers everything, and after any failure the previous version is back with its data.

The product of these tests is a few lines in a repository of their own; git and the steps are real.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from app import __main__ as start
from app.supervisor import update
from app.supervisor.installed import Checkout, UpdateFailed, journal
from app.supervisor.single_instance import Lock, Running
from app.supervisor.supervisor import ProcessPlan, Supervisor
from app.supervisor.update import Data, Update, finish_or_go_back

PRODUCT = Path(__file__).resolve().parents[3]
# Stands in for set-up: it makes an environment with a Python, and screens, both with the version in them.
SET_UP = """
import sys
from pathlib import Path
version = Path("version").read_text()
for name in (".venv/bin", ".web"):
    Path(name).mkdir(parents=True)
Path(".venv/bin/python").symlink_to(sys.executable)
Path(".venv/made-for").write_text(version)
Path(".web/made-for").write_text(version)
"""
BACKUP = """
import os, shutil, sys
rows = os.environ["DATA_DIR"] + "/sandbox/db/cluster/rows"
if sys.argv[1] == "make":
    os.makedirs(os.path.dirname(sys.argv[3]), exist_ok=True)
    shutil.copy(rows, sys.argv[3])
else:
    shutil.copy(sys.argv[2], rows)
"""
# A start migrates the data.
TRIAL = """
import os
version = open("version").read()
with open(os.environ["DATA_DIR"] + "/sandbox/db/cluster/rows", "a") as rows:
    rows.write("migrated for " + version)
"""
PARENT = "import os, signal\nos.kill(os.getppid(), signal.{})\n{}\n"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@dataclass
class Place:
    """A clone with data, and the repository from which it was cloned."""

    origin: Path
    clone: Path

    @property
    def data(self) -> Path:
        return self.clone / "data"

    @property
    def rows(self) -> str:
        return (self.data / "sandbox" / "db" / "cluster" / "rows").read_text()

    def publish(self, tag: str, **changed: str) -> None:
        """Publish a release: `set_up`, `backup`, `trial` and `screens` are the texts of its modules."""
        for name, text in changed.items():
            path = {
                "set_up": "tools/prepare.py", "backup": "app/backup.py", "trial": "app/supervisor/trial.py",
                "screens": "app/build.py",
            }[name]  # fmt: skip
            (self.origin / path).parent.mkdir(parents=True, exist_ok=True)
            (self.origin / path).write_text(text)
        (self.origin / "version").write_text(tag)
        git(self.origin, "add", ".")
        git(self.origin, "commit", "--quiet", "--message", f"release: publish {tag}")
        git(self.origin, "tag", tag)

    def state(self) -> dict[str, str]:
        """Return everything that an update may change."""
        venv, web = self.clone / ".venv" / "made-for", self.clone / ".web" / "made-for"
        return {
            "branch": git(self.clone, "rev-parse", "--abbrev-ref", "HEAD"),
            "version": (self.clone / "version").read_text(),
            "changed": git(self.clone, "status", "--porcelain", "--untracked-files=no"),
            "venv": venv.read_text() if venv.exists() else "",
            "web": web.read_text() if web.exists() else "",
            "rows": self.rows,
            "kept": " ".join(str(path) for path in self.clone.rglob("*-update")),
            "journal": str(journal(self.clone).read()),
        }

    def update(self, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        """Run the command as `make update` does, on this clone."""
        code = (
            f"import sys\nfrom pathlib import Path\nfrom app.supervisor import update\n"
            f"update.ROOT = Path({str(self.clone)!r})\nsys.exit(update.main())"
        )
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=PRODUCT, text=True, check=False,
            stdout=stdout, stderr=subprocess.PIPE,
        )  # fmt: skip


def repository_with_a_clone(directory: Path) -> None:
    place = Place(directory / "origin", directory / "clone")
    place.origin.mkdir()
    git(place.origin, "init", "--quiet", "--initial-branch=main")
    (place.origin / ".gitignore").write_text("/data/\n/.venv\n/.web\n__pycache__/\n")
    place.publish("v0.1.0", set_up=SET_UP, backup=BACKUP, trial=TRIAL, screens="")
    git(directory, "clone", "--quiet", str(place.origin), str(place.clone))
    git(place.clone, "remote", "set-url", "origin", "../origin")  # copies have one of their own
    subprocess.run([sys.executable, "-c", SET_UP], cwd=place.clone, check=True)
    (place.data / "sandbox" / "db" / "cluster").mkdir(parents=True)
    (place.data / "sandbox" / "db" / "cluster" / "rows").write_text("a wallet\n")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patched:
        for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
            patched.setenv(name, "/dev/null")
        for name in ("AUTHOR", "COMMITTER"):
            patched.setenv(f"GIT_{name}_NAME", "Ada")
            patched.setenv(f"GIT_{name}_EMAIL", "ada@example.com")
        directory = tmp_path_factory.mktemp("update")
        repository_with_a_clone(directory)
        yield directory


@pytest.fixture
def place(made_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "clone" / "data"))
    shutil.copytree(made_once, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Place(tmp_path / "origin", tmp_path / "clone")


def an_update(place: Place, said: list[str], url: str | None = None) -> Update:
    database = None if url else place.data / "sandbox" / "db"
    data = Data(place.data, place.data / "backups" / "x.dump", database, url)
    return Update(place.clone, Checkout(place.clone), data, journal(place.clone), said.append)


def test_the_newest_release_is_installed_and_the_data_are_migrated_after_a_backup(place: Place) -> None:
    place.publish("v0.9.0")
    place.publish("v0.10.0")
    done = place.update()
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.state() == {
        "branch": "HEAD", "version": "v0.10.0", "changed": "", "venv": "v0.10.0", "web": "v0.10.0",
        "rows": "a wallet\nmigrated for v0.10.0", "kept": "", "journal": "{}",
    }  # fmt: skip
    [backup] = (place.data / "backups").iterdir()
    assert backup.read_text() == "a wallet\n"
    again = place.update()
    assert (again.returncode, again.stdout) == (0, "There is no newer version.\n")
    replaced = place.update("0.10.0", "--restore", str(backup))
    assert (replaced.returncode, "no backup was restored" in replaced.stdout) == (1, True)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"set_up": "raise SystemExit('no network')"}, "tools.prepare set-up` failed"),
        ({"trial": f"{TRIAL}\nraise SystemExit('the web did not answer')"}, "app.supervisor.trial` failed"),
        ({"screens": "raise SystemExit('other names')"}, "app.build` failed"),
        ({"set_up": "import os\nos.unlink('version')\nraise OSError(28, 'No space left')"}, "set-up` failed"),
    ],
)
def test_what_does_not_work_is_taken_back_with_the_data(place: Place, changed: dict[str, str], why: str) -> None:
    before, said = place.state(), list[str]()
    place.publish("v0.2.0", **changed)
    with pytest.raises(UpdateFailed, match=why):
        an_update(place, said).to("")
    assert said[-1] == "This did not work. Going back to main"
    assert place.state() == before


def test_a_database_behind_a_link_is_taken_back_too(place: Place, tmp_path: Path) -> None:
    """A copy of the link would lead to the database that the new version has migrated."""
    elsewhere = tmp_path / "another-disk"
    database = place.data / "sandbox" / "db"
    database.rename(elsewhere)
    database.symlink_to(elsewhere)
    before = place.state()
    place.publish("v0.2.0", trial=f"{TRIAL}\nraise SystemExit(1)")
    with pytest.raises(UpdateFailed):
        an_update(place, []).to("")
    assert place.state() == before
    assert database.readlink() == elsewhere
    assert [path.name for path in tmp_path.glob("another-disk*")] == ["another-disk"]


@contextmanager
def inherited(number: int, handler: signal.Handlers) -> Iterator[None]:
    """Let programs that start in the block begin with this handler, whatever the tests themselves were started with."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_an_update_that_somebody_stops_is_taken_back(place: Place, name: str) -> None:
    before = place.state()
    place.publish("v0.2.0", trial=TRIAL + PARENT.format(name, "signal.pause()"))
    with inherited(signal.Signals[name], signal.SIG_DFL):
        done = place.update()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (130, "stopped")
    assert place.state() == before


def test_with_nohup_an_update_goes_on_after_its_terminal_is_closed(place: Place) -> None:
    place.publish("v0.2.0", trial=TRIAL + PARENT.format("SIGHUP", ""))
    with inherited(signal.SIGHUP, signal.SIG_IGN):
        done = place.update()
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.state()["version"] == "v0.2.0"


@pytest.mark.parametrize(
    ("trial", "code", "version"),
    [
        (TRIAL, 0, "v0.2.0"), (f"{TRIAL}\nraise SystemExit(1)", 1, "v0.1.0"),
        (TRIAL + PARENT.format("SIGHUP", "signal.pause()"), 130, "v0.1.0"),
    ],
    ids=["works", "fails", "is stopped"],
)  # fmt: skip
def test_an_update_whose_output_nobody_reads_any_more_ends_as_any_other(
    place: Place, trial: str, code: int, version: str
) -> None:
    """As after a terminal was closed: to say what happens is then an error, which must not keep it from going back."""
    place.publish("v0.2.0", trial=trial)
    reader, writer = os.pipe()
    os.close(reader)
    with inherited(signal.SIGHUP, signal.SIG_DFL):
        done = place.update(stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, "")
    state = place.state()
    assert (state["version"], state["kept"], state["journal"]) == (version, "", "{}")


def test_an_update_that_was_killed_is_taken_back_by_the_next(place: Place) -> None:
    before = place.state()
    place.publish("v0.2.0", trial=TRIAL + PARENT.format("SIGKILL", ""))
    assert place.update().returncode < 0
    assert journal(place.clone).open
    done = place.update()
    assert done.returncode == 1
    assert "v0.2.0 was cut short. main is back" in " ".join(done.stdout.split("\n"))
    assert place.state() == before


def test_without_a_network_nothing_is_touched(place: Place) -> None:
    before = place.state()
    place.origin.rename(place.origin.with_name("away"))
    with pytest.raises(UpdateFailed, match="git fetch"):
        an_update(place, []).to("")
    assert place.state() == before
    assert not (place.data / "backups").exists()


def test_a_release_is_taken_back_with_the_data_of_its_time(place: Place) -> None:
    place.publish("v0.2.0")
    assert an_update(place, []).to("")
    [backup] = (place.data / "backups").iterdir()
    taken = backup.rename(place.data / "taken.dump")
    assert an_update(place, []).to("0.1.0", taken)
    assert (place.state()["version"], place.rows) == ("v0.1.0", "a wallet\nmigrated for v0.1.0")


def test_a_running_product_is_not_updated(place: Place) -> None:
    lock = Lock(place.data)
    lock.take(Running(42, "http://localhost:3000"))
    try:
        with pytest.raises(UpdateFailed, match="process 42"):
            an_update(place, []).to("")
    finally:
        lock.release()


def test_a_product_that_starts_meanwhile_is_not_updated(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, before = Lock(place.data), place.state()
    monkeypatch.setattr(Update, "_back_up", lambda *_: lock.take(Running(42, "http://localhost:3000")))
    place.publish("v0.2.0")
    try:
        with pytest.raises(UpdateFailed, match="process 42"):
            an_update(place, []).to("")
        assert place.state() == before
    finally:
        lock.release()


def test_a_disk_that_is_nearly_full_is_seen_before_anything_changes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.publish("v0.2.0")
    before = place.state()
    monkeypatch.setattr(update, "SPACE", 2**70)
    with pytest.raises(UpdateFailed, match="GiB free"):
        an_update(place, []).to("")
    assert place.state() == before


def test_changes_of_ones_own_are_not_lost(place: Place) -> None:
    place.publish("v0.2.0")
    (place.clone / "version").write_text("mine")
    with pytest.raises(UpdateFailed, match="version"):
        an_update(place, []).to("")


@pytest.mark.parametrize(("wanted", "why"), [("v7.0.0", "no version v7.0.0"), ("nowhere", "no version nowhere")])
def test_a_version_that_does_not_exist_is_refused(place: Place, wanted: str, why: str) -> None:
    with pytest.raises(UpdateFailed, match=why):
        an_update(place, []).to(wanted)


def test_before_the_first_release_a_branch_has_to_be_named(place: Place) -> None:
    git(place.clone, "tag", "--delete", "v0.1.0")
    git(place.origin, "tag", "--delete", "v0.1.0")
    with pytest.raises(UpdateFailed, match="VERSION=origin/main"):
        an_update(place, []).to("")


def test_migrations_of_a_database_elsewhere_are_undone_and_what_others_wrote_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []
    real: Callable[..., None] = update.run

    def run(command: list[str], **given: object) -> None:
        ran.append(tuple(command[1:]))
        if "app.supervisor.trial" in command:
            raise UpdateFailed("the web did not answer")
        if "alembic" not in command and "app.backup" not in command:
            real(command, **given)

    monkeypatch.setattr(update, "run", run)
    monkeypatch.setattr(Update, "_revision", lambda *_: "0039")
    place.publish("v0.2.0")
    before = place.state()
    with pytest.raises(UpdateFailed, match="did not answer"):
        an_update(place, [], "postgresql://db.example/x").to("")
    assert ran[-1] == ("-m", "alembic", "downgrade", "0039")
    assert place.state() == before
    with pytest.raises(UpdateFailed, match="DATABASE_URL"):
        an_update(place, [], "postgresql://db.example/x").to("", Path("x.dump"))


def test_migrations_are_undone_once_though_going_back_is_cut_short(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packages of the new version are needed for that, and are the first to be moved away."""
    note, undone = journal(place.clone), 0
    for name in (".venv.before-update", ".web.before-update", ".venv/bin"):
        (place.clone / name).mkdir(parents=True, exist_ok=True)
    (place.clone / ".venv" / "bin" / "python").touch()
    note.write({"from": "main", "to": "v0.2.0", "phase": "starting", "database": "", "url": "x", "revision": "0039"})

    def run(command: list[str], **_: object) -> None:
        nonlocal undone
        assert Path(command[0]).exists(), "there are no packages to undo migrations with"
        undone += 1

    def rename(path: Path, target: Path) -> Path:
        if path.name.endswith(".before-update"):
            raise OSError("cut short")
        return real(path, target)

    real = Path.rename
    monkeypatch.setattr(update, "run", run)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        with pytest.raises(OSError, match="cut short"):
            finish_or_go_back(place.clone, Checkout(place.clone), note)
    assert not (place.clone / ".venv").exists()
    finish_or_go_back(place.clone, Checkout(place.clone), note)
    assert (undone, note.open, (place.clone / ".venv").exists()) == (1, False, True)


def test_going_back_may_be_cut_short_at_every_step(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = place.state()
    place.publish("v0.2.0", trial=f"{TRIAL}\nraise SystemExit(1)")
    real = Path.rename
    left = 0

    def rename(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError("cut short")
        return real(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(update, "finish_or_go_back", lambda *_: None)
        with pytest.raises(UpdateFailed):
            an_update(place, []).to("")
    assert place.rows != before["rows"]
    monkeypatch.setattr(Path, "rename", rename)
    tries = 0
    while journal(place.clone).open:
        tries += 1
        left = tries % 3
        with suppress(OSError):
            finish_or_go_back(place.clone, Checkout(place.clone), journal(place.clone))
        assert tries < 20
    assert tries > 2
    assert place.state() == before


def test_nothing_starts_during_an_update_or_after_one_that_was_cut_short(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ProcessPlan(data_dir=place.data, cwd=place.clone, url="", programs=(), environment={})
    note = {"from": "main", "to": "v0.2.0", "phase": "changing"}
    monkeypatch.setattr(sys, "argv", ["app", "--build"])
    monkeypatch.setattr(start, "ROOT", place.clone)
    monkeypatch.setattr(start, "make_plan", lambda *_: plan)
    monkeypatch.setattr(start, "ensure_built", lambda _: journal(place.clone).write(note))
    monkeypatch.setattr(Supervisor, "_watch", lambda _: pytest.fail("it has started"))
    for _when in ("the update begins during the build", "it began before"):
        assert start.main() == 1
        assert "`make update` takes it back" in capsys.readouterr().out


def test_what_is_kept_is_on_the_disk_before_anything_changes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut the copy replaces the database, so it must not be files without their contents."""
    kept = place.data / "sandbox" / "db.before-update" / "cluster" / "rows"
    flushed: list[tuple[str, str]] = []
    monkeypatch.setattr(os, "sync", lambda: flushed.append((journal(place.clone).read()["phase"], kept.read_text())))
    place.publish("v0.2.0")
    assert an_update(place, []).to("")
    assert flushed == [("keeping", "a wallet\n")]
