"""The version is written in one place, and the changelog's newest release is that version."""

import re
from collections.abc import Iterator

import pytest

from app import build
from settings import ROOT, version

HEADING = re.compile(r"^## \[(.+)\](?: - (\S+))?$", re.M)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def faults(changelog: str, present: str) -> Iterator[str]:
    """Return what is wrong with a changelog's headings, given the code's version."""
    headings = HEADING.findall(changelog)
    if headings[:1] != [("Unreleased", "")]:
        yield "the first section is not Unreleased"
    released = [(name, date) for name, date in headings if name != "Unreleased"]
    yield from (f"{name} has no date" for name, date in released if not DATE.fullmatch(date))
    if released and released[0][0] != present:
        yield f"the newest release is {released[0][0]}, the version {present}"


def test_the_newest_release_of_the_changelog_is_the_version_or_nothing_is_released() -> None:
    assert list(faults((ROOT / "CHANGELOG.md").read_text(), version())) == []


@pytest.mark.parametrize(
    ("changelog", "fault"),
    [
        ("## [Unreleased]\n", None),
        ("## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n## [1.1.0] - 2025-12-01\n", None),
        ("## [1.2.0] - 2026-01-02\n", "the first section is not Unreleased"),
        ("## [Unreleased]\n\n## [1.2.0]\n", "1.2.0 has no date"),
        ("## [Unreleased]\n\n## [1.1.0] - 2026-01-02\n", "the newest release is 1.1.0, the version 1.2.0"),
    ],
)
def test_a_changelog_that_does_not_fit_is_seen(changelog: str, fault: str | None) -> None:
    assert list(faults(changelog, "1.2.0")) == ([] if fault is None else [fault])


def test_the_version_is_one_of_semantic_versioning() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", version())


def test_screens_of_another_version_are_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.fingerprint()
    monkeypatch.setattr(build, "version", lambda: "999.0.0")
    assert build.fingerprint() != before
