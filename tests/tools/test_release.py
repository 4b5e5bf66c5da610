"""A release needs a clean tree and a new version, and is made completely or not at all, in a test repository."""

import subprocess
from pathlib import Path

import pytest

from tools.release.__main__ import main, released
from tools.release.notes import NotReleasable

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a wallet\n\n## [0.1.0] - 2026-01-02\n\n- all\n"
PROJECT = '[project]\nname = "x"\nversion = "0.1.0"\n'


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.com")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "all: begin")
    git(tmp_path, "tag", "v0.1.0")
    return tmp_path


def state(root: Path) -> tuple[str, str, str]:
    return git(root, "log", "--format=%H"), git(root, "tag"), git(root, "status", "--porcelain")


def test_without_being_told_to_nothing_is_done(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(root)
    assert main(["0.2.0"], root) == 0
    said = capsys.readouterr().out
    assert "- a wallet" in said
    assert "make the annotated tag v0.2.0" in said
    assert state(root) == before


def test_a_release_is_a_commit_and_a_tag_with_the_notes(root: Path) -> None:
    assert main(["0.2.0", "--tag"], root) == 0
    changelog = (root / "CHANGELOG.md").read_text()
    assert changelog.startswith("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 20")
    assert changelog.endswith("\n\n### Added\n\n- a wallet\n\n## [0.1.0] - 2026-01-02\n\n- all\n")
    assert (root / "pyproject.toml").read_text() == PROJECT.replace("0.1.0", "0.2.0")
    assert git(root, "log", "-1", "--format=%s") == "release: publish 0.2.0\n"
    assert git(root, "cat-file", "-t", "v0.2.0") == "tag\n"
    assert git(root, "tag", "--list", "--format=%(contents)", "v0.2.0") == (
        "Holdfast 0.2.0\n\n### Added\n\n- a wallet\n\n"
    )
    assert git(root, "rev-parse", "v0.2.0^{commit}") == git(root, "rev-parse", "HEAD")
    assert git(root, "status", "--porcelain") == ""


def test_the_version_of_the_project_is_released_where_none_is_named(root: Path) -> None:
    git(root, "tag", "--delete", "v0.1.0")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- all\n")
    git(root, "commit", "--quiet", "--all", "--message", "docs: begin")
    assert main(["--tag"], root) == 0
    assert git(root, "tag") == "v0.1.0\n"
    assert git(root, "diff", "--name-only", "HEAD~1") == "CHANGELOG.md\n"


def test_a_release_that_ended_before_its_tag_is_completed_without_a_second_commit(root: Path) -> None:
    main(["0.2.0", "--tag"], root)
    commits, _, _ = state(root)
    git(root, "tag", "--delete", "v0.2.0")
    assert main(["0.2.0", "--tag"], root) == 0
    assert state(root) == (commits, "v0.1.0\nv0.2.0\n", "")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.1.0", "not newer than the tag v0.1.0"),
        ("0.0.9", "not newer than the tag v0.1.0"),
        ("1.0", "not a version"),
        ("v1.0.0", "not a version"),
        ("1.0.0-rc1", "not a version"),
    ],
)
def test_a_version_that_cannot_be_next_is_refused(
    root: Path, version: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(root)
    assert main([version, "--tag"], root) == 1
    assert why in capsys.readouterr().err
    assert state(root) == before


def test_versions_are_compared_as_numbers(root: Path) -> None:
    git(root, "tag", "v0.9.0")
    git(root, "tag", "vendor")
    assert main(["0.10.0"], root) == 0


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_a_tree_with_changes_is_refused(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (root / name).write_text("changed")
    before = state(root)
    assert main(["0.2.0", "--tag"], root) == 1
    assert name in capsys.readouterr().err
    assert state(root) == before


def test_a_commit_without_a_branch_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(root, "checkout", "--quiet", "--detach")
    assert main(["0.2.0", "--tag"], root) == 1
    assert "No branch" in capsys.readouterr().err


def test_a_commit_that_a_hook_refuses_leaves_the_files_as_they_were(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not on a Friday' >&2\nexit 1\n")
    hook.chmod(0o755)
    before = state(root)
    assert main(["0.2.0", "--tag"], root) == 1
    assert "not on a Friday" in capsys.readouterr().err
    assert state(root) == before


@pytest.mark.parametrize(
    ("changelog", "why"),
    [
        ("# Changelog\n", r"no section `## \[Unreleased\]`"),
        ("## [Unreleased]\n\n### Added\n\n## [0.1.0] - 2026-01-02\n", "no changes under Unreleased"),
        ("## [Unreleased]\n\n- more\n\n## [0.2.0] - 2026-01-02\n\n- some\n", "section for 0.2.0 already"),
    ],
)
def test_a_release_without_changes_of_its_own_is_refused(changelog: str, why: str) -> None:
    with pytest.raises(NotReleasable, match=why):
        released(changelog, "0.2.0", "2026-02-03")
