"""The versions between which `tools.release.way_back` updates are made on any machine."""

from pathlib import Path

import pytest

from tests.house.pages import ROOT
from tools.release import way_back


def test_its_versions_are_made_without_anybodys_name_in_the_settings_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    unnamed = {"user.useConfigOnly": "true", "user.name": "", "user.email": ""}
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(unnamed)))
    for place, (key, value) in enumerate(unnamed.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{place}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{place}", value)
    origin = tmp_path / "origin"
    way_back.publish(origin, "HEAD")
    tags = way_back._said("git", "tag", "--list", "v0.0.*", cwd=origin).split()
    assert tags == ["v0.0.1", "v0.0.2", "v0.0.3", "v0.0.4"]
    before = way_back._said("git", "rev-parse", "HEAD", cwd=ROOT)
    assert way_back._said("git", "rev-parse", "v0.0.3^", cwd=origin) == before
