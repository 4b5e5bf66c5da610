"""The screens' packages are fetched beside other steps, moved once, and left to Reflex if anything is unusual."""

import subprocess
import sys
from pathlib import Path

import pytest

from app import npm_packages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "reflex.lock").mkdir()
    (tmp_path / "reflex.lock" / "package.json").write_text("{}")
    (tmp_path / "reflex.lock" / "package-lock.json").write_text("{}")
    (tmp_path / ".npmrc").write_text("fund=false\n")
    return tmp_path


@pytest.fixture
def npm(tmp_path: Path) -> Path:
    """An npm that installs one package."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nmkdir -p node_modules/react && echo x >> node_modules/react/installed\n")
    program.chmod(0o755)
    return program


def test_what_was_fetched_is_moved_once_the_screens_have_their_place(root: Path, npm: Path) -> None:
    assert npm_packages.fetch(npm, root)
    assert not npm_packages.move(root), "there is no .web yet"
    (root / ".web").mkdir()
    assert npm_packages.move(root)
    assert (root / ".web" / "node_modules" / "react" / "installed").read_text() == "x\n"
    assert not npm_packages.move(root)
    assert not npm_packages.fetch(npm, root), "the screens have theirs"


def test_nothing_is_fetched_twice(root: Path, npm: Path) -> None:
    assert npm_packages.fetch(npm, root)
    assert not npm_packages.fetch(npm, root)


def test_packages_of_another_lock_are_fetched_again(root: Path, npm: Path) -> None:
    npm_packages.fetch(npm, root)
    (root / "reflex.lock" / "package-lock.json").write_text('{"newer": 1}')
    (root / ".web").mkdir()
    assert not npm_packages.move(root)
    assert npm_packages.fetch(npm, root)
    assert npm_packages.move(root)


def test_a_fetch_that_failed_leaves_nothing_to_move(root: Path, npm: Path) -> None:
    npm.write_text("#!/bin/sh\nmkdir -p node_modules/half\nexit 1\n")
    (root / ".web").mkdir()
    with pytest.raises(subprocess.CalledProcessError):
        npm_packages.fetch(npm, root)
    assert not npm_packages.move(root)


def test_the_move_waits_for_a_fetch_under_way(root: Path, npm: Path) -> None:
    npm.write_text(
        f"#!/bin/sh\ntouch {root}/begun\nwhile [ ! -e {root}/go ]; do sleep 0.02; done\nmkdir node_modules\n"
    )
    (root / ".web").mkdir()
    code = (
        "import sys; from pathlib import Path; from app import npm_packages\nnpm_packages.{}(*map(Path, sys.argv[1:]))"
    )
    fetching = subprocess.Popen([sys.executable, "-c", code.format("fetch"), str(npm), str(root)], cwd=ROOT)
    while not (root / "begun").exists():
        assert fetching.poll() is None
    moving = subprocess.Popen([sys.executable, "-c", code.format("move"), str(root)], cwd=ROOT)
    (root / "go").touch()
    assert fetching.wait() == 0
    assert moving.wait() == 0
    assert (root / ".web" / "node_modules").is_dir()
