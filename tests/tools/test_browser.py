"""The browser that the tests use: the headless shell where it is installed, otherwise Chromium."""

from pathlib import Path

import pytest

from tools import browser
from tools.progress import Teller

APT = """#!/bin/sh
echo "$@" >> {log}
for package; do :; done
case "$1 $package" in
    "install {missing}") exit 100 ;;
    install*) printf '#!/bin/sh\\n' > {bin}/$package && chmod +x {bin}/$package ;;
esac
"""


@pytest.mark.parametrize(
    ("missing", "found"), [("nothing", "chromium-headless-shell"), ("chromium-headless-shell", "chromium")]
)
def test_debian_gives_the_shell_and_a_system_without_it_chromium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, found: str
) -> None:
    programs, asked = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    apt = programs / "apt-get"
    apt.write_text(APT.format(log=asked, bin=programs, missing=missing))
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin")
    monkeypatch.delenv("CHROMIUM_PATH", raising=False)
    monkeypatch.setattr(browser, "NAMES", ("chromium-headless-shell", "chromium"))
    monkeypatch.setattr(
        browser.shutil, "which", lambda name: str(programs / name) if (programs / name).exists() else None
    )
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)

    path = browser.find_browser(tmp_path, tmp_path / "npm", {"PATH": f"{programs}:/bin"}, Teller(1, tmp_path / "log"))

    assert path == str(programs / found)
    assert (tmp_path / "browser").read_text() == path + "\n"
    assert asked.read_text().splitlines()[0].startswith("update")


def test_an_installed_shell_is_preferred_to_chromium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM_PATH", raising=False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: f"/usr/bin/{name}" if name else None)
    monkeypatch.setattr(browser, "starts", lambda path: True)

    found = browser.find_browser(tmp_path, tmp_path / "npm", {}, Teller(1, tmp_path / "log"))

    assert found == "/usr/bin/chromium-headless-shell"
