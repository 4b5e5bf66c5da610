"""A release's notes are the changelog's section of its version, and there is no release without one."""

import pytest

from tools.release.notes import NotReleasable, main, notes

PROJECT = '[project]\nversion = "1.2.0"\n'
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- more\n\n## [1.2.0] - 2026-11-01\n\n### Fixed\n\n- a fault\n\n"
    "## [1.2.01] - 2026-10-01\n\n- older\n"
)


def test_the_notes_are_the_versions_own_section() -> None:
    assert notes("1.2.0", CHANGELOG, PROJECT) == "### Fixed\n\n- a fault\n"


@pytest.mark.parametrize(
    ("version", "changelog", "why"),
    [
        ("1.3.0", CHANGELOG, "pyproject.toml has the version 1.2.0"),
        ("1.2.0", "## [Unreleased]\n\n- more\n", "no section"),
        ("1.2.0", "## [1.2.0] - 2026-11-01\n\n## [1.1.0] - 2026-10-01\n\n- old\n", "no section"),
        ("1.2.0", "## [1.2.0]\n\n- undated\n", "no section"),
    ],
)
def test_a_version_that_is_not_described_is_refused(version: str, changelog: str, why: str) -> None:
    with pytest.raises(NotReleasable, match=why):
        notes(version, changelog, PROJECT)


def test_the_exit_code_says_whether_there_are_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["0.0.0"]) == 1
    assert "not 0.0.0" in capsys.readouterr().err
    assert main([]) == 2
